#include "tools/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <utility>

namespace sluice {

LineReader::Input LineReader::read(std::string_view prompt) {
  std::fwrite(prompt.data(), 1, prompt.size(), stderr);
  for (;;) {
    if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
      Input input{Kind::kLine, pending_.substr(0, end)};
      pending_.erase(0, end + 1);
      return input;
    }
    switch (fill()) {
      case Kind::kLine:
        break;
      case Kind::kInterrupt:
        pending_.clear();  // the terminal, too, drops what was typed
        return {Kind::kInterrupt, {}};
      case Kind::kEnd:
        if (pending_.empty()) return {Kind::kEnd, {}};
        return {Kind::kLine, std::exchange(pending_, {})};
    }
  }
}

LineReader::Kind LineReader::fill() {
  pollfd waits[] = {{interrupts_.descriptor(), POLLIN, 0}, {descriptor_, POLLIN, 0}};
  while (poll(waits, std::size(waits), -1) < 0 && errno == EINTR) {
  }
  if (waits[0].revents != 0 && interrupts_.take()) return Kind::kInterrupt;
  std::array<char, 4096> chunk;
  const ssize_t size = ::read(descriptor_, chunk.data(), chunk.size());
  if (size < 0 && errno == EINTR) return Kind::kLine;
  if (size <= 0) return Kind::kEnd;
  pending_.append(chunk.data(), static_cast<std::size_t>(size));
  return Kind::kLine;
}

}  // namespace sluice
