// Http1Responder: the answer to one HTTP/1 request: with its length, chunked, or, to an HTTP/1.0
// client, streamed until the connection closes. HEAD gets the head alone. Each call is one writev
// of what it is given; nothing is copied and nothing allocated but the head. Bounded: holds no more
// than one call's bytes (see ClientSocket). Thread: its I/O thread.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "gateway/client_socket.h"
#include "gateway/http1_response.h"
#include "gateway/responder.h"

namespace sluice {

class Http1Responder final : public Responder {
 public:
  struct Wishes {  // of the request
    bool http10 = false;
    bool head_only = false;
    bool keep_alive = true;
  };

  Http1Responder(ClientSocket& socket, IoThread& io, Wishes wishes) noexcept
      : socket_(socket), io_(io), wishes_(wishes) {}

  [[nodiscard]] Task<bool> respond(ResponseHead head, std::string body) override;
  [[nodiscard]] Task<bool> begin(ResponseHead head, std::string_view first) override;
  [[nodiscard]] Task<bool> write(std::string_view bytes) override;
  [[nodiscard]] Task<bool> end(std::string_view last) override;
  [[nodiscard]] bool committed() const noexcept override { return state_ != State::kFresh; }

  // The connection closes after this answer.
  void close_after() noexcept { wishes_.keep_alive = false; }
  // Whether all of it was handed over and another request may follow.
  [[nodiscard]] bool complete() const noexcept {
    return state_ == State::kEnded && !socket_.broken();
  }
  [[nodiscard]] bool keep_alive() const noexcept { return complete() && wishes_.keep_alive; }

 private:
  enum class State { kFresh, kStreaming, kEnded };

  [[nodiscard]] bool bodiless(int status) const noexcept;
  [[nodiscard]] std::string_view chunk_header(std::size_t bytes) noexcept;

  ClientSocket& socket_;
  IoThread& io_;
  Wishes wishes_;
  State state_ = State::kFresh;
  bool chunked_ = false;
  bool no_body_ = false;
  std::array<char, 2 * sizeof(std::size_t) + 2> chunk_header_{};
  std::string head_;
  std::string body_;
};

}  // namespace sluice
