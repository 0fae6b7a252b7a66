#include "replica/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "testing/certificates.h"
#include "testing/folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

struct Files {
  TestFolder folder;
  TestCertificate certificate = TestCertificate::make("first");

  [[nodiscard]] TlsFiles write() const {
    return {folder.write("cert.pem", certificate.certificate),
            folder.write("key.pem", certificate.key), ""};
  }
};

void expect_refused(const TlsFiles& files, const std::string& file, const char* flag) {
  const auto identity = read_identity(files);
  ASSERT_FALSE(identity);
  EXPECT_THAT(identity.error().message, HasSubstr(file));
  EXPECT_THAT(identity.error().message, HasSubstr(flag));
  EXPECT_THAT(identity.error().message, Not(HasSubstr("\n")));
}

TEST(Credentials, FilesThatBelongTogetherAreTaken) {
  const Files files;
  EXPECT_TRUE(read_identity(files.write()));
}

TEST(Credentials, EachFaultNamesItsFileAndFlag) {
  const Files files;
  const TlsFiles good = files.write();
  const std::string broken = files.folder.write(
      "broken.pem", "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n");
  const std::string empty = files.folder.write("empty.pem", "");
  const std::string missing = files.folder.file("missing.pem");
  for (const std::string& bad : {broken, empty, missing, std::string("/"),
                                 std::string("/proc/self/mem"), std::string("/dev/zero")}) {
    expect_refused({bad, good.key, ""}, bad, "--tls-cert");
    expect_refused({good.certificate, bad, ""}, bad, "--tls-key");
    expect_refused({good.certificate, good.key, bad}, bad, "--tls-client-ca");
  }
  expect_refused({good.certificate, "", ""}, "", "--tls-key");
  expect_refused({"", good.key, ""}, "", "--tls-cert");
  expect_refused({"", "", good.certificate}, "", "--tls-cert");
}

TEST(Credentials, AKeyOfAnotherCertificateIsRefused) {
  const Files files;
  const TlsFiles good = files.write();
  const std::string other = files.folder.write("other.pem", TestCertificate::make("other").key);
  expect_refused({good.certificate, other, ""}, other, "--tls-key");
}

// gRPC would keep quiet about it, and serve nobody.
TEST(Credentials, APairThatOpenSslFindsTooWeakIsRefusedAndNotTaken) {
  Files files;
  const TlsFiles paths = files.write();
  const auto tls = ServerTls::load(paths);
  ASSERT_TRUE(tls);
  const auto first = (*tls)->current();
  files.certificate = TestCertificate::make_weak("weak");
  expect_refused(files.write(), paths.certificate, "--tls-cert");
  EXPECT_THAT(read_identity(paths).error().message, HasSubstr("key too small"));
  EXPECT_FALSE((*tls)->refresh());
  EXPECT_EQ((*tls)->current(), first);
}

TEST(Credentials, AWeakCertificateInTheChainIsRefused) {
  Files files;
  files.certificate.certificate += TestCertificate::make_weak("issuer").certificate;
  expect_refused(files.write(), files.folder.file("cert.pem"), "--tls-cert");
}

TEST(Credentials, AFolderInACertificatesPlaceIsNotTaken) {
  const Files files;
  const TlsFiles paths = files.write();
  const auto tls = ServerTls::load(paths);
  ASSERT_TRUE(tls);
  const auto first = (*tls)->current();
  std::filesystem::remove(paths.certificate);
  std::filesystem::create_directory(paths.certificate);
  EXPECT_FALSE((*tls)->refresh());
  EXPECT_EQ((*tls)->current(), first);
}

TEST(Credentials, AChangeIsTakenOnceItIsWholeAndABrokenOneNever) {
  const Files files;
  const TlsFiles paths = files.write();
  auto tls = ServerTls::load(paths);
  ASSERT_TRUE(tls) << tls.error().message;
  const auto first = (*tls)->current();
  EXPECT_FALSE((*tls)->refresh());

  const TestCertificate second = TestCertificate::make("second");
  files.folder.write("key.pem", second.key);
  EXPECT_FALSE((*tls)->refresh()) << "a key without its certificate was taken";
  EXPECT_EQ((*tls)->current(), first);
  files.folder.write("cert.pem", second.certificate);
  EXPECT_TRUE((*tls)->refresh());
  EXPECT_EQ((*tls)->current()->certificate, second.certificate);

  files.folder.write("cert.pem", "broken");
  EXPECT_FALSE((*tls)->refresh());
  EXPECT_EQ((*tls)->current()->certificate, second.certificate);
}

}  // namespace
}  // namespace sluice
