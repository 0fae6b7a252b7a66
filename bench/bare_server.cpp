// The peer of our own cost: gRPC's callback server with nothing behind it. Each Generate call gets
// max_tokens messages, one a token, as fast as they are taken; a call without max_tokens stays open
// and gets none. Usage: bare_server PORT
#include <grpcpp/grpcpp.h>

#include <cstdio>
#include <string>

#include "inference.grpc.pb.h"

namespace {

class Reactor final : public grpc::ServerWriteReactor<inference::GenerateResponse> {
 public:
  explicit Reactor(const inference::GenerateRequest& request) : left_(request.max_tokens()) {
    message_.set_delta("token ");
    if (request.has_max_tokens()) next();
  }
  void OnWriteDone(bool ok) override { ok ? next() : Finish(grpc::Status::CANCELLED); }
  void OnCancel() override {
    if (left_ == 0) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

 private:
  void next() {
    message_.set_completion_tokens(message_.completion_tokens() + 1);
    if (--left_ > 0) return StartWrite(&message_);
    message_.set_done(true);
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }

  int left_;
  inference::GenerateResponse message_;
};

class Service final : public inference::LLM::CallbackService {
  grpc::ServerWriteReactor<inference::GenerateResponse>* Generate(
      grpc::CallbackServerContext*, const inference::GenerateRequest* request) override {
    return new Reactor(*request);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: bare_server PORT\n", stderr), 1;
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(std::string("127.0.0.1:") + argv[1], grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return std::fputs("bare_server: the port is in use\n", stderr), 1;
  std::puts("ready");
  std::fflush(stdout);
  server->Wait();
}
