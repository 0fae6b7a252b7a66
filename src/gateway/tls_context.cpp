#include "gateway/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

#include "base/concat.h"
#include "base/log.h"
#include "base/read_file.h"

namespace sluice {
namespace {

constexpr std::chrono::seconds kLookInterval{1};

// OpenSSL's own words, without the library's and function's names.
std::string reason(const boost::system::error_code& error) {
  const char* const words = ERR_reason_error_string(static_cast<unsigned long>(error.value()));
  return words != nullptr ? words : error.message();
}

Result<std::shared_ptr<asio::ssl::context>> read_context(const TlsFiles& files) {
  namespace ssl = asio::ssl;
  if (files.certificate.empty() || files.key.empty()) {
    return invalid("TLS needs --tls-cert and --tls-key");
  }
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(native, [](char*, int, int, void*) { return 0; });

  auto certificate = read_file(files.certificate, "--tls-cert", kMostPemBytes);
  if (!certificate) return tl::unexpected(std::move(certificate.error()));
  boost::system::error_code error;
  context->use_certificate_chain(asio::buffer(*certificate), error);
  if (error) {
    return invalid(
        concat(files.certificate,
               " (--tls-cert) is not a PEM certificate that can be used for TLS: ", reason(error)));
  }
  auto key = read_file(files.key, "--tls-key", kMostPemBytes);
  if (!key) return tl::unexpected(std::move(key.error()));
  context->use_private_key(asio::buffer(*key), ssl::context::pem, error);
  if (error || SSL_CTX_check_private_key(native) != 1) {
    ERR_clear_error();
    return invalid(concat(files.key,
                          " (--tls-key) is not a PEM private key without a passphrase "
                          "that belongs to ",
                          files.certificate, " (--tls-cert)"));
  }
  if (!files.client_ca.empty()) {
    auto client_ca = read_file(files.client_ca, "--tls-client-ca", kMostPemBytes);
    if (!client_ca) return tl::unexpected(std::move(client_ca.error()));
    context->add_certificate_authority(asio::buffer(*client_ca), error);
    if (error) {
      return invalid(concat(files.client_ca, " (--tls-client-ca) is not a PEM certificate"));
    }
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert, error);
    const unsigned char session_scope[] = "sluice";
    SSL_CTX_set_session_id_context(native, session_scope, sizeof session_scope - 1);
  }
  return context;
}

}  // namespace

TlsContext::TlsContext(TlsFiles files, const Versions& seen,
                       std::shared_ptr<asio::ssl::context> context)
    : files_(std::move(files)), seen_(seen), context_(std::move(context)) {}

// The versions are taken before the texts, so that a change in between is seen the next time.
Result<TlsContext> TlsContext::load(TlsFiles files) {
  const Versions seen = versions_of(files);
  auto context = read_context(files);
  if (!context) return tl::unexpected(std::move(context.error()));
  return TlsContext(std::move(files), seen, std::move(*context));
}

const std::shared_ptr<asio::ssl::context>& TlsContext::current(TimePoint now) {
  if (now - looked_at_ < kLookInterval) return context_;
  looked_at_ = now;
  const Versions versions = versions_of(files_);
  if (versions == seen_) return context_;
  seen_ = versions;
  if (auto context = read_context(files_)) {
    context_ = std::move(*context);
    log_info("tls", concat("new connections use what is now in ", files_.certificate));
  } else {
    log_error("tls", concat(context.error().message,
                            "; the certificate that was read before goes on serving"));
  }
  return context_;
}

TlsContext::Versions TlsContext::versions_of(const TlsFiles& files) noexcept {
  return {file_version(files.certificate), file_version(files.key), file_version(files.client_ca)};
}

std::string peer_subject(SSL* connection) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      SSL_get1_peer_certificate(connection), &X509_free);
  if (!certificate) return {};
  const std::unique_ptr<BIO, decltype(&BIO_free)> text(BIO_new(BIO_s_mem()), &BIO_free);
  X509_NAME_print_ex(text.get(), X509_get_subject_name(certificate.get()), 0, XN_FLAG_RFC2253);
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

}  // namespace sluice
