// Mutex, MutexLock, CondVar: std's, with the annotations by which clang proves who holds what
// (-Wthread-safety). ThreadRole: a capability that stands for "this code runs on that thread"; it
// has no cost and no run-time check. std::mutex and not absl's: TSan sees false races through
// Debian's absl::Mutex.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SLUICE_ANNOTATION(x) __attribute__((x))
#else
#define SLUICE_ANNOTATION(x)
#endif
#define CAPABILITY(name) SLUICE_ANNOTATION(capability(name))
#define SCOPED_CAPABILITY SLUICE_ANNOTATION(scoped_lockable)
#undef GUARDED_BY  // absl, behind gRPC's headers, defines it as the same
#define GUARDED_BY(x) SLUICE_ANNOTATION(guarded_by(x))
#define REQUIRES(...) SLUICE_ANNOTATION(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) SLUICE_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) SLUICE_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SLUICE_ANNOTATION(release_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(x) SLUICE_ANNOTATION(assert_capability(x))

namespace sluice {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

class CondVar {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  // Spurious wake-ups happen: call it in a loop that tests the condition.
  void wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait(held);
    held.release();
  }

  void wait_until(Mutex& mutex, std::chrono::steady_clock::time_point when) REQUIRES(mutex) {
    std::unique_lock<std::mutex> held(mutex.mutex_, std::adopt_lock);
    condition_.wait_until(held, when);
    held.release();
  }

 private:
  std::condition_variable condition_;
};

// A thread's part in the program, e.g. `inline ThreadRole engine_thread;`: functions that REQUIRE
// it may only be called from code that entered it with ThreadRoleScope at the thread's start.
class CAPABILITY("role") ThreadRole {};

class SCOPED_CAPABILITY ThreadRoleScope {
 public:
  explicit ThreadRoleScope(ThreadRole& role) ACQUIRE(role) { (void)role; }
  ~ThreadRoleScope() RELEASE() {}
  ThreadRoleScope(const ThreadRoleScope&) = delete;
  ThreadRoleScope& operator=(const ThreadRoleScope&) = delete;
};

}  // namespace sluice
