#include "tools/bench_command.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>

#include "base/concat.h"
#include "base/log.h"
#include "load/descriptor_limit.h"
#include "load/live_view.h"
#include "load/load_report.h"
#include "load/load_run.h"
#include "load/load_target.h"
#include "load/workload.h"
#include "replica/library_logs.h"
#include "tools/bench_options.h"
#include "tools/stop_signals.h"

namespace sluice {
namespace {

constexpr int kInterrupted = 130;

int say_error(const std::string& message) {
  std::fprintf(stderr, "sluice bench: %s\n", message.c_str());
  return EXIT_FAILURE;
}

std::string wall_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

Result<void> write_file(const std::string& path, const char* flag, const std::string& text) {
  const bool to_stdout = path == "-";
  std::FILE* const file = to_stdout ? stdout : std::fopen(path.c_str(), "w");
  if (file == nullptr) return invalid(concat(flag, ": ", path, " can't be written"));
  bool fine = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  fine = std::fflush(file) == 0 && fine;
  if (!to_stdout) fine = std::fclose(file) == 0 && fine;
  if (!fine) return invalid(concat(flag, ": ", path, " could not be written whole"));
  return {};
}

Result<void> show_report(const LoadReport& report, const BenchOptions& options) {
  if (!options.json_file.empty()) {
    if (auto written = write_file(options.json_file, "--json", report_json(report)); !written)
      return written;
  }
  if (!options.html_file.empty()) {
    if (auto written = write_file(options.html_file, "--html", report_html(report)); !written)
      return written;
  }
  if (options.json_file == "-") return {};
  return write_file("-", "stdout", report_text(report));
}

int bench(const BenchOptions& options) {
  if (const auto enough = need_descriptors(options.load); !enough)
    return say_error(enough.error().message);
  const Result<Workload> workload = Workload::make(options.load.workload);
  if (!workload) return say_error(workload.error().message);

  std::atomic<LoadRun*> running = nullptr;
  StopSignals signals([&](int) {
    LoadRun* const run = running;
    if (run == nullptr) std::_Exit(kInterrupted);
    run->stop();
  });
  route_library_logs();
  set_log_level(LogLevel::kOff);
  const std::unique_ptr<LoadTarget> target = make_target(options.load.target);
  if (const auto connected = target->connect(); !connected)
    return say_error(connected.error().message);

  LoadReport report;
  {
    LiveView view(isatty(STDERR_FILENO) == 1);
    LoadRun run(options.load, *target, *workload);
    running = &run;
    std::string began = wall_time();
    LoadResult result = run.run([&](const LiveFigures& figures) { view.show(figures); });
    running = nullptr;
    report = make_report(options.load, options.target, std::move(began), std::move(result));
  }
  if (const auto shown = show_report(report, options); !shown)
    return say_error(shown.error().message);
  return report.result.interrupted ? kInterrupted : EXIT_SUCCESS;
}

}  // namespace

int run_bench(int argc, char** argv) noexcept {
  const auto options = parse_bench_options(argc, argv);
  if (!options) return say_error(options.error().message);
  return *options ? bench(**options) : EXIT_SUCCESS;
}

}  // namespace sluice
