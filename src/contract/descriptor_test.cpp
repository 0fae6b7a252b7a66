// The contract never breaks: tests/contract/inference.descriptor is what was promised, and
// proto/inference.proto may only add. After a change on purpose: SLUICE_UPDATE_GOLDEN=1
// descriptor_test writes the new promise, if it keeps the old one.
#include <gmock/gmock.h>
#include <google/protobuf/compiler/parser.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "inference.pb.h"

namespace sluice {
namespace {

namespace pb = google::protobuf;
using Breaks = std::vector<std::string>;

std::string type_of(const pb::FieldDescriptor& field) {
  std::string type = field.is_repeated() ? "repeated " : field.has_presence() ? "optional " : "";
  type += field.type_name();
  if (field.message_type() != nullptr) type += " " + field.message_type()->full_name();
  if (field.enum_type() != nullptr) type += " " + field.enum_type()->full_name();
  if (const auto* oneof = field.real_containing_oneof()) type += " in oneof " + oneof->name();
  return type;
}

void compare(const pb::EnumDescriptor& before, const pb::EnumDescriptor& after, Breaks& breaks) {
  for (int i = 0; i < before.value_count(); ++i) {
    const pb::EnumValueDescriptor& value = *before.value(i);
    const auto* now = after.FindValueByName(value.name());
    const bool reserved =
        after.IsReservedNumber(value.number()) && after.IsReservedName(value.name());
    if (now == nullptr ? !reserved : now->number() != value.number()) {
      breaks.push_back(value.full_name());
    }
  }
}

void compare(const pb::FieldDescriptor& before, const pb::Descriptor& owner, Breaks& breaks) {
  const pb::FieldDescriptor* now = owner.FindFieldByNumber(before.number());
  if (now == nullptr) {
    if (owner.IsReservedNumber(before.number()) && owner.IsReservedName(before.name())) return;
    breaks.push_back(before.full_name() + " is gone and not reserved");
  } else if (now->name() != before.name() || type_of(*now) != type_of(before)) {
    breaks.push_back(before.full_name() + " became " + now->name() + ", " + type_of(*now));
  }
}

void compare(const pb::MethodDescriptor& before, const pb::ServiceDescriptor& owner,
             Breaks& breaks) {
  const pb::MethodDescriptor* now = owner.FindMethodByName(before.name());
  const bool same = now != nullptr && now->client_streaming() == before.client_streaming() &&
                    now->server_streaming() == before.server_streaming() &&
                    now->input_type()->full_name() == before.input_type()->full_name() &&
                    now->output_type()->full_name() == before.output_type()->full_name();
  if (!same) breaks.push_back(before.full_name());
}

// Messages and enums are found by name in a file and in a message alike.
template <typename Scope>
void compare_enums(const Scope& before, const Scope& after, Breaks& breaks) {
  for (int i = 0; i < before.enum_type_count(); ++i) {
    const auto* now = after.FindEnumTypeByName(before.enum_type(i)->name());
    if (now == nullptr) {
      breaks.push_back(before.enum_type(i)->full_name());
    } else {
      compare(*before.enum_type(i), *now, breaks);
    }
  }
}

void compare(const pb::Descriptor& before, const pb::Descriptor& after, Breaks& breaks) {
  for (int i = 0; i < before.field_count(); ++i) compare(*before.field(i), after, breaks);
  compare_enums(before, after, breaks);
  for (int i = 0; i < before.nested_type_count(); ++i) {
    const auto* now = after.FindNestedTypeByName(before.nested_type(i)->name());
    if (now == nullptr) {
      breaks.push_back(before.nested_type(i)->full_name());
    } else {
      compare(*before.nested_type(i), *now, breaks);
    }
  }
}

// What `before` promised and `after` does not keep.
Breaks find_breaks(const pb::FileDescriptor& before, const pb::FileDescriptor& after) {
  Breaks breaks;
  if (before.package() != after.package()) breaks.push_back("package " + after.package());
  for (int i = 0; i < before.message_type_count(); ++i) {
    const auto* now = after.FindMessageTypeByName(before.message_type(i)->name());
    if (now == nullptr) {
      breaks.push_back(before.message_type(i)->full_name());
    } else {
      compare(*before.message_type(i), *now, breaks);
    }
  }
  compare_enums(before, after, breaks);
  for (int i = 0; i < before.service_count(); ++i) {
    const auto* now = after.FindServiceByName(before.service(i)->name());
    if (now == nullptr) {
      breaks.push_back(before.service(i)->full_name());
      continue;
    }
    for (int j = 0; j < before.service(i)->method_count(); ++j) {
      compare(*before.service(i)->method(j), *now, breaks);
    }
  }
  return breaks;
}

// A contract from its text, in a pool of its own.
class Contract {
 public:
  explicit Contract(const std::string& text) {
    pb::io::ArrayInputStream bytes(text.data(), static_cast<int>(text.size()));
    pb::io::Tokenizer tokenizer(&bytes, nullptr);
    pb::FileDescriptorProto parsed;
    EXPECT_TRUE(pb::compiler::Parser().Parse(&tokenizer, &parsed)) << text;
    parsed.set_name("contract.proto");
    file_ = pool_.BuildFile(parsed);
    EXPECT_NE(file_, nullptr) << text;
  }
  [[nodiscard]] const pb::FileDescriptor& file() const { return *file_; }

