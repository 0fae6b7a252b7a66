#include "base/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/exposer.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <map>
#include <string_view>

#include "base/concat.h"
#include "base/listen_address.h"

namespace sluice {

struct Metrics::Exposition {
  std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  std::unique_ptr<prometheus::Exposer> exposer;
};

namespace {

// A connection has a thread to itself until its request has come and is answered, so half-sent ones
// hold up a scrape. docs/back_pressure.md names both.
constexpr const char* kScrapeThreads = "64";
constexpr const char* kScrapeMs = "500";  // for the request, and for a write that is not taken
constexpr const char* kScrapeBacklog = "1024";

std::map<std::string, std::string> to_map(const Metrics::Labels& labels) {
  return {labels.begin(), labels.end()};
}

}  // namespace

void Counter::add(double amount) noexcept { series_->Increment(amount); }
double Counter::value() const noexcept { return series_->Value(); }
void Gauge::set(double value) noexcept { series_->Set(value); }
void Gauge::add(double amount) noexcept { series_->Increment(amount); }
double Gauge::value() const noexcept { return series_->Value(); }
void Histogram::observe(double value) noexcept { series_->Observe(value); }

Metrics::Metrics() : exposition_(std::make_unique<Exposition>()) {}
Metrics::~Metrics() = default;

Counter Metrics::counter(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(*exposition_->registry);
  return Counter(&family.Add(to_map(labels)));
}

Gauge Metrics::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  auto& family = prometheus::BuildGauge().Name(name).Help(help).Register(*exposition_->registry);
  return Gauge(&family.Add(to_map(labels)));
}

Histogram Metrics::histogram(const std::string& name, const std::string& help,
                             std::vector<double> bounds, const Labels& labels) {
  auto& family =
      prometheus::BuildHistogram().Name(name).Help(help).Register(*exposition_->registry);
  return Histogram(
      &family.Add(to_map(labels), prometheus::Histogram::BucketBoundaries(std::move(bounds))));
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(exposition_->registry->Collect());
}

Result<int> Metrics::serve(const std::string& address) try {
  exposition_->exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
      "listening_ports", address, "num_threads", kScrapeThreads, "request_timeout_ms", kScrapeMs,
      "listen_backlog", kScrapeBacklog, "enable_keep_alive", "no"});
  exposition_->exposer->RegisterCollectable(exposition_->registry);
  return exposition_->exposer->GetListeningPorts().at(0);
} catch (const std::exception&) {
  return fail(Code::kUnavailable, concat("can't serve metrics at ", address,
                                         " (--metrics-listen): in use, or not an address"));
}

Result<std::string> serve_metrics(Metrics& metrics, const std::string& listen) {
  constexpr std::string_view kFlag = "--metrics-listen";
  if (listen == "off") return listen;
  auto address = parse_listen_address(listen, kFlag);
  if (!address) return tl::unexpected(std::move(address.error()));
  if (auto can = check_can_listen(*address, kFlag); !can)
    return tl::unexpected(std::move(can.error()));
  const auto port = metrics.serve(address->text());
  if (!port) return tl::unexpected(port.error());
  address->port = *port;
  return address->text();
}

std::vector<double> Metrics::seconds_bounds() {
  return {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
          0.2,    0.5,    1,      2,     5,     10,    20,   50,   100};
}

}  // namespace sluice
