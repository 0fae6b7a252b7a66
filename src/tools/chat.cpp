#include "tools/chat.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/concat.h"
#include "base/error.h"
#include "contract/limits.h"
#include "inference.pb.h"
#include "replica/library_logs.h"
#include "tools/chat_call.h"
#include "tools/chat_options.h"
#include "tools/chat_session.h"
#include "tools/interrupts.h"
#include "tools/line_reader.h"
#include "tools/local_server.h"
#include "tools/terminal_text.h"

namespace sluice {
namespace {

constexpr int kFailed = 1;
constexpr int kInterrupted = 130;  // 128 + SIGINT, as shells have it
constexpr const char* kDefaultAddress = "127.0.0.1:50051";
constexpr std::chrono::milliseconds kLookForServer{500};

bool is_terminal(int descriptor) noexcept { return isatty(descriptor) == 1; }

int say_error(std::string_view message) {
  std::fprintf(stderr, "sluice chat: %s\n", one_line(message).c_str());
  return kFailed;
}

// Shows deltas on stdout: exact bytes, or what a terminal may see.
class Output {
 public:
  // False: it can't be written.
  bool show(std::string_view delta) {
    write(to_terminal_ ? text_.push(delta) : std::string(delta));
    return !failure_;
  }
  Result<void> finish() {
    if (to_terminal_) write(text_.finish());
    if (to_terminal_ && !ends_line_) write("\n");
    if (!failure_) return {};
    return invalid(concat("can't write to stdout: ", failure_.message()));
  }

 private:
  void write(std::string_view bytes) {
    if (bytes.empty() || failure_) return;
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
        std::fflush(stdout) != 0)
      failure_ = std::error_code(errno, std::generic_category());
    ends_line_ = bytes.back() == '\n';
  }

  const bool to_terminal_ = is_terminal(STDOUT_FILENO);
  bool ends_line_ = true;
  TerminalText text_;
  std::error_code failure_;
};

void show_figures(const Answer& answer) {
  if (!is_terminal(STDERR_FILENO)) return;
  const double first = std::chrono::duration<double>(answer.to_first_token).count();
  std::fprintf(stderr, "\x1B[2m%s%u tokens, %.1f tokens/s, first after %.2f s\x1B[0m\n",
               answer.cancelled ? "cancelled; " : "", answer.tokens, answer.tokens_per_second(),
               first);
}

// A server, the conversation with it, and how its answers are shown.
class Chat {
 public:
  Chat(ChatServer server, const ChatOptions& options, Interrupts& interrupts)
      : server_name_(options.server.value_or(kDefaultAddress)),
        server_(std::move(server)),
        session_(options),
        interrupts_(interrupts) {}

  // 0, or the exit code of a process that had only this to ask.
  int answer(std::string prompt) {
    inference::GenerateRequest request;
    session_.ask(std::move(prompt), request);
    Output output;
    Result<Answer> answer = server_.generate(
        request, interrupts_, [&](std::string_view delta) { return output.show(delta); });
    if (const auto shown = output.finish(); !shown) return say_error(shown.error().message);
    if (!answer) return refused(answer.error());
    show_figures(*answer);
    if (!answer->cancelled || !answer->text.empty()) session_.answered(std::move(answer->text));
    return answer->cancelled ? kInterrupted : 0;
  }

  int converse() {
    std::fputs("Ctrl-C stops an answer, Ctrl-D quits, /clear begins anew.\n", stderr);
    LineReader reader(STDIN_FILENO, interrupts_);
    bool quitting = false;
    for (;;) {
      LineReader::Input input = reader.read("> ");
      switch (input.kind) {
        case LineReader::Kind::kEnd:
          std::fputc('\n', stderr);
          return 0;
        case LineReader::Kind::kInterrupt:
          if (std::exchange(quitting, true)) return 0;
          std::fputs("\nCtrl-C once more quits.\n", stderr);
          continue;
        case LineReader::Kind::kLine:
          break;
      }
      quitting = false;
      if (input.line == "/clear") {
        session_.clear();
      } else if (!input.line.empty()) {
        answer(std::move(input.line));
      }
    }
  }

