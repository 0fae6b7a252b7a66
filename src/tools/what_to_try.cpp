#include "tools/what_to_try.h"

#include <string_view>

#include "base/concat.h"
#include "base/listen_address.h"

namespace sluice {
namespace {

constexpr std::string_view kQuestion = "Name the capital city of France.";

// Where this machine's clients find what listens at `address`. Certificates are made out to names.
std::string from_here(const std::string& address, bool tls) {
  const auto parsed = parse_host_port(address);
  if (!parsed) return address;
  const bool anywhere = parsed->host == "0.0.0.0" || parsed->host == "::";
  const bool unnamed = tls && is_loopback(parsed->host);
  return anywhere || unnamed ? host_port("localhost", parsed->port) : address;
}

// As one word of a shell.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string if_set(bool set, std::string text) { return set ? std::move(text) : std::string(); }

std::string chat_line(const WhatServes& serving) {
  const bool tls = serving.tls.enabled();
  return concat(
      "  ./run chat --server ", from_here(serving.grpc, tls),
      if_set(tls, concat(" --tls-ca ", quoted(serving.tls.certificate))),
      if_set(!serving.tls.client_ca.empty(), " --tls-cert CLIENT.pem --tls-key CLIENT.key"),
      if_set(!serving.api_keys.empty(), " --api-key-file KEY.txt"), " \"", kQuestion, "\"\n");
}

std::string curl_line(const WhatServes& serving, const std::string& url) {
  const bool tls = serving.tls.enabled();
  return concat(
      "  curl -N", if_set(tls, concat(" --cacert ", quoted(serving.tls.certificate))),
      if_set(!serving.tls.client_ca.empty(), " --cert CLIENT.pem --key CLIENT.key"), " ", url,
      "/v1/chat/completions -H 'Content-Type: application/json'",
      if_set(!serving.api_keys.empty(), " -H 'Authorization: Bearer KEY'"),
      " -d '{\"model\":\"local\",\"stream\":true,\"temperature\":0,\"messages\":[{\"role\":"
      "\"user\",\"content\":\"",
      kQuestion, "\"}]}'\n");
}

std::string grpcurl_line(const WhatServes& serving) {
  const bool tls = serving.tls.enabled();
  return concat("  grpcurl",
                tls ? concat(" -cacert ", quoted(serving.tls.certificate)) : " -plaintext",
                if_set(!serving.tls.client_ca.empty(), " -cert CLIENT.pem -key CLIENT.key"),
                if_set(!serving.reflection, " -import-path proto -proto inference.proto"),
                if_set(!serving.api_keys.empty(), " -H 'authorization: Bearer KEY'"),
                " -d '{\"model\":\"local\",\"prompt\":\"SGVsbG8=\",\"max_tokens\":16}' ",
                from_here(serving.grpc, tls), " inference.LLM/Generate\n");
}

// What stands for something of the reader's own in the lines above.
std::string placeholders(const WhatServes& serving) {
  return concat(
      if_set(!serving.api_keys.empty(),
             concat("KEY: what `./run key add --api-keys ", quoted(serving.api_keys),
                    " NAME` prints; KEY.txt: a file that holds it.\n")),
      if_set(
          serving.tls.enabled(),
          concat(quoted(serving.tls.certificate),
                 " stands for its authority, which is another file unless it is self-signed.\n")),
      if_set(!serving.tls.client_ca.empty(),
             "CLIENT.pem, CLIENT.key: a certificate that --tls-client-ca signed, and its key.\n"));
}

}  // namespace

std::string what_to_try(const WhatServes& serving) {
  const bool tls = serving.tls.enabled();
  const std::string url = concat(tls ? "https://" : "http://", from_here(serving.http, tls));
  const bool keys = !serving.api_keys.empty();
  std::string text = concat("\nIn another terminal:\n", chat_line(serving), curl_line(serving, url),
                            grpcurl_line(serving), placeholders(serving));
  text += concat("OpenAI's clients: base_url=", url, "/v1, ", keys ? "api_key=KEY" : "any api_key",
                 ", model \"local\".\n");
  if (serving.metrics != "off") {
    text += concat("Metrics: http://", from_here(serving.metrics, false), "/metrics and ", url,
                   "/metrics", keys ? " (with KEY)" : "", "\n");
  }
  return text + "Ctrl-C ends it.\n";
}

}  // namespace sluice
