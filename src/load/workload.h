// Workload: the requests of a run. Request number i is the same for the same options whichever
// thread asks for it and whatever came before: its random numbers are drawn from (seed, i).
// Bounded by the prompts file, read once. Thread: any.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "contract/generation.h"
#include "load/load_options.h"

namespace sluice {

class LoadRandom;

struct PlannedRequest {
  GenerationRequest request;
  std::optional<double> read_tokens_per_second;  // of a slow reader
  std::optional<std::uint32_t> cancel_after_tokens;
  std::optional<std::chrono::milliseconds> cancel_after;
};

class Workload {
 public:
  // Errors name the flag, of prompts the line.
  [[nodiscard]] static Result<Workload> make(const WorkloadOptions& options);

  [[nodiscard]] PlannedRequest request(std::uint64_t number) const;

 private:
  struct FilePrompt {
    std::vector<Message> messages;
    std::optional<std::int32_t> output_tokens;
  };
  explicit Workload(const WorkloadOptions& options);
  [[nodiscard]] static Result<std::vector<FilePrompt>> read_prompts(const std::string& text);
  void add_prompt(std::uint64_t number, LoadRandom& random, GenerationRequest& request) const;

  WorkloadOptions options_;
  std::vector<std::string> prefixes_;  // one for each group
  std::vector<FilePrompt> prompts_;
};

}  // namespace sluice
