#include "gateway/client_socket.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/check.h"
#include "gateway/tls_context.h"

namespace sluice {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kLeastInput = 16 << 10;  // reads don't get smaller than this by small limits
constexpr std::size_t kTlsRecord = 16 << 10;
constexpr std::chrono::seconds kLinger{1};
constexpr std::uint64_t kLingerBytes = 64 << 20;  // a body that is just too long, and no more

// Whether none of it is left.
bool advance(ClientSocket::Pieces& pieces, std::size_t bytes) noexcept {
  bool empty = true;
  for (asio::const_buffer& piece : pieces) {
    const std::size_t taken = std::min(bytes, piece.size());
    piece += taken;
    bytes -= taken;
    empty = empty && piece.size() == 0;
  }
  return empty;
}

}  // namespace

struct ClientSocket::Tls {
  Tls(tcp::socket& socket, std::shared_ptr<asio::ssl::context> shared)
      : context(std::move(shared)), stream(socket, *context) {}

  std::shared_ptr<asio::ssl::context> context;
  asio::ssl::stream<tcp::socket&> stream;
  std::array<char, kTlsRecord> in;
  std::string out;  // pieces become one record
};

ClientSocket::ClientSocket(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                           const GatewayLimits& limits, IoThread& io)
    : limits_(limits),
      io_(io),
      socket_(std::move(socket)),
      arrived_(io.context()),
      deadline_timer_(io.context()) {
  if (tls) tls_ = std::make_unique<Tls>(socket_, std::move(tls));
}

ClientSocket::~ClientSocket() = default;

Task<bool> ClientSocket::handshake() {
  begin_wait(limits_.header_timeout);
  const auto [error] =
      co_await tls_->stream.async_handshake(asio::ssl::stream_base::server, kAwait);
  end_wait();
  if (error) broken_ = true;
  co_return !error;
}

std::string ClientSocket::client_identity() const {
  return tls_ ? peer_subject(tls_->stream.native_handle()) : std::string();
}

std::size_t ClientSocket::room() const noexcept {
  const std::size_t bound = std::max<std::size_t>(limits_.max_header_bytes, kLeastInput);
  return bound - std::min(bound, input_.size() - consumed_);
}

// Where there is no room, to be thrown away.
std::size_t ClientSocket::most_to_read() const noexcept {
  return room() > 0 ? room() : kLeastInput;
}

void ClientSocket::consume(std::size_t bytes) noexcept {
  consumed_ += bytes;
  if (consumed_ < input_.size()) return;
  std::string().swap(input_);  // an idle connection holds nothing
  consumed_ = 0;
}

Task<ClientSocket::Fill> ClientSocket::fill(TimePoint until) {
  CHECK(room() > 0, "the parser refuses what it can't take within the bound");
  const std::uint64_t before = received_;
  while (received_ == before && !ended_) {
    start_read();
    arrived_.expires_at(until);
    const auto [woken] = co_await arrived_.async_wait(kAwait);
    if (!woken && received_ == before && !ended_) co_return Fill::kTimedOut;
  }
  co_return received_ == before ? Fill::kEnd : Fill::kMore;
}

void ClientSocket::start_read() {
  if (reading_ || ended_) return;
  reading_ = true;
  if (tls_) {
    tls_->stream.async_read_some(asio::buffer(tls_->in, most_to_read()),
                                 [this](error_code error, std::size_t bytes) {
                                   on_read(error, {tls_->in.data(), bytes});
                                 });
  } else {
    socket_.async_wait(tcp::socket::wait_read, [this](error_code error) { on_readable(error); });
  }
}

void ClientSocket::on_readable(error_code error) {
  std::size_t bytes = 0;
  if (!error) bytes = socket_.read_some(asio::buffer(io_.scratch(), most_to_read()), error);
  if (error == asio::error::would_block) error = {};
  on_read(error, {io_.scratch().data(), bytes});
}

void ClientSocket::on_read(error_code error, std::string_view bytes) {
  reading_ = false;
  received_ += bytes.size();
  if (consumed_ > 0) input_.erase(0, std::exchange(consumed_, 0));
  if (room() > 0) {
    input_.append(bytes);  // over TLS perhaps a record more than there is room for
  } else {
    overflowed_ = overflowed_ || !bytes.empty();
  }
  ended_ = ended_ || error;
  tell_of_read();
}

