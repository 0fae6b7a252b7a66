#include "load/rest_target.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/concat.h"
#include "load/processor_time.h"
#include "load/rest_stream.h"

namespace sluice {
namespace {

using asio::ip::tcp;

constexpr std::uint32_t kMostDefaultThreads = 4;

class LoadThread {
 public:
  LoadThread() : thread_([this] { context_.run(); }) {}
  ~LoadThread() { stop(); }

  [[nodiscard]] asio::io_context& context() noexcept { return context_; }
  void stop() noexcept {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{context_.get_executor()};
  std::thread thread_;
};

Result<std::shared_ptr<asio::ssl::context>> make_tls(const TargetOptions& options) {
  boost::system::error_code error;
  auto tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  if (options.authority.empty()) {
    tls->set_default_verify_paths(error);
  } else {
    tls->add_certificate_authority(asio::buffer(options.authority), error);
  }
  if (error) return invalid(concat("--ca: ", error.message()));
  tls->set_verify_mode(asio::ssl::verify_peer, error);
  if (!error) tls->set_verify_callback(asio::ssl::host_name_verification(options.host), error);
  if (error) return invalid(concat("TLS: ", error.message()));
  return tls;
}

class RestTarget final : public LoadTarget {
 public:
  explicit RestTarget(const TargetOptions& options) {
    place_.options = options;
    std::uint32_t count = options.threads;
    if (count == 0) count = std::min(kMostDefaultThreads, own_processors());
    for (std::uint32_t i = 0; i < count; ++i) threads_.push_back(std::make_unique<LoadThread>());
  }

  // Finds the address and whether anybody listens there.
  Result<void> connect() override {
    const TargetOptions& options = place_.options;
    if (options.tls) {
      auto tls = make_tls(options);
      if (!tls) return tl::unexpected(std::move(tls.error()));
      place_.tls = std::move(*tls);
    }
    boost::system::error_code error;
    tcp::resolver resolver(probe_);
    for (const auto& found : resolver.resolve(options.host, options.port, error))
      place_.endpoints.push_back(found.endpoint());
    if (error) return fail(Code::kUnavailable, concat(options.host, ": ", error.message()));
    for (const tcp::endpoint& endpoint : place_.endpoints) {
      tcp::socket socket(probe_);
      socket.connect(endpoint, error);
      if (!error) return {};
    }
    return fail(Code::kUnavailable, concat("nobody listens at ", options.host, ":", options.port,
                                           ": ", error.message()));
  }

  void stop() noexcept override {
    for (const auto& thread : threads_) thread->stop();
  }

  std::unique_ptr<LoadStream> make_stream(std::size_t index, LoadEvents& events) override {
    return std::make_unique<RestStream>(index, events, place_,
                                        threads_[index % threads_.size()]->context());
  }

 private:
  RestPlace place_;
  asio::io_context probe_;
  std::vector<std::unique_ptr<LoadThread>> threads_;
};

}  // namespace

std::unique_ptr<LoadTarget> make_rest_target(const TargetOptions& options) {
  return std::make_unique<RestTarget>(options);
}

}  // namespace sluice
