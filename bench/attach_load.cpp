#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstdio>

#include "inference.grpc.pb.h"
#include "load.h"

namespace bench {
namespace {

void add_start(inference::AttachRequest& request, std::uint64_t id, int max_tokens) {
  inference::Start& start = *request.add_starts();
  start.set_id(id);
  start.mutable_request()->set_model("local");
  if (max_tokens > 0) start.mutable_request()->set_max_tokens(max_tokens);
  start.mutable_credit()->set_deltas(1 << 20);
  start.mutable_credit()->set_bytes(1 << 24);
}

}  // namespace

int attach(const Load& load) {
  const auto stub = inference::Replica::NewStub(load.channel);
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  inference::AttachRequest starts;
  for (int i = 0; i < load.streams; ++i)
    add_start(starts, static_cast<std::uint64_t>(i), load.max_tokens);
  stream->Write(starts);

  std::uint64_t tokens = 0, messages = 0, finished = 0, errors = 0;
  inference::StepBatch batch;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < load.duration && stream->Read(&batch)) {
    ++messages;
    starts.Clear();
    for (const auto& item : batch.items()) {
      if (item.has_response() && !item.response().delta().empty())
        ++tokens;  // paced: one token an item
      if (!item.has_status()) continue;
      item.status().code() == 0 ? ++finished : ++errors;
      add_start(starts, item.id(), load.max_tokens);
    }
    if (starts.starts_size() > 0) stream->Write(starts);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  context.TryCancel();
  std::printf(
      "{\"tokens\": %llu, \"messages\": %llu, \"finished\": %llu, \"errors\": %llu, \"seconds\": "
      "%.3f}\n",
      static_cast<unsigned long long>(tokens), static_cast<unsigned long long>(messages),
      static_cast<unsigned long long>(finished), static_cast<unsigned long long>(errors), seconds);
  return errors == 0 ? 0 : 1;
}

int hold_attach(const Load& load) {
  const auto stub = inference::Replica::NewStub(load.channel);
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  inference::AttachRequest starts;
  for (int i = 0; i < load.streams; ++i) add_start(starts, static_cast<std::uint64_t>(i), 0);
  stream->Write(starts);
  std::puts("{\"open\": true}");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  context.TryCancel();
  return 0;
}

}  // namespace bench
