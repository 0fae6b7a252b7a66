#include "replica/parse_message.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "base/concat.h"
#include "contract/utf8.h"
#include "replica/call.h"

namespace sluice {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

// As deep as libprotobuf's own parser goes.
constexpr int kMaxDepth = 100;

enum WireType : std::uint32_t { kVarint = 0, kFixed64, kBytes, kGroup, kGroupEnd, kFixed32 };

constexpr std::uint32_t tag_of(std::uint32_t number, WireType type) noexcept {
  return number << 3 | type;
}

// grpc::ProtoBufferReader only reads, but for its constructor's argument.
grpc::ByteBuffer* readable(const grpc::ByteBuffer& bytes) noexcept {
  return const_cast<grpc::ByteBuffer*>(&bytes);
}

// One walk over a message's wire format, led by its descriptor, that makes no objects.
class WireWalk {
 public:
  enum class Texts { kSkip, kCheck };

  WireWalk(const grpc::ByteBuffer& bytes, std::uint64_t most_values, Texts texts)
      : reader_(readable(bytes)),
        in_(&reader_),
        most_values_(most_values),
        check_texts_(texts == Texts::kCheck) {}

  // To the end, or to the first fault. What the parser will refuse anyway may pass.
  void run(const Descriptor& type) { static_cast<void>(fields(&type, 0, 0)); }

  // Fields, and elements of packed ones.
  [[nodiscard]] bool too_many() const noexcept { return values_ > most_values_; }
  // Path of the first string that is not UTF-8 ("messages[2].role"); empty: none.
  [[nodiscard]] const std::string& bad_text() const noexcept { return bad_text_; }

 private:
  // Each returns false where the walk ends before its time.
  [[nodiscard]] bool fields(const Descriptor* type, std::uint32_t end_tag, int depth);
  [[nodiscard]] bool value(const FieldDescriptor* field, std::uint32_t tag, int depth);
  [[nodiscard]] bool bytes(const FieldDescriptor* field, int depth);
  [[nodiscard]] bool text(int size);
  [[nodiscard]] bool packed(const FieldDescriptor& field, int size);

  grpc::ProtoBufferReader reader_;
  CodedInputStream in_;
  const std::uint64_t most_values_;
  const bool check_texts_;
  std::uint64_t values_ = 0;
  bool text_is_bad_ = false;
  std::string bad_text_;
};

// `type` is null within a field that is not known; `end_tag` is 0 but within a group.
bool WireWalk::fields(const Descriptor* type, std::uint32_t end_tag, int depth) {
  if (depth > kMaxDepth) return false;
  std::map<const FieldDescriptor*, std::uint32_t> seen;  // of repeated fields, for bad_text_
  while (true) {
    const std::uint32_t tag = in_.ReadTag();
    if (tag == end_tag) return tag != 0 || in_.ConsumedEntireMessage();
    if (tag == 0) return false;
    ++values_;
    if (too_many()) return false;
    const FieldDescriptor* field =
        type == nullptr ? nullptr : type->FindFieldByNumber(static_cast<int>(tag >> 3));
    const bool numbered = check_texts_ && field != nullptr && field->is_repeated();
    const std::uint32_t index = numbered ? seen[field]++ : 0;
    if (value(field, tag, depth)) continue;
    if (text_is_bad_) {
      const std::string place = numbered ? concat("[", index, "]") : std::string();
      bad_text_ = concat(field->name(), place, bad_text_.empty() ? "" : ".", bad_text_);
    }
    return false;
  }
}

bool WireWalk::value(const FieldDescriptor* field, std::uint32_t tag, int depth) {
  std::uint64_t varint = 0;
  switch (tag & 7) {
    case kVarint:
      return in_.ReadVarint64(&varint);
    case kFixed64:
      return in_.Skip(8);
    case kFixed32:
      return in_.Skip(4);
    case kBytes:
      return bytes(field, depth);
    case kGroup:
      return fields(nullptr, tag_of(tag >> 3, kGroupEnd), depth + 1);
  }
  return false;
}

bool WireWalk::bytes(const FieldDescriptor* field, int depth) {
  int size = 0;
  if (!in_.ReadVarintSizeAsInt(&size)) return false;
  if (field == nullptr) return in_.Skip(size);
  if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
    const CodedInputStream::Limit outer = in_.PushLimit(size);
    const bool whole = fields(field->message_type(), 0, depth + 1);
    in_.PopLimit(outer);
    return whole;
  }
  if (field->type() == FieldDescriptor::TYPE_STRING && check_texts_) return text(size);
  return field->is_packable() ? packed(*field, size) : in_.Skip(size);
}

