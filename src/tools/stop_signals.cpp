#include "tools/stop_signals.h"

#include <csignal>
#include <utility>

namespace sluice {
namespace {

sigset_t stop_signals() noexcept {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

StopSignals::StopSignals(std::function<void(int nth)> act) : act_(std::move(act)) {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this]() noexcept { run(); });
}

StopSignals::~StopSignals() {
  ending_ = true;
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
}

void StopSignals::run() noexcept {
  const sigset_t set = stop_signals();
  for (int nth = 1;; ++nth) {
    int signal = 0;
    sigwait(&set, &signal);
    if (ending_) return;
    act_(nth);
  }
}

}  // namespace sluice
