// ServerTls: the certificate, key and client authority of a server, from files that are read again
// when they change. What is read is checked first (it parses, key and certificate belong together):
// a broken renewal is logged and the old certificate goes on serving. gRPC's own file watcher has
// no such check: after a mismatch no handshake works any more.
// Thread: refresh one at a time; gRPC asks for the current certificate from its own threads.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/file_version.h"
#include "base/mutex.h"
#include "base/tls_files.h"

namespace grpc {
class ServerCredentials;
}

namespace sluice {

// PEM texts that belong together.
struct TlsIdentity {
  std::string certificate;
  std::string key;
  std::string client_ca;
};

// Errors name the file, the flag and what is wrong.
[[nodiscard]] Result<TlsIdentity> read_identity(const TlsFiles& files);

// The first certificate of a PEM text, as OpenSSL writes it.
[[nodiscard]] std::string leaf_certificate(const std::string& pem);

class ServerTls {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ServerTls>> load(const TlsFiles& files);
  ~ServerTls();
  ServerTls(const ServerTls&) = delete;
  ServerTls& operator=(const ServerTls&) = delete;

  // For one server, which ends before these and before this object. TLS 1.2 at least.
  [[nodiscard]] std::shared_ptr<grpc::ServerCredentials> credentials() const;

  // Reads the files again if one of them changed. True if there is a new identity now.
  bool refresh() noexcept EXCLUDES(mutex_);

  [[nodiscard]] std::shared_ptr<const TlsIdentity> current() const noexcept EXCLUDES(mutex_);
  [[nodiscard]] bool asks_clients() const noexcept { return !files_.client_ca.empty(); }

 private:
  using Versions = std::array<FileVersion, 3>;
  ServerTls(const TlsFiles& files, const Versions& seen, TlsIdentity identity);
  [[nodiscard]] static Versions versions_of(const TlsFiles& files) noexcept;

  const TlsFiles files_;
  Versions seen_;
  mutable Mutex mutex_;
  std::shared_ptr<const TlsIdentity> identity_ GUARDED_BY(mutex_);
};

}  // namespace sluice
