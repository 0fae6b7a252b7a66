// Tokens per second of the real engine at 1, 8 and 32 sequences: forward passes and sampling,
// nothing else. To be held beside `llama-batched-bench -npp 128 -ntg 64 -npl 1,8,32` of the same
// tree and with the same settings, in the same run.
//
//   llama_engine_bench MODEL [name=value ...]
//     kv=f16|q8_0  fa=0|1  unified=0|1  context=N  temperature=T  top_p=P
//     prompt=N: tokens of each prompt (128)  rows=N: at most so many of it in one step (512)
//     sequences=N: no more than that
//     gaps=0|1: only every second slot is used, as after many sequences have ended
#include "engine/llama_engine.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace sluice {
namespace {

constexpr int kAnswerTokens = 64;

using Arguments = std::map<std::string, std::string>;

std::string argument(const Arguments& arguments, const std::string& name,
                     const std::string& otherwise) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? otherwise : found->second;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Sequence {
  Slot slot{};
  std::vector<Token> tokens;
  std::size_t computed = 0;
  std::unique_ptr<SamplerState> sampler;
};

std::vector<Sequence> make_sequences(const Engine& engine, int count, int slot_distance,
                                     std::size_t prompt_tokens, const Sampling& sampling) {
  std::vector<Sequence> sequences;
  for (int i = 0; i < count; ++i) {
    PromptSource source;
    source.raw = "Chapter " + std::to_string(i) + ". ";
    while (source.raw->size() < 8 * prompt_tokens)
      *source.raw += "The sea was calm and the boat went on to the west. ";
    Sequence sequence{Slot{i * slot_distance}, *engine.tokenize(source), 0, nullptr};
    sequence.tokens.resize(prompt_tokens);
    sequence.sampler = engine.make_sampler(sampling, 0, sequence.tokens);
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

// What is not computed yet of sequences `begin` … `end` - 1, at most `rows` of each, in one step.
void step(Engine& engine, std::vector<Sequence>& sequences, std::size_t begin, std::size_t end,
          std::size_t rows) {
  Batch batch;
  for (std::size_t i = begin; i < end; ++i) {
    const Sequence& sequence = sequences[i];
    const auto owed = std::span(sequence.tokens).subspan(sequence.computed);
    const bool last = owed.size() <= rows;
    batch.work.push_back({sequence.slot, static_cast<std::int32_t>(sequence.computed),
                          last ? owed : owed.first(rows), last,
                          last ? sequence.sampler.get() : nullptr, false});
  }
  static StepResult result;
  engine.step(batch, nullptr, result);
  if (result.status != StepStatus::kDone) {
    std::fprintf(stderr, "step failed: %s\n", result.message.c_str());
    std::exit(1);
  }
  for (std::size_t i = begin, sampled = 0; i < end; ++i) {
    const Work& work = batch.work[i - begin];
    sequences[i].computed += work.tokens.size();
    if (work.sample) sequences[i].tokens.push_back(result.sampled[sampled++].token);
  }
}

struct Shape {
  int sequences = 1;
  int slot_distance = 1;
  std::size_t prompt_tokens = 128;
  std::size_t prefill_rows = 512;  // in one step
};

void measure(Engine& engine, const Shape& shape, const Sampling& sampling) {
  std::vector<Sequence> sequences =
      make_sequences(engine, shape.sequences, shape.slot_distance, shape.prompt_tokens, sampling);
  const std::size_t prompts_a_step =
      std::max<std::size_t>(1, shape.prefill_rows / shape.prompt_tokens);
  const auto prefill = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < sequences.size(); i += prompts_a_step) {
    while (sequences[i].computed < shape.prompt_tokens) {
      step(engine, sequences, i, std::min(sequences.size(), i + prompts_a_step),
           shape.prefill_rows);
    }
  }
  const double prefill_seconds = seconds_since(prefill);
  const auto decode = std::chrono::steady_clock::now();
  for (int i = 0; i < kAnswerTokens; ++i) step(engine, sequences, 0, sequences.size(), 1);
  const double decode_seconds = seconds_since(decode);
  std::printf(
      "%2d sequences: prefill %7.1f tokens/s, decode %7.1f tokens/s, %6.2f ms a step\n",
      shape.sequences, shape.sequences * static_cast<double>(shape.prompt_tokens) / prefill_seconds,
      shape.sequences * kAnswerTokens / decode_seconds, decode_seconds * 1000 / kAnswerTokens);
  for (const Sequence& sequence : sequences) engine.release(sequence.slot);
}

int run(const std::string& model, const Arguments& arguments) {
  LlamaOptions options;
  options.model_path = model;
  options.context_tokens =
      static_cast<std::uint32_t>(std::stoul(argument(arguments, "context", "2048")));
  options.kv_type = argument(arguments, "kv", "q8_0") == "f16" ? KvType::kF16 : KvType::kQ8_0;
  options.flash_attention = argument(arguments, "fa", "1") == "1";
  options.unified_kv = argument(arguments, "unified", "0") == "1";
  if (options.unified_kv) options.context_tokens = 8192;
  const bool gaps = argument(arguments, "gaps", "0") == "1";
  const int most = std::stoi(argument(arguments, "sequences", "32"));
  Sampling sampling;
  sampling.temperature = std::stof(argument(arguments, "temperature", "0"));
  sampling.top_p = std::stof(argument(arguments, "top_p", "1"));
  sampling.seed = 1;

  const auto start = std::chrono::steady_clock::now();
  Result<std::unique_ptr<Engine>> engine = make_llama_engine(options);
  if (!engine) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  std::printf("started in %.2f s\n", seconds_since(start));
  for (const int count : {1, 8, 32}) {
    if (count > most || (gaps && count > 16)) continue;
    measure(**engine,
            {.sequences = count,
             .slot_distance = gaps ? 2 : 1,
             .prompt_tokens = std::stoul(argument(arguments, "prompt", "128")),
             .prefill_rows = std::stoul(argument(arguments, "rows", "512"))},
            sampling);
  }
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: llama_engine_bench MODEL [name=value …]\n");
    return 1;
  }
  sluice::Arguments arguments;
  for (int i = 2; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    arguments[text.substr(0, equals)] = equals == std::string::npos ? "1" : text.substr(equals + 1);
  }
  return sluice::run(argv[1], arguments);
}
