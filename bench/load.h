// The loads of wire_load. Each prints one line of JSON and returns an exit code.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace bench {

struct Load {
  std::shared_ptr<grpc::Channel> channel;
  int streams = 400;
  int max_tokens = 100;
  std::chrono::seconds duration{10};
  // Not 0: this many requests in all, whatever the duration, each a question of its own that is
  // answered greedily and past the model's end.
  int questions = 0;
};

// Keeps `streams` requests running over one Attach call for the duration; counts tokens and
// messages.
int attach(const Load& load);
// The same with one Generate call for each request, or with questions for a real model.
int generate(const Load& load);
// Opens `streams` requests that never end, says so once each of them is admitted, and holds them
// until standard input closes.
int hold_attach(const Load& load);
int hold_generate(const Load& load);
// Sends `questions` requests of one token one after the other, over gRPC or to a gateway; prints
// the median and the 99th percentile of the time that each takes.
int first_grpc(const Load& load);
int first_http(const std::string& address, int rounds);

}  // namespace bench
