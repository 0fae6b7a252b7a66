#include "replica/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/status.h>

#include <set>
#include <utility>

#include "contract/wire.h"
#include "reflection_v1.grpc.pb.h"
#include "reflection_v1alpha.grpc.pb.h"
#include "replica/parse_message.h"
#include "replica/raw_method.h"

namespace sluice {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

const DescriptorPool& pool() { return *DescriptorPool::generated_pool(); }

// The file and all that it imports, each once.
template <typename FileResponse>
void add_file(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
              FileResponse& out) {
  if (!added.insert(&file).second) return;
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(out.add_file_descriptor_proto());
  for (int i = 0; i < file.dependency_count(); ++i) add_file(*file.dependency(i), added, out);
}

template <typename Response>
void answer_not_found(const char* what, Response& out) {
  out.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  out.mutable_error_response()->set_error_message(what);
}

template <typename Response>
void answer_file(const FileDescriptor* file, Response& out) {
  if (file == nullptr) return answer_not_found("no such file or symbol", out);
  std::set<const FileDescriptor*> added;
  add_file(*file, added, *out.mutable_file_descriptor_response());
}

template <typename Response>
void answer_extension(const std::string& type, int number, Response& out) {
  const Descriptor* extended = pool().FindMessageTypeByName(type);
  const FieldDescriptor* field =
      extended == nullptr ? nullptr : pool().FindExtensionByNumber(extended, number);
  answer_file(field == nullptr ? nullptr : field->file(), out);
}

template <typename Response>
void answer_extension_numbers(const std::string& type, Response& out) {
  const Descriptor* extended = pool().FindMessageTypeByName(type);
  if (extended == nullptr) return answer_not_found("no such type", out);
  std::vector<const FieldDescriptor*> extensions;
  pool().FindAllExtensions(extended, &extensions);
  auto& numbers = *out.mutable_all_extension_numbers_response();
  numbers.set_base_type_name(type);
  for (const FieldDescriptor* extension : extensions)
    numbers.add_extension_number(extension->number());
}

template <typename Request, typename Response>
void answer(const std::vector<std::string>& services, const Request& request, Response& out) {
  out.Clear();
  out.set_valid_host(request.host());
  *out.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      return answer_file(pool().FindFileByName(request.file_by_filename()), out);
    case Request::kFileContainingSymbol:
      return answer_file(pool().FindFileContainingSymbol(request.file_containing_symbol()), out);
    case Request::kFileContainingExtension:
      return answer_extension(request.file_containing_extension().containing_type(),
                              request.file_containing_extension().extension_number(), out);
    case Request::kAllExtensionNumbersOfType:
      return answer_extension_numbers(request.all_extension_numbers_of_type(), out);
    case Request::kListServices:
      for (const std::string& name : services)
        out.mutable_list_services_response()->add_service()->set_name(name);
      return;
    case Request::MESSAGE_REQUEST_NOT_SET:
      out.mutable_error_response()->set_error_code(grpc::StatusCode::INVALID_ARGUMENT);
      out.mutable_error_response()->set_error_message("message_request is not set");
      return;
  }
}

// One call: reads a request, writes its answer, reads the next.
template <typename Request, typename Response>
class Reactor final : public grpc::ServerBidiReactor<grpc::ByteBuffer, Response> {
 public:
  explicit Reactor(const std::vector<std::string>& services) : services_(services) {
    this->StartRead(&bytes_);
  }

 private:
  void OnReadDone(bool ok) noexcept override {
    if (!ok) return this->Finish(grpc::Status::OK);
    Request request;
    if (const auto parsed = parse_small_message(bytes_, request); !parsed)
      return this->Finish(to_grpc(parsed.error()));
    answer(services_, request, response_);
    this->StartWrite(&response_);
  }
  void OnWriteDone(bool ok) noexcept override {
    if (!ok) return this->Finish(grpc::Status::CANCELLED);
    this->StartRead(&bytes_);
  }
  void OnDone() noexcept override { delete this; }

  const std::vector<std::string>& services_;
  grpc::ByteBuffer bytes_;
  Response response_;
};

}  // namespace

class ReflectionService::V1 final : public grpc::reflection::v1::ServerReflection::Service {
 public:
  explicit V1(std::vector<std::string> services) : services_(std::move(services)) {
    MarkMethodRawCallback(0, raw_bidi<Response>([this](grpc::CallbackServerContext&) {
                            return new Reactor<Request, Response>(services_);
                          }));
  }

 private:
  using Request = grpc::reflection::v1::ServerReflectionRequest;
  using Response = grpc::reflection::v1::ServerReflectionResponse;
  const std::vector<std::string> services_;
};

class ReflectionService::V1Alpha final
    : public grpc::reflection::v1alpha::ServerReflection::Service {
 public:
  explicit V1Alpha(std::vector<std::string> services) : services_(std::move(services)) {
    MarkMethodRawCallback(0, raw_bidi<Response>([this](grpc::CallbackServerContext&) {
                            return new Reactor<Request, Response>(services_);
                          }));
  }

 private:
  using Request = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Response = grpc::reflection::v1alpha::ServerReflectionResponse;
  const std::vector<std::string> services_;
};

ReflectionService::ReflectionService(std::vector<std::string> services)
    : v1_(std::make_unique<V1>(services)),
      v1alpha_(std::make_unique<V1Alpha>(std::move(services))) {}
ReflectionService::~ReflectionService() = default;
grpc::Service& ReflectionService::v1() noexcept { return *v1_; }
grpc::Service& ReflectionService::v1alpha() noexcept { return *v1alpha_; }

}  // namespace sluice
