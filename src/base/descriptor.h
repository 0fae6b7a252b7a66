// Descriptor: an open file, closed with its owner. Thread: one at a time.
#pragma once

#include <unistd.h>

namespace sluice {

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}  // negative: none
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace sluice
