#include "tools/what_to_try.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::HasSubstr;
using testing::Not;

WhatServes plain() {
  return {.http = "127.0.0.1:8080", .grpc = "127.0.0.1:50051", .metrics = "127.0.0.1:9090"};
}

TEST(WhatToTry, WithoutAnythingAskedForItIsShort) {
  const std::string text = what_to_try(plain());
  EXPECT_THAT(text, HasSubstr("./run chat --server 127.0.0.1:50051 \"Name"));
  EXPECT_THAT(text, HasSubstr("curl -N http://127.0.0.1:8080/v1/chat/completions "));
  EXPECT_THAT(text, HasSubstr("grpcurl -plaintext -d "));
  EXPECT_THAT(text, HasSubstr("base_url=http://127.0.0.1:8080/v1, any api_key"));
  EXPECT_THAT(text, HasSubstr("http://127.0.0.1:9090/metrics and http://127.0.0.1:8080/metrics\n"));
  EXPECT_THAT(text, Not(HasSubstr("KEY")));
}

TEST(WhatToTry, WhatListensEverywhereIsCalledLocalhost) {
  WhatServes serving = plain();
  serving.http = "0.0.0.0:8080";
  serving.grpc = "[::]:50051";
  serving.metrics = "0.0.0.0:9090";
  const std::string text = what_to_try(serving);
  EXPECT_THAT(text, HasSubstr("http://localhost:8080/v1/chat"));
  EXPECT_THAT(text, HasSubstr("--server localhost:50051"));
  EXPECT_THAT(text, HasSubstr("http://localhost:9090/metrics"));
  EXPECT_THAT(text, Not(HasSubstr("0.0.0.0")));
  EXPECT_THAT(text, Not(HasSubstr("[::]")));
}

TEST(WhatToTry, AnAddressOfItsOwnStaysAsItIs) {
  WhatServes serving = plain();
  serving.http = "[2001:db8::1]:8080";
  EXPECT_THAT(what_to_try(serving), HasSubstr("http://[2001:db8::1]:8080/v1/chat"));
}

TEST(WhatToTry, TlsIsSpokenToANameWithTheCertificateAtHand) {
  WhatServes serving = plain();
  serving.tls = {"it's.pem", "key.pem", ""};
  const std::string text = what_to_try(serving);
  EXPECT_THAT(text, HasSubstr("--tls-ca 'it'\\''s.pem'"));
  EXPECT_THAT(text, HasSubstr("curl -N --cacert 'it'\\''s.pem' https://localhost:8080/v1/chat"));
  EXPECT_THAT(text, HasSubstr("grpcurl -cacert 'it'\\''s.pem' -d "));
  EXPECT_THAT(text, HasSubstr("base_url=https://localhost:8080/v1"));
  EXPECT_THAT(text, HasSubstr("and https://localhost:8080/metrics"));
  EXPECT_THAT(text, Not(HasSubstr("CLIENT")));
  serving.tls.client_ca = "ca.pem";
  EXPECT_THAT(what_to_try(serving), HasSubstr("--cert CLIENT.pem --key CLIENT.key https://"));
}

TEST(WhatToTry, KeysAreShownWhereTheyGo) {
  WhatServes serving = plain();
  serving.api_keys = "keys";
  serving.reflection = false;
  const std::string text = what_to_try(serving);
  EXPECT_THAT(text, HasSubstr("--api-key-file KEY.txt"));
  EXPECT_THAT(text, HasSubstr("-H 'Authorization: Bearer KEY' -d"));
  EXPECT_THAT(
      text, HasSubstr("-import-path proto -proto inference.proto -H 'authorization: Bearer KEY'"));
  EXPECT_THAT(text, HasSubstr("api_key=KEY"));
  EXPECT_THAT(text, HasSubstr("`./run key add --api-keys 'keys' NAME`"));
}

}  // namespace
}  // namespace sluice
