// Processor time of other processes by their number and of servers by the counter that they show,
// and what this process has of the machine. Thread: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// User and system. Nothing: there is no such process.
[[nodiscard]] std::optional<double> cpu_seconds_of(std::int32_t pid);
// Of the metric process_cpu_seconds_total in Prometheus' text format.
[[nodiscard]] std::optional<double> cpu_seconds_in(std::string_view metrics);
// That this process may run on.
[[nodiscard]] unsigned own_processors() noexcept;
// Peak resident memory of this process.
[[nodiscard]] std::uint64_t own_peak_bytes() noexcept;

}  // namespace sluice
