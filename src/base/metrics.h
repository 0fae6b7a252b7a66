// Metrics: counters, gauges and histograms in Prometheus' text format, on a port of their own.
// Made once at start and passed to whoever counts; a handle is valid as long as its Metrics lives.
// Counting never fails. Bounded: series are made at start only, never from what a client sends.
// Thread: any.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
}  // namespace prometheus

namespace sluice {

class Counter {
 public:
  explicit Counter(prometheus::Counter* series) noexcept : series_(series) {}
  void add(double amount = 1) noexcept;  // amount ≥ 0
  [[nodiscard]] double value() const noexcept;

 private:
  prometheus::Counter* series_;
};

class Gauge {
 public:
  explicit Gauge(prometheus::Gauge* series) noexcept : series_(series) {}
  void set(double value) noexcept;
  void add(double amount) noexcept;
  [[nodiscard]] double value() const noexcept;

 private:
  prometheus::Gauge* series_;
};

class Histogram {
 public:
  explicit Histogram(prometheus::Histogram* series) noexcept : series_(series) {}
  void observe(double value) noexcept;

 private:
  prometheus::Histogram* series_;
};

class Metrics {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // The same name and labels give the same series.
  [[nodiscard]] Counter counter(const std::string& name, const std::string& help,
                                const Labels& labels = {});
  [[nodiscard]] Gauge gauge(const std::string& name, const std::string& help,
                            const Labels& labels = {});
  // `bounds`: upper bounds of the buckets, rising.
  [[nodiscard]] Histogram histogram(const std::string& name, const std::string& help,
                                    std::vector<double> bounds, const Labels& labels = {});

  // All series in the text exposition format.
  [[nodiscard]] std::string text() const;

  // Serves /metrics over HTTP at "HOST:PORT" (port 0: any free one) until destroyed; returns the
  // port. The error names the address and the flag --metrics-listen.
  [[nodiscard]] Result<int> serve(const std::string& address);

  // Bucket bounds for durations in seconds, 100 µs to 100 s, about three to a decade.
  [[nodiscard]] static std::vector<double> seconds_bounds();

 private:
  struct Exposition;
  std::unique_ptr<Exposition> exposition_;
};

// Serves them as the flag --metrics-listen says: at HOST:PORT, which comes back with the port that
// it has, or, for "off", nowhere. Errors name the flag.
[[nodiscard]] Result<std::string> serve_metrics(Metrics& metrics, const std::string& listen);

}  // namespace sluice
