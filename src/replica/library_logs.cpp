#include "replica/grpc_log.h"

#include <grpc/support/log.h>

#include "base/log.h"

namespace sluice {

void route_grpc_log() noexcept {
  gpr_set_log_function([](gpr_log_func_args* line) noexcept { log_debug("grpc", line->message); });
}

}  // namespace sluice