 private:
  pb::DescriptorPool pool_;
  const pb::FileDescriptor* file_;
};

std::string read_golden() {
  std::ifstream file(SLUICE_GOLDEN_DESCRIPTOR);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Descriptor, TheContractKeepsWhatItPromised) {
  const Contract golden(read_golden());
  EXPECT_THAT(find_breaks(golden.file(), *inference::GenerateRequest::descriptor()->file()),
              testing::IsEmpty());
}

TEST(Descriptor, TheGoldenFileIsTheContract) {
  const std::string now = inference::GenerateRequest::descriptor()->file()->DebugString();
  const char* const update = std::getenv("SLUICE_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    const Contract golden(read_golden());
    ASSERT_THAT(find_breaks(golden.file(), *inference::GenerateRequest::descriptor()->file()),
                testing::IsEmpty())
        << "an incompatible contract is not written";
    std::ofstream(SLUICE_GOLDEN_DESCRIPTOR) << now;
  }
  EXPECT_EQ(read_golden(), now) << "on purpose? SLUICE_UPDATE_GOLDEN=1 descriptor_test writes it";
}

TEST(Descriptor, OnlyAdditionsAreCompatible) {
  const Contract before(R"(syntax = "proto3"; package p;
    enum E { E_ZERO = 0; E_ONE = 1; }
    message M { string a = 1; optional int32 b = 2; }
    service S { rpc Go(M) returns (stream M); })");
  const std::string head = R"(syntax = "proto3"; package p; )";
  const std::string e = "enum E { E_ZERO = 0; E_ONE = 1; } ";
  const std::string m = "message M { string a = 1; optional int32 b = 2; } ";
  const std::string s = "service S { rpc Go(M) returns (stream M); } ";
  const std::vector<std::tuple<const char*, std::string, bool>> changes = {
      {"nothing", head + e + m + s, false},
      {"all added to",
       head + "enum E { E_ZERO = 0; E_ONE = 1; E_TWO = 2; }"
              "message M { string a = 1; optional int32 b = 2; bytes c = 3; } message N {}"
              "service S { rpc Go(M) returns (stream M); rpc Stop(N) returns (N); } service T {}",
       false},
      {"field gone, reserved",
       head + e + "message M { reserved 2; reserved \"b\"; string a = 1; }" + s, false},
      {"field gone", head + e + "message M { string a = 1; }" + s, true},
      {"field renumbered", head + e + "message M { string a = 1; optional int32 b = 3; }" + s,
       true},
      {"field renamed", head + e + "message M { string a = 1; optional int32 c = 2; }" + s, true},
      {"type", head + e + "message M { bytes a = 1; optional int32 b = 2; }" + s, true},
      {"label", head + e + "message M { repeated string a = 1; optional int32 b = 2; }" + s, true},
      {"presence", head + e + "message M { string a = 1; int32 b = 2; }" + s, true},
      {"oneof", head + e + "message M { string a = 1; oneof x { int32 b = 2; } }" + s, true},
      {"enum value", head + "enum E { E_ZERO = 0; E_ONE = 2; } " + m + s, true},
      {"enum gone", head + m + s, true},
      {"streaming", head + e + m + "service S { rpc Go(M) returns (M); }", true},
      {"method", head + e + m + "service S {}", true},
      {"service", head + e + m, true},
      {"package", "syntax = \"proto3\"; package q; " + e + m + s, true},
  };
  for (const auto& [what, text, breaks] : changes) {
    const Contract after(text);
    EXPECT_EQ(!find_breaks(before.file(), after.file()).empty(), breaks) << what;
  }
}

}  // namespace
}  // namespace sluice
