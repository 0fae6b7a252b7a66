// ChatServer: the server at the other end of a chat, and one answer from it at a time.
// Bounded by its messages' 50 MiB and the call's deadline, if any. The stream is read as fast as it
// is shown, no faster. Thread: any one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "tools/chat_options.h"
#include "tools/interrupts.h"

namespace grpc {
class Channel;
}
namespace inference {
class GenerateRequest;
}

namespace sluice {

struct Answer {
  std::string text;  // exact bytes
  std::uint32_t tokens = 0;
  Duration to_first_token{};
  Duration decoding{};     // from the first message to the last
  bool cancelled = false;  // by Ctrl-C

  // After the first token.
  [[nodiscard]] double tokens_per_second() const noexcept;
};

// A lazy connection; plain text unless there are TLS files.
[[nodiscard]] std::shared_ptr<grpc::Channel> open_channel(const std::string& address,
                                                          const std::optional<TlsPem>& tls);

// Whether a gRPC server answers there. Where nothing listens this is known at once.
[[nodiscard]] bool answers(grpc::Channel& channel, Duration within);

class ChatServer {
 public:
  // `options` outlives it.
  ChatServer(std::shared_ptr<grpc::Channel> channel, const ChatOptions& options);

  // Passes each delta to `show` as it comes, until it says false: then the call is cancelled and
  // the error is kCancelled. Ctrl-C cancels it, too; then the answer is what had come by then.
  [[nodiscard]] Result<Answer> generate(const inference::GenerateRequest& request,
                                        Interrupts& interrupts,
                                        const std::function<bool(std::string_view)>& show);

 private:
  std::shared_ptr<grpc::Channel> channel_;
  const ChatOptions& options_;
};

}  // namespace sluice