void ClientSocket::tell_of_read() {
  arrived_.cancel();
  if (!on_gone_) return;
  if (!ended_) return start_read();
  std::exchange(on_gone_, nullptr)();
}

bool ClientSocket::watch(std::function<void()> on_gone) {
  if (ended_) return false;
  on_gone_ = std::move(on_gone);
  start_read();
  return true;
}

Task<bool> ClientSocket::write(Pieces pieces) {
  if (broken_) co_return false;
  if (tls_) co_return co_await write_tls(pieces);
  for (;;) {
    const Taken taken = write_now(pieces);
    if (taken != Taken::kSome) co_return taken == Taken::kAll;
    begin_wait(limits_.write_timeout);
    const auto [error] = co_await socket_.async_wait(tcp::socket::wait_write, kAwait);
    end_wait();
    if (error || broken_) {
      broken_ = true;
      co_return false;
    }
  }
}

ClientSocket::Taken ClientSocket::write_now(Pieces& pieces) {
  for (;;) {
    error_code error;
    const std::size_t bytes = socket_.write_some(pieces, error);
    if (error == asio::error::would_block) return Taken::kSome;
    if (error) {
      broken_ = true;
      return Taken::kFailed;
    }
    sent_ += bytes;
    if (advance(pieces, bytes)) return Taken::kAll;
  }
}

Task<bool> ClientSocket::write_tls(Pieces pieces) {
  std::string& out = tls_->out;
  out.clear();
  for (const asio::const_buffer& piece : pieces) {
    out.append(static_cast<const char*>(piece.data()), piece.size());
  }
  for (std::size_t at = 0; at < out.size();) {
    begin_wait(limits_.write_timeout);
    const auto [error, bytes] =
        co_await tls_->stream.async_write_some(asio::buffer(out) + at, kAwait);
    end_wait();
    if (error || broken_) {
      broken_ = true;
      co_return false;
    }
    at += bytes;
    sent_ += bytes;
  }
  if (out.capacity() > kTlsRecord) std::string().swap(out);
  co_return true;
}

void ClientSocket::begin_wait(std::chrono::milliseconds limit) {
  waiting_ = true;
  deadline_ = std::chrono::steady_clock::now() + limit;
  if (!armed_) return arm();
  if (deadline_ < deadline_timer_.expiry()) deadline_timer_.cancel();  // on_deadline arms it again
}

void ClientSocket::arm() {
  armed_ = true;
  deadline_timer_.expires_at(deadline_);
  deadline_timer_.async_wait([this](error_code) { on_deadline(); });
}

void ClientSocket::on_deadline() {
  armed_ = false;
  arrived_.cancel();
  if (!waiting_ || closed_) return;
  if (std::chrono::steady_clock::now() < deadline_) return arm();
  timed_out_ = true;
  close();
}

void ClientSocket::close() noexcept {
  if (std::exchange(closed_, true)) return;
  ended_ = broken_ = true;
  error_code error;
  socket_.close(error);
  deadline_timer_.cancel();
  arrived_.cancel();
}

Task<void> ClientSocket::finish() {
  unwatch();
  if (!broken_ && tls_) co_await finish_tls();
  if (!broken_) co_await linger();
  close();
  while (reading_ || armed_) {  // their callbacks name this object
    arrived_.expires_at(kForever);
    co_await arrived_.async_wait(kAwait);
  }
}

// Closing a TLS stream reads as well as writes: the read under way has to end first.
Task<void> ClientSocket::finish_tls() {
  error_code error;
  if (reading_) socket_.cancel(error);
  while (reading_) {
    arrived_.expires_at(kForever);
    co_await arrived_.async_wait(kAwait);
  }
  begin_wait(kLinger);
  co_await tls_->stream.async_shutdown(kAwait);
  end_wait();
}

Task<void> ClientSocket::linger() {
  error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  begin_wait(kLinger);
  const std::uint64_t most = received_ + kLingerBytes;
  while (!error && received_ < most) {
    co_await socket_.async_wait(tcp::socket::wait_read, kAwait);
    received_ += socket_.read_some(asio::buffer(io_.scratch()), error);
    if (error == asio::error::would_block) error = {};
  }
  end_wait();
}

}  // namespace sluice
