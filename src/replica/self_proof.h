// Self-proof: shows before the server starts that what its options promise is so, on a throw-away
// server that is set up by the same function, with times and sizes scaled down. A misspelt option
// would otherwise be ignored without a word.
// Proved: pings as often as --min-ping-interval-ms are tolerated and too many are not;
// --max-message-bytes both ways; --max-concurrent-streams is announced; TLS is spoken with the
// certificate that was configured and nothing else is, and with --tls-client-ca not without a
// client certificate.
// Takes about 0.1 s.
// Thread: any; it blocks.
#pragma once

#include <functional>

#include "base/error.h"
#include "contract/limits.h"
#include "replica/server_options.h"

namespace grpc {
class ServerBuilder;
}

namespace sluice {

class ServerTls;

using SetServerOptions =
    std::function<void(const Limits&, const TransportOptions&, grpc::ServerBuilder&)>;

// `tls`: null for a server without. The error (kInternal) says which promise does not hold, and its
// flag.
[[nodiscard]] Result<void> prove_server_options(const Limits& limits,
                                                const TransportOptions& transport,
                                                const ServerTls* tls,
                                                const SetServerOptions& set_options);

}  // namespace sluice
