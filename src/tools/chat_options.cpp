#include "tools/chat_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <utility>

#include "access/caller_key.h"
#include "base/read_file.h"
#include "contract/limits.h"
#include "tools/flags.h"
#include "tools/mime_type.h"

namespace sluice {
namespace {

struct Paths {
  std::vector<std::string> files;
  std::string api_key;
  std::string tls_authority;
  std::string tls_certificate;
  std::string tls_key;
};

Result<std::optional<TlsPem>> read_tls(const Paths& paths) {
  if (paths.tls_certificate.empty() != paths.tls_key.empty()) {
    return invalid("--tls-cert and --tls-key need each other");
  }
  if (paths.tls_authority.empty()) {
    if (!paths.tls_key.empty()) return invalid("--tls-cert and --tls-key need --tls-ca");
    return std::nullopt;
  }
  TlsPem tls;
  const std::tuple<const std::string&, std::string_view, std::string&> files[] = {
      {paths.tls_authority, "--tls-ca", tls.authority},
      {paths.tls_certificate, "--tls-cert", tls.certificate},
      {paths.tls_key, "--tls-key", tls.key},
  };
  for (const auto& [path, flag, content] : files) {
    if (path.empty()) continue;
    Result<std::string> read = read_file(path, flag, kMostPemBytes);
    if (!read) return tl::unexpected(std::move(read.error()));
    content = std::move(*read);
  }
  return tls;
}

Result<void> read_files(const Paths& paths, ChatOptions& options) {
  for (const std::string& path : paths.files) {
    Result<std::string> bytes = read_file(path, "--file", Limits{}.max_message_bytes);
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    const std::string_view type = mime_type_of(path, *bytes);
    options.files.push_back({std::move(*bytes), std::string(type)});
  }
  if (!paths.api_key.empty()) {
    Result<std::string> key = read_caller_key(paths.api_key, "--api-key-file");
    if (!key) return tl::unexpected(std::move(key.error()));
    options.api_key = std::move(*key);
  }
  Result<std::optional<TlsPem>> tls = read_tls(paths);
  if (!tls) return tl::unexpected(std::move(tls.error()));
  options.tls = std::move(*tls);
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

Result<std::optional<ChatOptions>> parse_chat_options(int argc, char** argv) {
  ChatOptions options;
  Paths paths;
  std::vector<std::string> words;
  std::optional<double> timeout_seconds;
  CLI::App app(
      "A chat over gRPC. Without a prompt, here or on a piped stdin: a conversation. With both, "
      "stdin's text comes first.",
      "sluice chat");
  app.option_defaults()->take_last();
  app.add_option("prompt", words, "The prompt: prints its answer and ends")->take_all();
  app.add_option("--server", options.server,
                 "HOST:PORT of a replica. Default: 127.0.0.1:50051 if one answers there, otherwise "
                 "the default model, served in this process");
  app.add_option("--model", options.model, "Name of the model")->capture_default_str();
  app.add_option("--system", options.system, "What the model is told before the conversation");
  app.add_option("--file", paths.files, "Sends this file with the first prompt; repeatable")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--temperature", options.temperature, "0 (greedy) to 2")->capture_default_str();
  app.add_option("--top-p", options.top_p, "Nucleus sampling, above 0 to 1")->capture_default_str();
  app.add_option("--max-tokens", options.max_tokens, "Longest answer, in tokens");
  app.add_option("--seed", options.seed, "Seed of the sampling")
      ->check(within(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()));
  app.add_option("--timeout", timeout_seconds, "Seconds that an answer may take")
      ->check(within(0.001, 1e6));
  app.add_option("--api-key-file", paths.api_key, "File whose first line is the key");
  app.add_option("--tls-ca", paths.tls_authority, "PEM file of the authority; turns TLS on");
  app.add_option("--tls-cert", paths.tls_certificate, "PEM file of this client's certificate");
  app.add_option("--tls-key", paths.tls_key, "PEM file of its key");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) return invalid(error.what());
    app.exit(error);  // shows the help
    return std::nullopt;
  }
  if (timeout_seconds) {
    options.timeout = std::chrono::milliseconds{static_cast<std::int64_t>(*timeout_seconds * 1000)};
  }
  if (options.server && options.server->empty()) return invalid("--server is empty: HOST:PORT");
  if (!words.empty()) options.prompt = joined(words);
  if (auto read = read_files(paths, options); !read) return tl::unexpected(read.error());
  return options;
}

}  // namespace sluice
