#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "inference.grpc.pb.h"
#include "load.h"

namespace bench {
namespace {

struct Counts {
  std::atomic<int> asked = 0;
  std::atomic<std::uint64_t> tokens = 0, messages = 0, finished = 0, errors = 0;
};

// One call after the other, until the time is over or all questions are asked; then counts down
// `done`.
class Caller final : public grpc::ClientReadReactor<inference::GenerateResponse> {
 public:
  Caller(inference::LLM::Stub& stub, const Load& load, std::chrono::steady_clock::time_point until,
         Counts& counts, std::latch& done)
      : stub_(stub), questions_(load.questions), until_(until), counts_(counts), done_(done) {
    request_.set_model("local");
    request_.set_max_tokens(load.max_tokens);
    if (questions_ == 0) return;
    request_.add_messages()->set_role("user");
    request_.set_temperature(0);
    request_.set_ignore_eos(true);
  }

  void call() {
    context_ = std::make_unique<grpc::ClientContext>();
    told_ = 0;
    const int nth = ++counts_.asked;
    if (questions_ > 0) {
      const std::string number = std::to_string(nth);
      request_.mutable_messages(0)->set_content(number + ": what is remarkable about the number " +
                                                number + "?");
    }
    stub_.async()->Generate(context_.get(), &request_, this);
    StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++counts_.messages;
    counts_.tokens += response_.completion_tokens() - told_;
    told_ = response_.completion_tokens();
    StartRead(&response_);
  }

  void OnDone(const grpc::Status& status) override {
    ++(status.ok() ? counts_.finished : counts_.errors);
    const bool more =
        questions_ > 0 ? counts_.asked < questions_ : std::chrono::steady_clock::now() < until_;
    more ? call() : done_.count_down();
  }

 private:
  inference::LLM::Stub& stub_;
  const int questions_;
  const std::chrono::steady_clock::time_point until_;
  Counts& counts_;
  std::latch& done_;
  std::unique_ptr<grpc::ClientContext> context_;
  inference::GenerateRequest request_;
  inference::GenerateResponse response_;
  std::uint32_t told_ = 0;
};

// A call that stays open.
class Holder final : public grpc::ClientReadReactor<inference::GenerateResponse> {
 public:
  Holder(inference::LLM::Stub& stub, std::latch& done) : done_(done) {
    request_.set_model("local");
    stub.async()->Generate(&context_, &request_, this);
    StartRead(&response_);
    StartCall();
  }
  void cancel() { context_.TryCancel(); }
  void OnDone(const grpc::Status&) override { done_.count_down(); }

 private:
  std::latch& done_;
  grpc::ClientContext context_;
  inference::GenerateRequest request_;
  inference::GenerateResponse response_;
};

}  // namespace

int generate(const Load& load) {
  const auto stub = inference::LLM::NewStub(load.channel);
  Counts counts;
  std::latch done(load.streams);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < load.streams; ++i) {
    callers.push_back(std::make_unique<Caller>(*stub, load, begin + load.duration, counts, done));
    callers.back()->call();
  }
  done.wait();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "{\"tokens\": %llu, \"messages\": %llu, \"finished\": %llu, \"errors\": %llu, \"seconds\": "
      "%.3f}\n",
      static_cast<unsigned long long>(counts.tokens),
      static_cast<unsigned long long>(counts.messages),
      static_cast<unsigned long long>(counts.finished),
      static_cast<unsigned long long>(counts.errors), seconds);
  return counts.errors == 0 ? 0 : 1;
}

int hold_generate(const Load& load) {
  const auto stub = inference::LLM::NewStub(load.channel);
  std::latch done(load.streams);
  std::vector<std::unique_ptr<Holder>> holders;
  for (int i = 0; i < load.streams; ++i) holders.push_back(std::make_unique<Holder>(*stub, done));
  std::puts("{\"open\": true}");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  for (const auto& holder : holders) holder->cancel();
  done.wait();
  return 0;
}

}  // namespace bench
