// ClientSocket: the connection of one client, plain or TLS, as its session reads and writes it.
// There is at most one read under way and it outlives its waiter, so that a client's going is
// noticed while its request is being answered; a client that has shut down only its sending side
// counts as gone, too. Writes go to the kernel at once and wait only when it takes no more.
// Bounded: input by --max-header-bytes, and a TLS record (at the bound what comes is thrown away);
// output by what one write holds; a write that the client doesn't take by --write-timeout-ms.
// Thread: its I/O thread.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "gateway/asio.h"
#include "gateway/gateway_limits.h"
#include "gateway/io_threads.h"

namespace sluice {

class ClientSocket {
 public:
  enum class Fill { kMore, kEnd, kTimedOut };
  // What leaves in one write, without being copied together.
  using Pieces = std::array<asio::const_buffer, 3>;

  // `tls`: null without.
  ClientSocket(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
               const GatewayLimits& limits, IoThread& io);
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // Within --header-timeout-ms. Only with TLS, and then first.
  [[nodiscard]] Task<bool> handshake();
  [[nodiscard]] bool secure() const noexcept { return tls_ != nullptr; }
  [[nodiscard]] std::string client_identity() const;

  // Bytes that came and were not consumed.
  [[nodiscard]] std::string_view input() const noexcept {
    return std::string_view(input_).substr(consumed_);
  }
  void consume(std::size_t bytes) noexcept;
  // Waits for more of them.
  [[nodiscard]] Task<Fill> fill(TimePoint until);

  // From here to unwatch(), `on_gone` is called once if the client goes. It may be the last thing
  // that is done with this socket. False: the client is gone already.
  // What the client sends meanwhile is kept for later up to the bound; what comes beyond is read
  // and thrown away, since otherwise its end would never be seen.
  [[nodiscard]] bool watch(std::function<void()> on_gone);
  void unwatch() noexcept { on_gone_ = nullptr; }
  // Whether something was thrown away: nothing behind it can be understood.
  [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }

  // False: the client is gone, or took nothing for too long, or the task was cancelled; what part
  // of it was sent is unknown then, and nothing more can be sent.
  [[nodiscard]] Task<bool> write(Pieces pieces);
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] bool write_timed_out() const noexcept { return timed_out_; }

  // Ends everything under way, at once.
  void close() noexcept;
  // Tells the client that nothing more comes and waits a moment for it to go, so that bytes of it
  // that nobody reads don't make the kernel throw our last ones away. Then, or if broken, closes.
  [[nodiscard]] Task<void> finish();

  [[nodiscard]] std::uint64_t received_bytes() const noexcept { return received_; }
  [[nodiscard]] std::uint64_t sent_bytes() const noexcept { return sent_; }

 private:
  struct Tls;
  enum class Taken { kAll, kSome, kFailed };

  [[nodiscard]] std::size_t room() const noexcept;
  [[nodiscard]] std::size_t most_to_read() const noexcept;
  void start_read();
  void on_readable(boost::system::error_code error);
  void on_read(boost::system::error_code error, std::string_view bytes);
  void tell_of_read();

  [[nodiscard]] Taken write_now(Pieces& pieces);
  [[nodiscard]] Task<bool> write_tls(Pieces pieces);
  void begin_wait(std::chrono::milliseconds limit);
  void end_wait() noexcept { waiting_ = false; }
  void arm();
  void on_deadline();
  [[nodiscard]] Task<void> finish_tls();
  [[nodiscard]] Task<void> linger();

  const GatewayLimits& limits_;
  IoThread& io_;
  asio::ip::tcp::socket socket_;
  std::unique_ptr<Tls> tls_;

  std::string input_;
  std::size_t consumed_ = 0;
  std::uint64_t received_ = 0;
  bool reading_ = false;
  bool overflowed_ = false;
  bool ended_ = false;          // nothing more comes
  asio::steady_timer arrived_;  // until when fill() waits; cancelled to wake it
  std::function<void()> on_gone_;

  std::uint64_t sent_ = 0;
  bool broken_ = false;
  // One timer for all writes, armed by the first that has to wait; when it fires and the write it
  // was armed for is done, it is armed again or not at all.
  asio::steady_timer deadline_timer_;
  TimePoint deadline_{};
  bool waiting_ = false;
  bool armed_ = false;
  bool timed_out_ = false;
  bool closed_ = false;
};

}  // namespace sluice
