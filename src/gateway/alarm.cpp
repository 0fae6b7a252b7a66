#include "gateway/alarm.h"

namespace sluice {

void Alarm::set(TimePoint when) {
  if (when >= ringing_->armed_for) return;
  ringing_->armed_for = when;
  ringing_->timer.expires_at(when);
  ringing_->timer.async_wait([weak = std::weak_ptr(ringing_), when](boost::system::error_code) {
    const auto ringing = weak.lock();
    if (!ringing || ringing->armed_for != when) return;
    ringing->armed_for = kForever;
    ringing->target.notify();
  });
}

}  // namespace sluice
