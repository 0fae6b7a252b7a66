// ChatOptions: what the command line of `sluice chat` says, with the files it names read.
// Thread: any (values).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"

namespace sluice {

struct TlsPem {  // their content, PEM
  std::string authority;
  std::string certificate;
  std::string key;
};

struct ChatOptions {
  std::optional<std::string> server;  // absent: the default address, or a model in this process
  std::string model = "local";
  std::string system;
  std::vector<Part> files;  // sent with the first prompt
  std::optional<std::string> prompt;
  // As the default model's card has it: at the contract's temperature of 1 a small model babbles.
  float temperature = 0.2F;
  float top_p = 0.9F;
  std::optional<std::int32_t> max_tokens;
  std::optional<std::uint64_t> seed;
  std::optional<std::chrono::milliseconds> timeout;  // of each answer
  std::string api_key;
  std::optional<TlsPem> tls;
};

// argv[0] is "chat". Nothing: --help was answered. Errors name the flag, and the file that can't be
// read or that no message could hold.
[[nodiscard]] Result<std::optional<ChatOptions>> parse_chat_options(int argc, char** argv);

}  // namespace sluice
