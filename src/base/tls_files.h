// TlsFiles: the PEM files of a server's identity, as its flags name them. Thread: any (values).
#pragma once

#include <string>

namespace sluice {

struct TlsFiles {
  std::string certificate;  // --tls-cert: the chain, leaf first. Empty: no TLS
  std::string key;          // --tls-key
  // --tls-client-ca. Not empty: clients must show a certificate that it signed
  std::string client_ca;
  [[nodiscard]] bool enabled() const noexcept {
    return !certificate.empty() || !key.empty() || !client_ca.empty();
  }
};

}  // namespace sluice
