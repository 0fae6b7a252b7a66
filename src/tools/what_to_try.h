// what_to_try: the lines that `sluice up` shows when it is ready: one for each kind of client, as
// they can be copied on this machine, whatever it listens on and asks of its clients.
// Thread: any (values).
#pragma once

#include <string>

#include "base/tls_files.h"

namespace sluice {

struct WhatServes {
  std::string http;     // HOST:PORT that is listened on
  std::string grpc;     // the same
  std::string metrics;  // the same, or "off"
  TlsFiles tls;
  std::string api_keys;  // file; empty: nobody needs a key
  bool reflection = true;
};

[[nodiscard]] std::string what_to_try(const WhatServes& serving);

}  // namespace sluice
