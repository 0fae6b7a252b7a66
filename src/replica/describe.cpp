#include "replica/describe.h"

#include <cmath>
#include <cstdint>

#include "contract/limit_table.h"
#include "engine/engine.h"
#include "inference.pb.h"
#include "replica/context.h"

namespace sluice {
namespace {

class BoundList {
 public:
  explicit BoundList(inference::DescribeResponse& out) : out_(out) {}

  void operator()(const char* flag, std::uint64_t value, const char* unit, const char*) {
    inference::Bound& bound = *out_.add_bounds();
    bound.set_name(flag);
    bound.set_value(value);
    bound.set_unit(unit);
  }
  void operator()(const char* flag, std::chrono::milliseconds value, const char* unit,
                  const char* help) {
    (*this)(flag, static_cast<std::uint64_t>(value.count()), unit, help);
  }
  // The only bound with a fraction is a factor.
  void operator()(const char* flag, double value, const char*, const char* help) {
    (*this)(flag, static_cast<std::uint64_t>(std::llround(value * 100)), "percent", help);
  }
  void operator()(const char* flag, std::uint32_t value, const char* unit, const char* help) {
    (*this)(flag, std::uint64_t{value}, unit, help);
  }

 private:
  inference::DescribeResponse& out_;
};

}  // namespace

void describe(const ReplicaContext& replica, inference::DescribeResponse& out) {
  const EngineInfo& info = replica.engine.info();
  inference::Model& model = *out.add_models();
  model.set_name(info.model);
  model.add_aliases("local");
  model.set_context_tokens(info.context_tokens);
  model.set_vocabulary(info.vocabulary);
  model.set_embedding_size(info.embedding_size);
  model.set_engine(info.kind);
  visit_limits(replica.limits, BoundList(out));
  out.set_version(SLUICE_VERSION);
  out.set_attach(true);
  out.set_embeddings(info.embedding_size != 0);
  out.set_chat_template(info.has_chat_template);
  out.set_images(false);
  out.set_audio(false);
  out.set_tools(false);
  out.set_structured_output(false);
  out.set_prefix_cache(info.keeps_prefixes);
}

}  // namespace sluice
