#include "replica/credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <exception>
#include <fstream>
#include <iterator>
#include <utility>

#include "base/concat.h"
#include "base/log.h"

namespace sluice {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Result<std::string> read_pem(const std::string& path, const char* flag) {
  if (path.empty()) return invalid(concat(flag, " is missing: TLS needs --tls-cert and --tls-key"));
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.good() && !file.eof())
    return fail(Code::kNotFound, concat("can't read ", path, " (", flag, ")"));
  if (text.empty())
    return fail(Code::kNotFound, concat(path, " (", flag, ") is not there or empty"));
  return text;
}

Certificate parse_certificate(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), &X509_free);
  ERR_clear_error();
  return certificate;
}

PrivateKey parse_key(const std::string& pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  const auto no_passphrase = [](char*, int, int, void*) {
    return 0;
  };  // instead of asking at the terminal
  PrivateKey key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr),
                 &EVP_PKEY_free);
  ERR_clear_error();
  return key;
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
