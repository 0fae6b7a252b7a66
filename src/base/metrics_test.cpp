#include "base/metrics.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Metrics, TheSameNameAndLabelsAreTheSameSeries) {
  Metrics metrics;
  metrics.counter("c_total", "help", {{"how", "a"}}).add(2);
  metrics.counter("c_total", "help", {{"how", "a"}}).add();
  metrics.counter("c_total", "help", {{"how", "b"}}).add();
  const std::string text = metrics.text();
  EXPECT_NE(text.find("c_total{how=\"a\"} 3\n"), std::string::npos) << text;
  EXPECT_NE(text.find("c_total{how=\"b\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, AHistogramPutsValuesInTheirBuckets) {
  Metrics metrics;
  auto histogram = metrics.histogram("h_seconds", "help", {0.1, 1});
  histogram.observe(0.5);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("h_seconds_bucket{le=\"0.1\"} 0"), std::string::npos) << text;
  EXPECT_NE(text.find("h_seconds_bucket{le=\"1\"} 1"), std::string::npos) << text;
}

TEST(Metrics, ServesOnAFreePort) {
  Metrics metrics;
  const auto port = metrics.serve("127.0.0.1:0");
  ASSERT_TRUE(port);
  EXPECT_GT(*port, 0);
}

TEST(Metrics, AnAddressInUseIsNamedWithItsFlag) {
  Metrics first;
  const auto port = first.serve("127.0.0.1:0");
  ASSERT_TRUE(port);
  Metrics second;
  const std::string address = "127.0.0.1:" + std::to_string(*port);
  const auto refused = second.serve(address);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find(address), std::string::npos);
  EXPECT_NE(refused.error().message.find("--metrics-listen"), std::string::npos);
}

}  // namespace
}  // namespace sluice
