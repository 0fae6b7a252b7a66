// Nanoseconds for each streamed delta of about four bytes, in each dialect, and for a small chat
// body parsed.
#include "gateway/openai_response.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <string_view>

#include "gateway/openai_request.h"

namespace sluice {
namespace {

void encode_deltas(benchmark::State& state, Dialect dialect, std::string_view piece) {
  AnswerShape shape;
  shape.dialect = dialect;
  shape.stream = true;
  AnswerEncoder encoder(shape, "0123456789abcdef01234567", std::chrono::system_clock::now(), 1);
  ReceivedDelta received;
  received.delta.tokens = 1;
  received.delta.bytes = piece;
  received.prompt_tokens = 100;
  received.model = "smollm2-135m-instruct";
  std::string out;
  for (auto _ : state) {
    out.clear();
    encoder.add(received, 0, out);
    benchmark::DoNotOptimize(out.data());
  }
}

void chat_delta(benchmark::State& state) { encode_deltas(state, Dialect::kChat, " the"); }
void chat_delta_cut(benchmark::State& state) {
  encode_deltas(state, Dialect::kChat, "\x98\x80\xF0\x9F");
}
void completion_delta(benchmark::State& state) {
  encode_deltas(state, Dialect::kCompletion, " the");
}
void chat_request(benchmark::State& state) {
  HttpRequest request;
  request.body = R"({"model":"local","messages":[{"role":"system","content":"You are brief."},)"
                 R"({"role":"user","content":"What is the capital of France?"}],"stream":true,)"
                 R"("temperature":0.7,"max_tokens":64,"stream_options":{"include_usage":true}})";
  const GatewayLimits limits;
  for (auto _ : state) benchmark::DoNotOptimize(parse_chat(request, limits, false));
}

BENCHMARK(chat_delta);
BENCHMARK(chat_delta_cut);
BENCHMARK(completion_delta);
BENCHMARK(chat_request);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
