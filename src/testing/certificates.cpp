#include "testing/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace sluice {
namespace {

template <typename Write>
std::string text_of(const Write& write) {
  BIO* bio = BIO_new(BIO_s_mem());
  write(bio);
  char* text = nullptr;
  const auto size = BIO_get_mem_data(bio, &text);
  std::string copy(text, static_cast<std::size_t>(size));
  BIO_free(bio);
  return copy;
}

TestCertificate certificate_of(EVP_PKEY* key, const std::string& common_name) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);  // which is version 3
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "DNS:localhost");
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate, key, EVP_sha256());

  TestCertificate made;
  made.certificate = text_of([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); });
  made.key = text_of(
      [&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return made;
}

}  // namespace

TestCertificate TestCertificate::make(const std::string& common_name) {
  return certificate_of(EVP_EC_gen("P-256"), common_name);
}

TestCertificate TestCertificate::make_weak(const std::string& common_name) {
  return certificate_of(EVP_RSA_gen(512), common_name);
}

}  // namespace sluice
