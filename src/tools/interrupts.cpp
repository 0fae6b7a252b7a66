#include "tools/interrupts.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace sluice {

Interrupts::Interrupts() {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  CHECK(pthread_sigmask(SIG_BLOCK, &interrupt, nullptr) == 0, "SIGINT can be blocked");
  descriptor_ = signalfd(-1, &interrupt, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(descriptor_ >= 0, "a signalfd for one signal can be made");
}

Interrupts::~Interrupts() { close(descriptor_); }

bool Interrupts::take() noexcept {
  bool taken = false;
  signalfd_siginfo signal;
  while (read(descriptor_, &signal, sizeof signal) == sizeof signal) taken = true;
  return taken;
}

OnInterrupt::OnInterrupt(Interrupts& interrupts, std::function<void()> act)
    : interrupts_(interrupts), act_(std::move(act)), end_(eventfd(0, EFD_CLOEXEC)) {
  CHECK(end_ >= 0, "an eventfd can be made");
  thread_ = std::thread([this] { watch(); });
}

OnInterrupt::~OnInterrupt() {
  const std::uint64_t one = 1;
  CHECK(write(end_, &one, sizeof one) == sizeof one, "an eventfd takes one");
  thread_.join();
  close(end_);
}

void OnInterrupt::watch() noexcept {
  pollfd waits[] = {{end_, POLLIN, 0}, {interrupts_.descriptor(), POLLIN, 0}};
  for (;;) {
    if (poll(waits, std::size(waits), -1) < 0) continue;  // EINTR
    if (waits[0].revents != 0) return;
    if (waits[1].revents != 0 && interrupts_.take()) act_();
  }
}

}  // namespace sluice
