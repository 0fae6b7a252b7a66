#include "gateway/tls_context.h"

#include <gtest/gtest.h>

#include <string>

#include "testing/certificates.h"
#include "testing/folder.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class TlsContextTest : public testing::Test {
 protected:
  void write(const TestCertificate& certificate, const TestCertificate& key) const {
    folder_.write("cert.pem", certificate.certificate);
    folder_.write("key.pem", key.key);
  }
  TlsFiles files() const { return {folder_.file("cert.pem"), folder_.file("key.pem"), ""}; }

  TestFolder folder_;
  const TestCertificate first_ = TestCertificate::make("first");
  const TestCertificate second_ = TestCertificate::make("second");
  const TimePoint start_{1h};
};

TEST_F(TlsContextTest, ARenewalIsTakenWithinASecondAndNotLookedForMoreOften) {
  write(first_, first_);
  auto tls = TlsContext::load(files());
  ASSERT_TRUE(tls);
  const auto before = tls->current(start_);
  write(second_, second_);
  EXPECT_EQ(tls->current(start_ + 999ms), before);
  const auto after = tls->current(start_ + 1s);
  EXPECT_NE(after, before);
  EXPECT_EQ(tls->current(start_ + 5s), after);
}

TEST_F(TlsContextTest, ARenewalThatDoesNotFitTogetherIsNotTakenAndALaterOneIs) {
  write(first_, first_);
  auto tls = TlsContext::load(files());
  ASSERT_TRUE(tls);
  const auto before = tls->current(start_);
  write(second_, first_);
  EXPECT_EQ(tls->current(start_ + 1s), before);
  folder_.write("key.pem", "nonsense");
  EXPECT_EQ(tls->current(start_ + 2s), before);
  write(second_, second_);
  EXPECT_NE(tls->current(start_ + 3s), before);
}

TEST_F(TlsContextTest, WhatDoesNotFitTogetherIsRefusedAtStartByFileAndFlag) {
  write(first_, second_);
  const auto tls = TlsContext::load(files());
  ASSERT_FALSE(tls);
  EXPECT_NE(tls.error().message.find("key.pem (--tls-key)"), std::string::npos);
  EXPECT_FALSE(TlsContext::load({folder_.file("cert.pem"), "", ""}));
}

TEST_F(TlsContextTest, AWeakPairAndWhatIsNoFileAreRefusedByFileAndFlag) {
  const TestCertificate weak = TestCertificate::make_weak("weak");
  write(weak, weak);
  const auto refused = TlsContext::load(files());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cert.pem (--tls-cert)"), std::string::npos);
  EXPECT_NE(refused.error().message.find("key too small"), std::string::npos);

  write(first_, first_);
  for (const std::string bad : {"/", "/dev/zero"}) {
    EXPECT_FALSE(TlsContext::load({bad, files().key, ""}));
    EXPECT_FALSE(TlsContext::load({files().certificate, bad, ""}));
    EXPECT_FALSE(TlsContext::load({files().certificate, files().key, bad}));
  }
  EXPECT_TRUE(TlsContext::load({files().certificate, files().key, files().certificate}));
}

}  // namespace
}  // namespace sluice
