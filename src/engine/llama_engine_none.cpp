// Stands in for llama_engine.cpp in builds without llama.cpp's source (SLUICE_LLAMA_SOURCE is
// empty).
#include "engine/llama_engine.h"

namespace sluice {

Result<std::unique_ptr<Engine>> make_llama_engine(const LlamaOptions&) {
  return fail(Code::kUnimplemented,
              "this build can't load models: it was made without llama.cpp's source");
}

}  // namespace sluice
