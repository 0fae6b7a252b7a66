#include "tools/bench_options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "access/caller_key.h"
#include "base/concat.h"
#include "base/listen_address.h"
#include "base/read_file.h"
#include "tools/command_line.h"
#include "tools/flags.h"

namespace sluice {
namespace {

constexpr std::size_t kMostPromptBytes = 64 << 20;
constexpr std::uint32_t kMostStreams = 1'000'000;

// Flags whose values are read further when all of them are known.
struct Given {
  std::string prompt_tokens = "32";
  std::string output_tokens = "64";
  std::string prompts;
  std::string key_file;
  std::string authority;
  double duration_seconds = 10;
  double top_p = 0;
  double temperature = 0;
};

struct Scheme {
  std::string_view prefix;
  LoadProtocol protocol;
  bool tls;
};
constexpr Scheme kSchemes[] = {{"grpc://", LoadProtocol::kGrpc, false},
                               {"grpcs://", LoadProtocol::kGrpc, true},
                               {"http://", LoadProtocol::kRest, false},
                               {"https://", LoadProtocol::kRest, true}};

Result<void> read_target(std::string_view text, TargetOptions& target) {
  bool tls = !target.authority.empty();
  const std::string_view given = text;
  for (const Scheme& scheme : kSchemes) {
    if (!text.starts_with(scheme.prefix)) continue;
    text.remove_prefix(scheme.prefix.size());
    target.protocol = scheme.protocol;
    tls = scheme.tls;
    if (!tls && !target.authority.empty()) return invalid("--ca needs grpcs:// or https://");
    break;
  }
  target.tls = tls;
  const std::size_t slash = std::min(text.find('/'), text.size());
  std::string_view path = text.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  target.path = path;
  std::string address(text.substr(0, slash));
  auto at = parse_host_port(address);
  if (!at && target.protocol == LoadProtocol::kRest) {
    at = parse_host_port(concat(address, target.tls ? ":443" : ":80"));
  }
  if (!at || at->host.empty() || at->port == 0) {
    return invalid(concat("TARGET: \"", given,
                          "\" is none of HOST:PORT, grpc://HOST:PORT and http://HOST:PORT "
                          "(grpcs, https)"));
  }
  target.host = at->host;
  target.port = std::to_string(at->port);
  return {};
}

void add_target_flags(CLI::App& app, Given& given, TargetOptions& target) {
  app.add_option("--key-file", given.key_file,
                 "File whose first line is the key; else the environment's SLUICE_API_KEY");
  app.add_option("--ca", given.authority, "PEM file of the authority; turns TLS on");
  add_number(app, "channels", target.channels, "gRPC: connections that share the streams",
             "connections", 1, 4096);
  app.add_flag("--attach", target.attach,
               "gRPC: one step stream for each channel, as a gateway has, instead of calls");
  add_number(app, "threads", target.threads, "REST: threads; 0: one a processor, at most 4", "", 0,
             256);
  add_ms(app, "timeout-ms", target.timeout, "Of a request; 0: none");
}

void add_loop_flags(CLI::App& app, Given& given, LoadOptions& load) {
  add_number(app, "concurrency", load.concurrency,
             "Closed loop: users that ask one thing at a time", "users", 1, kMostStreams);
  add_ms(app, "think-time-ms", load.think_time,
         "Closed loop: between an answer and the next request");
  add_ms(app, "ramp-ms", load.ramp, "Closed loop: over which the users begin");
  add_number(app, "rate", load.rate,
             "Open loop: requests per second, whatever becomes of those before; 0: closed loop", "",
             0.0, 1e6);
  add_choice(app, "arrivals", load.arrivals,
             {{"poisson", ArrivalProcess::kPoisson}, {"constant", ArrivalProcess::kConstant}},
             "Open loop: gaps between requests");
  add_number(app, "max-streams", load.max_streams, "Open loop: most requests under way", "requests",
             1, kMostStreams);
  add_number(app, "duration", given.duration_seconds, "Seconds over which requests begin", "s", 0.1,
             1e7);
  add_number(app, "requests", load.requests,
             "This many requests instead of a duration; 0: duration", "", 0);
  add_number(app, "warm-up", load.warm_up_share, "Share of the duration or requests not counted",
             "share", 0.0, 0.95);
  add_ms(app, "grace-ms", load.grace, "For what still runs after the duration");
  add_number(app, "target-ttft-ms", load.target_ttft_ms,
             "Goodput: longest time to first token; 0: any", "", 0.0, 1e9);
  add_number(app, "target-itl-ms", load.target_itl_ms, "Goodput: longest mean time a token; 0: any",
             "", 0.0, 1e9);
}

void add_workload_flags(CLI::App& app, Given& given, WorkloadOptions& work) {
  app.add_option("--model", work.model, "Name of the model")->capture_default_str();
  const char* const lengths = " in tokens: N, uniform:A-B, normal:MEAN,DEV or lognormal:MEAN,DEV";
  app.add_option("--prompt-tokens", given.prompt_tokens, std::string("Prompts") + lengths)
      ->capture_default_str();
  app.add_option("--output-tokens", given.output_tokens, std::string("Answers") + lengths)
      ->capture_default_str();
  app.add_option(
      "--prompts", given.prompts,
      "File of prompts in turn: a JSON object a line, \"prompt\" or \"messages\", perhaps "
      "\"output_tokens\"");
  add_number(app, "shared-prefix-tokens", work.shared_prefix_tokens,
             "System prompt of this length that requests of a group share", "tokens", 0, 1 << 20);
  add_number(app, "prefix-groups", work.prefix_groups, "How many such prefixes there are", "groups",
             1, 100'000);
  add_number(app, "temperature", given.temperature, "0 is greedy", "T", 0.0, 2.0);
  add_number(app, "top-p", given.top_p, "Nucleus sampling; 0: the server's default", "", 0.0, 1.0);
  add_boolean(app, "ignore-eos", work.ignore_eos,
              "Answers have their whole length, where the server can do that");
  add_number(app, "seed", work.seed, "Decides arrivals, lengths and texts", "N", 0);
  add_number(app, "slow-share", work.slow_share, "Share of the requests that read slowly", "share",
             0.0, 1.0);
  add_number(app, "slow-rate", work.slow_tokens_per_second, "Tokens per second that those read",
             "tokens/s", 0.01, 1e6);
  add_number(app, "cancel-share", work.cancel_share, "Share of the requests that are cancelled",
             "share", 0.0, 1.0);
  add_number(app, "cancel-after-tokens", work.cancel_after_tokens,
             "… after this many tokens; 0: none", "tokens", 0);
  add_ms(app, "cancel-after-ms", work.cancel_after, "… after this time; 0: none");
}

Result<void> read_target_files(const Given& given, TargetOptions& target) {
  if (!given.authority.empty()) {
    auto pem = read_file(given.authority, "--ca", kMostPemBytes);
    if (!pem) return tl::unexpected(std::move(pem.error()));
    target.authority = std::move(*pem);
  }
  if (!given.key_file.empty()) {
    auto key = read_caller_key(given.key_file, "--key-file");
    if (!key) return tl::unexpected(std::move(key.error()));
    target.key = std::move(*key);
  } else if (const char* const key = std::getenv("SLUICE_API_KEY"); key != nullptr) {
    target.key = key;
  }
  return {};
}

Result<void> read_workload(const Given& given, WorkloadOptions& work) {
  auto prompt = LengthDistribution::parse(given.prompt_tokens, "--prompt-tokens");
  if (!prompt) return tl::unexpected(std::move(prompt.error()));
  work.prompt_tokens = *prompt;
  auto output = LengthDistribution::parse(given.output_tokens, "--output-tokens");
  if (!output) return tl::unexpected(std::move(output.error()));
  work.output_tokens = *output;
  work.temperature = static_cast<float>(given.temperature);
  if (given.top_p > 0) work.top_p = static_cast<float>(given.top_p);
  if (work.cancel_share > 0 && work.cancel_after_tokens == 0 && work.cancel_after.count() == 0) {
    return invalid("--cancel-share needs --cancel-after-tokens or --cancel-after-ms");
  }
  if (given.prompts.empty()) return {};
  auto text = read_file(given.prompts, "--prompts", kMostPromptBytes);
  if (!text) return tl::unexpected(std::move(text.error()));
  if (text->empty()) return invalid("--prompts: the file has no prompt");
  work.prompts_text = std::move(*text);
  return {};
}

}  // namespace

Result<std::optional<BenchOptions>> parse_bench_options(int argc, char** argv) {
  BenchOptions options;
  Given given;
  CLI::App app(
      "Loads a server and shows what its users would feel: HOST:PORT or grpc://HOST:PORT over "
      "gRPC, "
      "http://HOST:PORT over OpenAI's REST API. docs/bench.md says how to read it.",
      "sluice bench");
  app.option_defaults()->take_last();
  app.add_option("TARGET", options.target, "Whom to load");
  add_target_flags(app, given, options.load.target);
  add_loop_flags(app, given, options.load);
  add_workload_flags(app, given, options.load.workload);
  add_list(app, "server-metrics", options.load.server_metrics, "HOST:PORT",
           "Where a server shows its processor time (process_cpu_seconds_total); repeatable");
  app.add_option("--server-pid", options.load.server_pids,
                 "Process on this machine whose processor time is shown; repeatable")
      ->take_all();
  app.add_option("--json", options.json_file,
                 "Writes the results here; \"-\": stdout, and no text");
  app.add_option("--html", options.html_file, "Writes a report with plots here");
  auto parsed = parse_command_line(app, argc, argv);
  if (!parsed) return tl::unexpected(std::move(parsed.error()));
  if (!*parsed) return std::nullopt;
  if (options.target.empty()) return invalid("TARGET is missing: HOST:PORT or http://HOST:PORT");
  options.load.duration =
      std::chrono::milliseconds(static_cast<std::int64_t>(given.duration_seconds * 1000));
  if (auto read = read_target_files(given, options.load.target); !read)
    return tl::unexpected(std::move(read.error()));
  if (auto read = read_target(options.target, options.load.target); !read)
    return tl::unexpected(std::move(read.error()));
  if (auto read = read_workload(given, options.load.workload); !read)
    return tl::unexpected(std::move(read.error()));
  if (options.load.target.attach && options.load.target.protocol == LoadProtocol::kRest)
    return invalid("--attach is a way of gRPC");
  return options;
}

}  // namespace sluice
