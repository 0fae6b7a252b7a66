#include "gateway/http1_responder.h"

#include <charconv>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

using Body = Http1Framing::Body;

constexpr std::string_view kChunkEnd = "\r\n";
constexpr std::string_view kLastChunk = "0\r\n\r\n";
constexpr std::string_view kChunkEndAndLastChunk = "\r\n0\r\n\r\n";

asio::const_buffer piece(std::string_view bytes) noexcept { return {bytes.data(), bytes.size()}; }

Task<bool> nothing_to_write(const ClientSocket& socket) { co_return !socket.broken(); }

}  // namespace

bool Http1Responder::bodiless(int status) const noexcept {
  return wishes_.head_only || !may_have_body(status);
}

std::string_view Http1Responder::chunk_header(std::size_t bytes) noexcept {
  char* const begin = chunk_header_.data();
  char* end = std::to_chars(begin, begin + chunk_header_.size() - 2, bytes, 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  return {begin, static_cast<std::size_t>(end - begin)};
}

Task<bool> Http1Responder::respond(ResponseHead head, std::string body) {
  CHECK(state_ == State::kFresh, "an answer is given once");
  state_ = State::kEnded;
  body_ = std::move(body);
  const Body framing = may_have_body(head.status) ? Body::kLength : Body::kNone;
  append_http1_head(head_, head, {framing, body_.size(), wishes_.http10, wishes_.keep_alive},
                    io_.date());
  if (bodiless(head.status)) body_.clear();
  return socket_.write({piece(head_), piece(body_), {}});
}

Task<bool> Http1Responder::begin(ResponseHead head, std::string_view first) {
  CHECK(state_ == State::kFresh, "an answer is begun once");
  state_ = State::kStreaming;
  no_body_ = bodiless(head.status);
  chunked_ = !wishes_.http10;
  if (wishes_.http10 && !no_body_) close_after();
  Body framing = chunked_ ? Body::kChunked : Body::kToTheEnd;
  if (!may_have_body(head.status)) framing = Body::kNone;
  append_http1_head(head_, head, {framing, 0, wishes_.http10, wishes_.keep_alive}, io_.date());
  if (no_body_ || first.empty()) return socket_.write({piece(head_), {}, {}});
  if (!chunked_) return socket_.write({piece(head_), piece(first), {}});
  head_ += chunk_header(first.size());
  return socket_.write({piece(head_), piece(first), piece(kChunkEnd)});
}

Task<bool> Http1Responder::write(std::string_view bytes) {
  CHECK(state_ == State::kStreaming, "written between begin and end");
  if (no_body_ || bytes.empty()) return nothing_to_write(socket_);
  if (!chunked_) return socket_.write({piece(bytes), {}, {}});
  return socket_.write({piece(chunk_header(bytes.size())), piece(bytes), piece(kChunkEnd)});
}

Task<bool> Http1Responder::end(std::string_view last) {
  CHECK(state_ == State::kStreaming, "what ends has begun");
  state_ = State::kEnded;
  if (no_body_ || (!chunked_ && last.empty())) return nothing_to_write(socket_);
  if (!chunked_) return socket_.write({piece(last), {}, {}});
  if (last.empty()) return socket_.write({piece(kLastChunk), {}, {}});
  return socket_.write(
      {piece(chunk_header(last.size())), piece(last), piece(kChunkEndAndLastChunk)});
}

}  // namespace sluice
