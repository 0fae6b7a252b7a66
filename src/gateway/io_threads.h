// IoThreads: the gateway's threads, each with one io_context that it alone runs, so that nothing on
// it needs a strand or a lock. A connection lives on one of them from its first byte to its last.
// Bounded by their count, given at start. They outlive whatever lives on them (HttpServer, links to
// replicas). Thread: any, but what says its own thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "gateway/asio.h"

namespace sluice {

class IoThread {
 public:
  explicit IoThread(std::size_t index);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  [[nodiscard]] asio::io_context& context() noexcept { return context_; }

  // The time as HTTP's Date says it, made once a second. Thread: its own.
  [[nodiscard]] std::string_view date() noexcept;

  // Where a connection's bytes are read to before it is known how many they are; holds nothing
  // between two calls. Thread: its own.
  using Scratch = std::array<char, 64 << 10>;
  [[nodiscard]] Scratch& scratch() noexcept { return *scratch_; }

 private:
  void run() noexcept;

  const std::size_t index_;
  const std::unique_ptr<Scratch> scratch_ = std::make_unique<Scratch>();
  std::array<char, 32> date_{};
  std::size_t date_size_ = 0;
  long long date_second_ = -1;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::thread thread_;
};

class IoThreads {
 public:
  // 0: as many as the machine has hardware threads.
  explicit IoThreads(std::size_t count);

  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }
  [[nodiscard]] IoThread& operator[](std::size_t index) noexcept { return *threads_[index]; }

 private:
  std::vector<std::unique_ptr<IoThread>> threads_;
};

}  // namespace sluice
