#include "load/load_target.h"

#include "load/attach_target.h"
#include "load/grpc_target.h"
#include "load/rest_target.h"

namespace sluice {

std::unique_ptr<LoadTarget> make_target(const TargetOptions& options) {
  if (options.protocol == LoadProtocol::kRest) return make_rest_target(options);
  return options.attach ? make_attach_target(options) : make_grpc_target(options);
}

}  // namespace sluice