 private:
  // Only where the fault may lie in the address is it named.
  int refused(const Error& error) const {
    if (error.code != Code::kUnavailable) return say_error(error.message);
    return say_error(concat(server_name_, ": ", error.message));
  }

  const std::string server_name_;
  ChatServer server_;
  ChatSession session_;
  Interrupts& interrupts_;
};

// Whether somebody has put text there for us: a pipe, a socket or a file, but no terminal and no
// /dev/null.
bool holds_text(int descriptor) noexcept {
  struct stat what {};
  return fstat(descriptor, &what) == 0 &&
         (S_ISFIFO(what.st_mode) || S_ISSOCK(what.st_mode) || S_ISREG(what.st_mode));
}

// Who left a pipe open by mistake sees why there is no answer.
void say_if_it_takes_long(int descriptor) {
  constexpr int kPatienceMs = 1000;
  pollfd waiting{descriptor, POLLIN, 0};
  if (poll(&waiting, 1, kPatienceMs) != 0) return;
  std::fputs("Waiting for stdin, which goes along with the question (</dev/null: without).\n",
             stderr);
}

// All of stdin, without the line end behind it.
Result<std::string> read_stdin() {
  constexpr std::size_t kMost = Limits{}.max_message_bytes;
  std::string prompt;
  std::string chunk(64 << 10, '\0');
  while (const std::size_t size = std::fread(chunk.data(), 1, chunk.size(), stdin)) {
    prompt.append(chunk, 0, size);
    if (prompt.size() > kMost) {
      return invalid(concat("stdin has more than the ", kMost, " bytes that a message holds"));
    }
  }
  if (!prompt.empty() && prompt.back() == '\n') prompt.pop_back();
  return prompt;
}

// What the arguments ask, below what stdin holds. Nothing: there is a person to ask.
Result<std::optional<std::string>> find_prompt(const std::optional<std::string>& question) {
  const bool piped = question ? holds_text(STDIN_FILENO) : !is_terminal(STDIN_FILENO);
  if (!piped) return question;
  if (question) say_if_it_takes_long(STDIN_FILENO);
  Result<std::string> text = read_stdin();
  if (!text) return tl::unexpected(std::move(text.error()));
  if (text->empty() && !question)
    return invalid("no prompt: stdin is empty, and there is none among the arguments");
  if (text->empty()) return question;
  return question ? concat(*text, "\n\n", *question) : std::move(*text);
}

// The channel of the server asked for, of the one at the default address, or of a model in this
// process, which then lives in `local`.
Result<std::shared_ptr<grpc::Channel>> connect(const ChatOptions& options, Interrupts& interrupts,
                                               std::unique_ptr<LocalServer>& local) {
  auto channel = open_channel(options.server.value_or(kDefaultAddress), options.tls);
  if (options.server) return channel;
  if (answers(*channel, kLookForServer)) return channel;
  if (is_terminal(STDERR_FILENO)) {
    std::fprintf(stderr, "No server at %s: loading the default model here.\n", kDefaultAddress);
  }
  const OnInterrupt quit(interrupts,
                         [] { _exit(kInterrupted); });  // no answer yet that it could stop
  auto started = LocalServer::start();
  if (!started) return tl::unexpected(std::move(started.error()));
  local = std::move(*started);
  return local->channel();
}

int chat(const ChatOptions& options) {
  // The next descriptor that is opened would be stdout.
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) return say_error("stdout is closed");
  route_library_logs();
  Result<std::optional<std::string>> prompt = find_prompt(options.prompt);
  if (!prompt) return say_error(prompt.error().message);
  Interrupts interrupts;
  std::unique_ptr<LocalServer> local;
  auto channel = connect(options, interrupts, local);
  if (!channel) return say_error(channel.error().message);
  Chat conversation(ChatServer(std::move(*channel), options), options, interrupts);
  return *prompt ? conversation.answer(std::move(**prompt)) : conversation.converse();
}

}  // namespace

int run_chat(int argc, char** argv) noexcept {
  const Result<std::optional<ChatOptions>> options = parse_chat_options(argc, argv);
  if (!options) return say_error(options.error().message);
  return *options ? chat(**options) : 0;
}

}  // namespace sluice
