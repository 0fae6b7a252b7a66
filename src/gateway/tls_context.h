// TlsContext: OpenSSL's settings for new connections, from files that are read again when they
// change. What is read must fit together (it parses, the key is the certificate's): a broken
// renewal is logged and what was read before serves on. TLS 1.2 at least. Thread: the one that
// accepts.
#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_version.h"
#include "base/tls_files.h"
#include "gateway/asio.h"

namespace sluice {

class TlsContext {
 public:
  // Errors name the file and the flag.
  [[nodiscard]] static Result<TlsContext> load(TlsFiles files);

  // Looks at the files first, at most once a second. Connections share it with later ones.
  [[nodiscard]] const std::shared_ptr<asio::ssl::context>& current(TimePoint now);

 private:
  using Versions = std::array<FileVersion, 3>;
  TlsContext(TlsFiles files, const Versions& seen, std::shared_ptr<asio::ssl::context> context);
  [[nodiscard]] static Versions versions_of(const TlsFiles& files) noexcept;

  TlsFiles files_;
  Versions seen_;
  TimePoint looked_at_{};
  std::shared_ptr<asio::ssl::context> context_;
};

// The subject of the certificate that the peer showed, as RFC 2253 writes it; "": none.
[[nodiscard]] std::string peer_subject(SSL* connection);

}  // namespace sluice
