#include "replica/credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <exception>
#include <utility>

#include "base/concat.h"
#include "base/log.h"
#include "base/read_file.h"

namespace sluice {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Result<std::string> read_pem(const std::string& path, const char* flag) {
  if (path.empty()) return invalid(concat(flag, " is missing: TLS needs --tls-cert and --tls-key"));
  return read_file(path, flag, kMostPemBytes);
}

Bio reader_of(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free};
}

Certificate next_certificate(const Bio& pem) {
  Certificate certificate(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr), &X509_free);
  ERR_clear_error();
  return certificate;
}

Certificate parse_certificate(const std::string& pem) { return next_certificate(reader_of(pem)); }

PrivateKey parse_key(const std::string& pem) {
  const Bio bio = reader_of(pem);
  const auto no_passphrase = [](char*, int, int, void*) {
    return 0;
  };  // instead of asking at the terminal
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr),
                 &EVP_PKEY_free);
  ERR_clear_error();
  return key;
}

// Why OpenSSL refused what it was asked last.
std::string openssl_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  std::string text = reason != nullptr ? reason : "unknown";
  ERR_clear_error();
  return text;
}

// Whether OpenSSL would serve with them: a pair may belong together and be too weak for its
// security level. gRPC asks only at the first handshake, and tells nobody.
Result<void> check_usable(const TlsFiles& files, const TlsIdentity& identity,
                          const PrivateKey& key) {
  const Context context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  const auto unusable = [](const std::string& file, const char* flag) {
    return invalid(concat(file, " (", flag, ") can't be used for TLS: ", openssl_reason()));
  };
  const Bio chain = reader_of(identity.certificate);
  const Certificate certificate = next_certificate(chain);
  if (SSL_CTX_use_certificate(context.get(), certificate.get()) != 1)
    return unusable(files.certificate, "--tls-cert");
  while (const Certificate issuer = next_certificate(chain)) {
    if (SSL_CTX_add1_chain_cert(context.get(), issuer.get()) != 1)
      return unusable(files.certificate, "--tls-cert");
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1)
    return unusable(files.key, "--tls-key");
  return {};
}

Result<void> check_identity(const TlsFiles& files, const TlsIdentity& identity) {
  const Certificate certificate = parse_certificate(identity.certificate);
  if (!certificate)
    return invalid(concat(files.certificate, " (--tls-cert) is not a PEM certificate"));
  const PrivateKey key = parse_key(identity.key);
  if (!key)
    return invalid(concat(files.key, " (--tls-key) is not a PEM private key without a passphrase"));
  const bool match = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!match)
    return invalid(
        concat(files.key, " (--tls-key) is not the key of ", files.certificate, " (--tls-cert)"));
  if (auto usable = check_usable(files, identity, key); !usable) return usable;
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0) {
    log_warning("tls", concat(files.certificate,
                              " (--tls-cert) has expired: clients that verify it will refuse"));
  }
  if (!files.client_ca.empty() && !parse_certificate(identity.client_ca)) {
    return invalid(concat(files.client_ca, " (--tls-client-ca) is not a PEM certificate"));
  }
  return {};
}

// Hands gRPC the current identity at each handshake where it is another than at the last. gRPC's
// C++ interface has no such credentials, its C interface has.
class ReloadingCredentials final : public grpc::ServerCredentials {
 public:
  explicit ReloadingCredentials(const ServerTls& tls) : tls_(tls) {
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            tls.asks_clients() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                               : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
            &ReloadingCredentials::fetch, this));
  }
  ~ReloadingCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  // gRPC calls it under a lock of its own: one at a time.
  static grpc_ssl_certificate_config_reload_status fetch(
      void* self, grpc_ssl_server_certificate_config** config) noexcept {
    auto& credentials = *static_cast<ReloadingCredentials*>(self);
    auto identity = credentials.tls_.current();
    if (identity == credentials.fetched_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{identity->key.c_str(), identity->certificate.c_str()};
    // gRPC insists on roots here, also where no client is asked for a certificate and nothing is
    // held against them.
    const std::string& roots =
        identity->client_ca.empty() ? identity->certificate : identity->client_ca;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    credentials.fetched_ = std::move(identity);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const ServerTls& tls_;
  grpc_server_credentials* credentials_ = nullptr;
  std::shared_ptr<const TlsIdentity> fetched_;
};

}  // namespace

Result<TlsIdentity> read_identity(const TlsFiles& files) {
  TlsIdentity identity;
  auto certificate = read_pem(files.certificate, "--tls-cert");
  if (!certificate) return tl::unexpected(std::move(certificate.error()));
  auto key = read_pem(files.key, "--tls-key");
  if (!key) return tl::unexpected(std::move(key.error()));
  identity.certificate = std::move(*certificate);
  identity.key = std::move(*key);
  if (!files.client_ca.empty()) {
    auto client_ca = read_pem(files.client_ca, "--tls-client-ca");
    if (!client_ca) return tl::unexpected(std::move(client_ca.error()));
    identity.client_ca = std::move(*client_ca);
  }
  if (auto checked = check_identity(files, identity); !checked)
    return tl::unexpected(std::move(checked.error()));
  return identity;
}

std::string leaf_certificate(const std::string& pem) {
  const Certificate certificate = parse_certificate(pem);
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  if (!certificate || PEM_write_bio_X509(bio.get(), certificate.get()) != 1) return {};
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

ServerTls::ServerTls(const TlsFiles& files, const Versions& seen, TlsIdentity identity)
    : files_(files),
      seen_(seen),
      identity_(std::make_shared<const TlsIdentity>(std::move(identity))) {}

ServerTls::~ServerTls() = default;

// The versions are taken before the texts, so that a change in between is seen by the next refresh.
Result<std::unique_ptr<ServerTls>> ServerTls::load(const TlsFiles& files) {
  const Versions seen = versions_of(files);
  auto identity = read_identity(files);
  if (!identity) return tl::unexpected(std::move(identity.error()));
  return std::unique_ptr<ServerTls>(new ServerTls(files, seen, std::move(*identity)));
}

std::shared_ptr<grpc::ServerCredentials> ServerTls::credentials() const {
  return std::make_shared<ReloadingCredentials>(*this);
}

bool ServerTls::refresh() noexcept try {
  const Versions now = versions_of(files_);
  if (now == seen_) return false;
  seen_ = now;
  auto identity = read_identity(files_);
  if (!identity) {
    log_error("tls", concat(identity.error().message,
                            "; the certificate that was read before goes on serving"));
    return false;
  }
  log_info("tls", concat("new handshakes use what is now in ", files_.certificate));
  auto fresh = std::make_shared<const TlsIdentity>(std::move(*identity));
  const MutexLock lock(mutex_);
  identity_ = std::move(fresh);
  return true;
} catch (const std::exception&) {
  return false;  // out of memory
}

std::shared_ptr<const TlsIdentity> ServerTls::current() const noexcept {
  const MutexLock lock(mutex_);
  return identity_;
}

ServerTls::Versions ServerTls::versions_of(const TlsFiles& files) noexcept {
  return {file_version(files.certificate), file_version(files.key), file_version(files.client_ca)};
}

}  // namespace sluice
