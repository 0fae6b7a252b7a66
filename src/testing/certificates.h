// Certificates for tests, made in memory.
// Thread: any (values).
#pragma once

#include <string>

namespace sluice {

struct TestCertificate {
  std::string certificate;  // PEM
  std::string key;

  // Signed by itself, for localhost, valid for an hour.
  [[nodiscard]] static TestCertificate make(const std::string& common_name);
};

}  // namespace sluice
