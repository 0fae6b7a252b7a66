// Certificates for tests, made in memory.
// Thread: any (values).
#pragma once

#include <string>

namespace sluice {

struct TestCertificate {
  std::string certificate;  // PEM
  std::string key;

  // Signed by itself, for localhost, valid for an hour. Its key is of P-256.
  [[nodiscard]] static TestCertificate make(const std::string& common_name);
  // The same with an RSA key of 512 bits, which nobody takes any more.
  [[nodiscard]] static TestCertificate make_weak(const std::string& common_name);
};

}  // namespace sluice
