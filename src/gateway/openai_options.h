// The options that chat, completions and responses share: sampling, when to stop, how to stream.
// Ranges are contract/validate's business, at the replica. Thread: any.
#pragma once

#include "contract/generation.h"
#include "gateway/openai_fields.h"
#include "gateway/openai_request.h"

namespace sluice {

// A bound of tokens by the name that the client gave it. What it can't be is refused here, since a
// replica would call it max_tokens.
void read_token_bound(Fields& fields, std::string_view name, Stopping& stopping);

void read_sampling(Fields& fields, Sampling& sampling);
void read_stopping(Fields& fields, Stopping& stopping);
void read_streaming(Fields& fields, AnswerShape& shape);

// How many choices each prompt gets; `prompts` times that is bounded by --max-choices.
[[nodiscard]] std::int32_t read_n(Fields& fields, std::size_t prompts, const GatewayLimits& limits);

// How long to think and to talk: what a model that does neither by request takes, as OpenAI's do.
void refuse_other_than(Fields& fields, std::string_view name, std::string_view served);

// Tools that the model could call, and formats that it would have to keep to.
void refuse_tools(Fields& fields);
void refuse_format(Fields& fields, std::string_view name);
// The same by OpenAI's, vLLM's and llama.cpp's names.
void refuse_constraints(Fields& fields);

}  // namespace sluice
