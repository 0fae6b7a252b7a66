// HttpHandler: what answers a request, whatever HTTP version carries it. It runs as a task on the
// connection's I/O thread; request and responder live until it ends. A client that goes cancels it
// (see Responder). One that ends without an answer gives 500; one that throws, or ends in the
// middle of a streamed answer, closes the connection, so that the client sees the answer cut.
// Thread: the I/O thread that it is given.
#pragma once

#include <functional>

#include "gateway/asio.h"
#include "gateway/http_message.h"
#include "gateway/io_threads.h"
#include "gateway/responder.h"

namespace sluice {

using HttpHandler = std::function<Task<void>(HttpRequest&, Responder&, IoThread&)>;

// What a session asks before there is a request to handle, or where there will be none. Each may be
// empty.
struct HttpRules {
  // Once the head of a request has come and its body has not: whether the body is to be read. If
  // not, the request is handled without it, and its connection closed behind the answer.
  std::function<bool(const HttpRequest&)> wants_body;
  // Adds what an answer needs that refuses a request by HTTP's own rules; `request` may lack some
  // of its fields, or all.
  std::function<void(const HttpHeaders& request, HttpHeaders& response)> add_headers;
};

}  // namespace sluice