bool WireWalk::text(int size) {
  std::string read;
  if (!in_.ReadString(&read, size)) return false;
  text_is_bad_ = find_invalid_utf8(read).has_value();
  return !text_is_bad_;
}

// Size of one element in bytes; 0: a varint.
int element_size(const FieldDescriptor& field) noexcept {
  switch (field.type()) {
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return 4;
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return 8;
    default:
      return 0;
  }
}

bool WireWalk::packed(const FieldDescriptor& field, int size) {
  if (const int each = element_size(field); each > 0) {
    values_ += static_cast<std::uint64_t>(size / each);
    return !too_many() && in_.Skip(size);
  }
  const void* data = nullptr;
  for (int got = 0; size > 0; size -= got) {
    if (!in_.GetDirectBufferPointer(&data, &got)) return false;
    got = std::min(got, size);
    const auto* const begin = static_cast<const std::uint8_t*>(data);
    values_ += static_cast<std::uint64_t>(
        std::count_if(begin, begin + got, [](std::uint8_t byte) { return byte < 0x80; }));
    if (too_many() || !in_.Skip(got)) return false;
  }
  return true;
}

Result<void> check_message_values(const grpc::ByteBuffer& bytes, const Limits& limits,
                                  const Descriptor& type) {
  if (bytes.Length() <= kFreeMessageBytes) return {};
  WireWalk walk(bytes, limits.max_message_values, WireWalk::Texts::kSkip);
  walk.run(type);
  if (!walk.too_many()) return {};
  return invalid(concat("the ", type.name(), " holds more than ", limits.max_message_values,
                        " fields and elements (--max-message-values)"));
}

Error why_unparsed(const grpc::ByteBuffer& bytes, const Limits& limits, const Descriptor& type) {
  WireWalk walk(bytes, limits.max_message_values, WireWalk::Texts::kCheck);
  walk.run(type);
  if (!walk.bad_text().empty())
    return {Code::kInvalidArgument, concat(walk.bad_text(), " is not valid UTF-8")};
  return {Code::kInvalidArgument, concat("the message is not a valid ", type.full_name())};
}

Result<void> parse(const grpc::ByteBuffer& bytes, const Limits& limits,
                   google::protobuf::Message& out) {
  grpc::ProtoBufferReader reader(readable(bytes));
  if (out.ParseFromZeroCopyStream(&reader)) return {};
  return tl::unexpected(why_unparsed(bytes, limits, *out.GetDescriptor()));
}

}  // namespace

Result<void> parse_message(const grpc::ByteBuffer& bytes, const Limits& limits,
                           google::protobuf::Message& out) {
  const Descriptor& type = *out.GetDescriptor();
  if (!bytes.Valid()) return invalid(concat("the call has no ", type.full_name()));
  if (auto fits = check_message_bytes(bytes.Length(), limits); !fits) return fits;
  if (auto few = check_message_values(bytes, limits, type); !few) return few;
  return parse(bytes, limits, out);
}

Result<void> parse_small_message(const grpc::ByteBuffer& bytes, google::protobuf::Message& out) {
  const std::string& type = out.GetDescriptor()->full_name();
  if (!bytes.Valid()) return invalid(concat("the call has no ", type));
  if (bytes.Length() <= kFreeMessageBytes) return parse(bytes, Limits{}, out);
  return fail(Code::kResourceExhausted, concat("the ", type, " has ", bytes.Length(), " bytes; ",
                                               kFreeMessageBytes, " are allowed"));
}

}  // namespace sluice
