// One part of a message's content, as bytes with their MIME type: text as it is, images, audio and
// files out of their base64. Nothing is ever fetched: a URL must be a data: URL. Whether the model
// can use the type is the replica's to say. Thread: any.
#pragma once

#include "contract/generation.h"
#include "gateway/openai_fields.h"

namespace sluice {

// Chat's names of the types and those of /v1/responses ("input_text") mean the same.
[[nodiscard]] Part read_part(Fields& part);

}  // namespace sluice
