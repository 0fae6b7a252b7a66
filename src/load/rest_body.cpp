#include <boost/json.hpp>

#include "contract/wire_client.h"
#include "load/rest_target.h"

namespace sluice {

std::string rest_body(const GenerationRequest& request) {
  namespace json = boost::json;
  json::array messages;
  for (const Message& message : request.prompt.messages) {
    std::string content;
    for (const Part& part : message.parts) content += part.bytes;
    messages.push_back(json::object{{"role", role_name(message.role)}, {"content", content}});
  }
  json::object body{{"model", request.model},
                    {"messages", std::move(messages)},
                    {"stream", true},
                    {"stream_options", {{"include_usage", true}}},
                    {"temperature", request.sampling.temperature}};
  if (request.stopping.max_tokens) body["max_tokens"] = *request.stopping.max_tokens;
  if (request.sampling.top_p != 1) body["top_p"] = request.sampling.top_p;
  if (request.sampling.seed) body["seed"] = *request.sampling.seed;
  if (request.stopping.ignore_eos) body["ignore_eos"] = true;
  return json::serialize(body);
}

}  // namespace sluice
