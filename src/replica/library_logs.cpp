#include "replica/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <exception>
#include <string>
#include <string_view>

#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

void log_protobuf(google::protobuf::LogLevel level, const char* file, int line,
                  const std::string&) noexcept try {
  std::string_view name = file;
  name.remove_prefix(name.rfind('/') + 1);
  const bool aborts = level == google::protobuf::LOGLEVEL_FATAL;
  log(aborts ? LogLevel::kError : LogLevel::kDebug, "protobuf", concat(name, ':', line));
} catch (const std::exception&) {
  // Out of memory: only a line is lost.
}

}  // namespace

void route_library_logs() noexcept {
  gpr_set_log_function([](gpr_log_func_args* line) noexcept { log_debug("grpc", line->message); });
  google::protobuf::SetLogHandler(&log_protobuf);
}

}  // namespace sluice
