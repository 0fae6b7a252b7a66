// TestFolder: a folder of one test's own, gone with it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace sluice {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

  // As a careful program does it: a new file renamed over the old one.
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name + ".new")) << text;
    std::filesystem::rename(file(name + ".new"), file(name));
    return file(name);
  }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::filesystem::path path_;
};

}  // namespace sluice
