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

}  // namespace
}  // namespace sluice
