// ChatSession: the conversation so far, and the request that asks for its next answer.
// Bounded by the server: a conversation that its context no longer holds is refused, and clear()
// begins anew. Thread: any one at a time.
#pragma once

#include <string>
#include <vector>

#include "contract/generation.h"
#include "tools/chat_options.h"

namespace inference {
class GenerateRequest;
}

namespace sluice {

class ChatSession {
 public:
  explicit ChatSession(const ChatOptions& options);

  // A request with the whole conversation and `prompt` behind it. The turn is part of the
  // conversation once it is answered.
  void ask(std::string prompt, inference::GenerateRequest& out);
  void answered(std::string answer);

  // Forgets all turns; files go along again with the next one.
  void clear() noexcept { turns_.clear(); }

 private:
  const ChatOptions& options_;
  std::vector<Message> turns_;
  Message asked_;
};

}  // namespace sluice
