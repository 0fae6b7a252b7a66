#include "gateway/openai_assembly.h"

#include <utility>

namespace sluice {

OpenAiRequest assemble(Fields& fields, const HttpRequest& request, bool trusted, AnswerShape shape,
                       const CacheMarks& marks, std::vector<GenerationRequest> generations) {
  Directives directives = read_directives(fields, request.headers, trusted);
  CacheHints cache = read_cache_hints(fields, request.headers, marks);
  cache.no_store |= directives.routing.keep_nothing;

  OpenAiRequest assembled;
  assembled.unknown_fields = settle_unknown_fields(fields, directives.routing);
  if (!directives.routing.models.empty()) shape.model = directives.routing.models.front();
  if (directives.routing.affinity.empty() && !generations.empty()) {
    directives.routing.affinity = prompt_affinity(generations.front().prompt);
  }
  for (GenerationRequest& generation : generations) {
    generation.model = shape.model;
    generation.priority = directives.priority;
    generation.session_id = directives.session_id;
    generation.cache = cache;
  }
  shape.service_tier = std::move(directives.service_tier);
  assembled.generations = std::move(generations);
  assembled.shape = std::move(shape);
  assembled.routing = std::move(directives.routing);
  assembled.warnings = std::move(directives.warnings);
  return assembled;
}

}  // namespace sluice
