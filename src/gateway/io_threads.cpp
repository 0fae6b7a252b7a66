#include "gateway/io_threads.h"

#include <pthread.h>

#include <algorithm>
#include <ctime>

#include "base/concat.h"

namespace sluice {

IoThread::IoThread(std::size_t index) : index_(index), thread_([this] { run(); }) {
  ::pthread_setname_np(thread_.native_handle(), concat("http-", index).c_str());
}

IoThread::~IoThread() {
  context_.stop();
  thread_.join();
}

void IoThread::run() noexcept { context_.run(); }

std::string_view IoThread::date() noexcept {
  const std::time_t now = std::time(nullptr);
  if (now != date_second_) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    date_size_ = std::strftime(date_.data(), date_.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    date_second_ = now;
  }
  return {date_.data(), date_size_};
}

IoThreads::IoThreads(std::size_t count) {
  if (count == 0) count = std::max(1U, std::thread::hardware_concurrency());
  threads_.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    threads_.push_back(std::make_unique<IoThread>(index));
  }
}

}  // namespace sluice
