// Interrupts: Ctrl-C as something that can be waited for, instead of a handler in which next to
// nothing is allowed. From its construction on SIGINT is blocked in this thread and in those
// started from it: make it before any other thread. Bounded: any number of Ctrl-C that nobody took
// yet count as one. Thread: any.
#pragma once

#include <functional>
#include <thread>

namespace sluice {

class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  // Readable when there was one.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  // Whether there was one; forgets it.
  bool take() noexcept;

 private:
  int descriptor_;
};

// While it lives, an interrupt is taken and calls `act` on a thread of its own.
class OnInterrupt {
 public:
  OnInterrupt(Interrupts& interrupts, std::function<void()> act);
  ~OnInterrupt();
  OnInterrupt(const OnInterrupt&) = delete;
  OnInterrupt& operator=(const OnInterrupt&) = delete;

 private:
  void watch() noexcept;

  Interrupts& interrupts_;
  const std::function<void()> act_;
  int end_;
  std::thread thread_;
};

}  // namespace sluice
