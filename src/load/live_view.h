// LiveView: how a run goes, while it goes, on stderr: some lines that are drawn anew in a terminal,
// a line a second elsewhere. Thread: one at a time.
#pragma once

#include "load/load_run.h"

namespace sluice {

class LiveView {
 public:
  explicit LiveView(bool terminal) noexcept : terminal_(terminal) {}
  ~LiveView();  // wipes what it drew
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  void show(const LiveFigures& figures);

 private:
  void wipe();

  const bool terminal_;
  int drawn_ = 0;  // lines
};

}  // namespace sluice
