// What llama.cpp has to say goes to our log at debug level, never to stderr by itself; and its last
// error lines can be had, for a message that says why something failed. Bounded by kMostErrorBytes
// for one LlamaErrors. Thread: route_llama_log once, before the first use of llama.cpp; LlamaErrors
// the thread that made it.
#pragma once

#include <string>

namespace sluice {

void route_llama_log();

// Collects the error lines that llama.cpp logs on this thread while it lives. One at a time for
// each thread.
class LlamaErrors {
 public:
  LlamaErrors();
  ~LlamaErrors();
  LlamaErrors(const LlamaErrors&) = delete;
  LlamaErrors& operator=(const LlamaErrors&) = delete;

  // On one line, without the names of llama.cpp's functions. "no reason given" if there was none.
  [[nodiscard]] std::string text() const;

 private:
  std::string lines_;
};

}  // namespace sluice
