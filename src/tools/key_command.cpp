#include "tools/key_command.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "access/key_file.h"
#include "base/error.h"

namespace sluice {
namespace {

Result<void> add(const std::string& file, const std::string& name, const KeyLimits& limits) {
  const auto key = add_key(file, name, limits);
  if (!key) return tl::unexpected(key.error());
  std::printf("%s\n", key->c_str());
  return {};
}

Result<void> list(const std::string& file) {
  const auto keys = list_keys(file);
  if (!keys) return tl::unexpected(keys.error());
  for (const ApiKey& key : *keys)
    std::printf("%s%s\n", key.name.c_str(), to_text(key.limits).c_str());
  return {};
}

void add_limit_flags(CLI::App& command, KeyLimits& limits) {
  const CLI::Range in_range(std::uint32_t{1}, kMaxPerMinute);
  command.add_option("--rpm", limits.requests_per_minute, "Requests a minute")->check(in_range);
  command.add_option("--tpm", limits.tokens_per_minute, "Tokens a minute, prompts and answers")
      ->check(in_range);
  command.add_option("--streams", limits.streams, "Answers under way at once")->check(in_range);
  command.add_option("--models", limits.models, "The only models it may ask for: A,B")
      ->delimiter(',');
  command.add_flag("--trusted", limits.trusted, "It may name the machine that takes a request");
}

int failed(const std::string& message) {
  std::fprintf(stderr, "sluice key: %s\n", message.c_str());
  return EXIT_FAILURE;
}

}  // namespace

int run_key(int argc, char** argv) {
  std::string file;
  std::string name;
  KeyLimits limits;
  CLI::App app("Makes, shows and takes back API keys. A running server notices within a second.",
               "sluice key");
  app.require_subcommand(1);
  CLI::App* const adding = app.add_subcommand("add", "Make a key, and print it this once");
  CLI::App* const listing = app.add_subcommand("list", "Print the keys' names and limits");
  CLI::App* const revoking = app.add_subcommand("revoke", "Take a key back");
  for (CLI::App* command : {adding, listing, revoking}) {
    command->add_option("--api-keys", file, "The file that the server is given")
        ->required()
        ->type_name("FILE");
    if (command != listing)
      command->add_option("name,--name", name, "1 to 64 of A-Z a-z 0-9 . _ -")->required();
  }
  add_limit_flags(*adding, limits);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return EXIT_SUCCESS;
  } catch (const CLI::Error& error) {
    return failed(error.what());
  }
  Result<void> done;
  if (adding->parsed()) done = add(file, name, limits);
  if (listing->parsed()) done = list(file);
  if (revoking->parsed()) done = revoke_key(file, name);
  if (done && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
    done = fail(Code::kUnavailable, adding->parsed() ? "can't show the key on stdout: revoke it"
                                                     : "can't write to stdout");
  return done ? EXIT_SUCCESS : failed(done.error().message);
}

}  // namespace sluice
