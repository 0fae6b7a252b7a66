// The peer of our own cost: gRPC's callback server with nothing behind it. Each Generate call gets
// max_tokens messages, one a token: as fast as they are taken, or one each STEP_MS, all calls at
// the same time. A call without max_tokens stays open and gets none. Usage: bare_server PORT
// [STEP_MS]
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "inference.grpc.pb.h"

namespace {

class Reactor;

// Those that wait for the next step.
class Pace {
 public:
  explicit Pace(std::chrono::milliseconds step) : step_(step) {}

  // False: there is no pace.
  bool await_step(Reactor* call) {
    if (step_.count() == 0) return false;
    const std::lock_guard lock(mutex_);
    waiting_.push_back(call);
    return true;
  }

  void run();

 private:
  const std::chrono::milliseconds step_;
  std::mutex mutex_;
  std::vector<Reactor*> waiting_;
};

class Reactor final : public grpc::ServerWriteReactor<inference::GenerateResponse> {
 public:
  Reactor(Pace& pace, const inference::GenerateRequest& request)
      : pace_(pace), left_(request.max_tokens()) {
    message_.set_delta("token ");
    if (request.has_max_tokens()) next();
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    if (!pace_.await_step(this)) next();
  }
  void OnCancel() override {
    if (left_ == 0) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

  void next() {
    message_.set_completion_tokens(message_.completion_tokens() + 1);
    if (--left_ > 0) return StartWrite(&message_);
    message_.set_done(true);
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }

 private:
  Pace& pace_;
  int left_;
  inference::GenerateResponse message_;
};

void Pace::run() {
  std::vector<Reactor*> due;
  for (auto when = std::chrono::steady_clock::now();;) {
    std::this_thread::sleep_until(when += step_);
    {
      const std::lock_guard lock(mutex_);
      due.swap(waiting_);
    }
    for (Reactor* const call : due) call->next();
    due.clear();
  }
}

class Service final : public inference::LLM::CallbackService {
 public:
  explicit Service(Pace& pace) : pace_(pace) {}

 private:
  grpc::ServerWriteReactor<inference::GenerateResponse>* Generate(
      grpc::CallbackServerContext*, const inference::GenerateRequest* request) override {
    return new Reactor(pace_, *request);
  }

  Pace& pace_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) return std::fputs("usage: bare_server PORT [STEP_MS]\n", stderr), 1;
  const std::chrono::milliseconds step(argc == 3 ? std::atoi(argv[2]) : 0);
  Pace pace(step);
  Service service(pace);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return std::fputs("bare_server: the port is in use\n", stderr), 1;
  std::puts("ready");
  std::fflush(stdout);
  if (step.count() > 0) pace.run();
  server->Wait();
}
