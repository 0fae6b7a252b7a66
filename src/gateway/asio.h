// Asio as the gateway uses it: coroutines on one io_context per I/O thread, so that no strand is
// needed. <utility> comes first: Asio 1.81's coroutine headers use std::exchange without including
// it (g++ 12). Thread: what a header of ours calls "its I/O thread" is the thread that runs that
// io_context.
#pragma once

#include <utility>
// above all of Asio
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace sluice {

namespace asio = boost::asio;

template <typename T = void>
using Task = asio::awaitable<T>;

}  // namespace sluice
