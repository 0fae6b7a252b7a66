"""The gateway's bounds from outside: bodies, heads, slow senders, many connections, places that are given back, 429 with its time."""

import contextlib
import os
import signal
import socket
import threading
import time

import pytest
from calls import all_at_once
from harness import until
from raw_http import QUESTION, ask, chat, chat_bytes, head, open_chat, post, read_until, read_all, replies, replies_in, send_all

CHAT = "/v1/chat/completions"
MIB = 1 << 20
MOST = 50 * MIB  # --max-body-bytes


def padded(size: int) -> bytes:
    """A chat of so many bytes."""
    frame = b'{"model":"local","max_tokens":1,"messages":[{"role":"user","content":"go"}],"pad":"%s"}'
    return frame % (b"x" * (size - len(frame) + 2))


def in_chunks(body: bytes, size: int) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [32 << 10, (32 << 10) + 1, MIB, 4 * MIB + 1, 5 * MIB, MOST - 1, MOST])
def test_a_body_within_the_limit_works(edge, size):
    assert post(edge, CHAT, padded(size)).status == 200


def test_a_body_above_the_limit_is_413_before_it_is_read(edge):
    (reply,) = replies(edge, head("POST", CHAT, {"Content-Type": "application/json", "Content-Length": str(MOST + 1)}))
    assert reply.status == 413 and "--max-body-bytes" in reply.error["message"]
    for length in (10**9, 3 * 10**9, 2**63, 2**64 - 1):
        (reply,) = replies(edge, head("POST", CHAT, {"Content-Length": str(length), "Expect": "100-continue"}))
        assert reply.status == 413


@pytest.mark.parametrize("chunk", [16 << 10, MIB])
def test_chunks_are_bounded_like_a_length(edge, chunk):
    fields = {"Content-Type": "application/json", "Transfer-Encoding": "chunked", "Connection": "close"}
    (reply,) = replies(edge, head("POST", CHAT, fields) + in_chunks(padded(MOST), chunk))
    assert reply.status == 200
    before = edge.rss()
    with edge.connect() as connection:
        connection.sendall(head("POST", CHAT, fields))
        frame = b"%x\r\n%s\r\n" % (MIB, bytes(MIB))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(1000):
                connection.sendall(frame)
            pytest.fail("a gigabyte was taken")
        (reply,) = replies_in(read_all(connection))
    assert reply.status == 413 and edge.rss() < before + 2 * MOST


def test_a_prompt_of_millions_of_bytes_is_too_long_and_nothing_else(edge):
    for size in (5 * MIB, 45 * MIB):
        reply = chat(edge, messages=[{"role": "user", "content": "x" * size}])
        assert reply.status == 400 and reply.error["code"] == "context_length_exceeded"


def test_many_megabytes_of_inputs_are_one_request(edge):
    reply = post(edge, "/v1/embeddings", {"model": "local", "input": [f"text {n} " + "x" * 3000 for n in range(2048)]})
    assert reply.status == 200 and [item["index"] for item in reply.json["data"]] == list(range(2048))
    assert post(edge, "/v1/embeddings", {"model": "local", "input": ["x"] * 2049}).status == 400


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (head("GET", "/health", {"X": "a" * 60_000}), 200),
        (head("GET", "/health", {"X": "a" * 1_000_000}), 431),
        (head("GET", "/health", [("a", "b")] * 200_000), 431),
        (head("GET", "/" + "a" * 1_000_000), 414),
        (head("A" * 1_000_000, "/"), 414),
        (b"a" * 1_000_000, 414),
    ],
    ids=["a large head", "a megabyte in one field", "a megabyte of fields", "a target", "a method", "no line at all"],
)
def test_a_head_is_bounded(edge, sent, status):
    (reply,) = replies(edge, sent if status != 200 else sent.replace(b"Host", b"Connection: close\r\nHost"))
    assert reply.status == status and (status == 200 or reply.error)


def test_nobody_without_a_key_fills_the_memory(scripted, gateway, keys):
    keys("good")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    before = edge.rss()
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            connection = stack.enter_context(edge.connect())
            send_all(connection, head("POST", CHAT, {"Content-Type": "application/json", "Content-Length": str(MOST)}) + bytes(40 * MIB))
        assert edge.rss() < before + 100 * MIB, "eight times forty megabytes from nobody"


@pytest.mark.parametrize(("target", "fields", "status"), [(CHAT, {}, 401), ("/nowhere", {}, 404), ("/v1/models", {}, 405), (CHAT, {"Authorization": "Bearer no"}, 401)])
def test_who_is_refused_anyway_is_not_invited_to_send_a_body(scripted, gateway, keys, target, fields, status):
    keys("good")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    with edge.connect() as connection:
        connection.settimeout(5)
        connection.sendall(head("POST", target, {**fields, "Content-Length": "1000", "Expect": "100-continue"}))
        assert connection.recv(65536).startswith(b"HTTP/1.1 %d " % status)


def drip(connection, content: bytes, pause: float, seconds: float) -> float:
    """Sends byte after byte until the server closes; how long that took."""
    begin = time.monotonic()
    connection.settimeout(pause)
    for at in range(10**9):
        assert time.monotonic() - begin < seconds, "still open"
        try:
            connection.sendall(content[at % len(content) :][:1])
            while connection.recv(65536):
                pass
            break
        except TimeoutError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
    return time.monotonic() - begin


def test_a_head_that_drips_is_cut_at_its_time(start):
    edge = start("--engine", "scripted", "--warm-up", "false", "--header-timeout-ms", "500", command="up")
    with edge.connect() as connection:
        assert drip(connection, b"GET /" + b"a" * 60_000, 0.05, 10) > 0.4
    until(lambda: edge.gateway_metric("sluice_http_timeouts_total", kind="header") == 1, "one that was too slow")


def test_a_body_that_drips_is_cut_at_its_time(start):
    edge = start("--engine", "scripted", "--warm-up", "false", "--body-timeout-ms", "1000", "--request-timeout-ms", "1500", command="up")
    for framing, content in (({"Content-Length": "1000000"}, b" "), ({"Transfer-Encoding": "chunked"}, b"1\r\n \r\n")):
        with edge.connect() as connection:
            connection.sendall(head("POST", CHAT, {"Content-Type": "application/json", **framing}))
            drip(connection, content, 0.05, 10)


def test_a_body_that_stops_is_408(start):
    edge = start("--engine", "scripted", "--warm-up", "false", "--body-timeout-ms", "300", command="up")
    (reply,) = replies(edge, head("POST", CHAT, {"Content-Length": "10"}) + b"{")
    assert reply.status == 408 and reply.error
    (reply,) = replies(edge, head("POST", CHAT, {"Transfer-Encoding": "chunked"}) + b"5\r\n{")
    assert reply.status == 408


def test_a_connection_that_says_nothing_is_closed(start):
    edge = start("--engine", "scripted", "--warm-up", "false", "--idle-timeout-ms", "200", command="up")
    with edge.connect() as silent:
        assert read_all(silent) == b""
    with edge.connect() as served:
        served.sendall(head("GET", "/health"))
        assert len(replies_in(read_all(served))) == 1


def test_slow_senders_and_streams_keep_nobody_from_health(scripted, gateway):
    edge = gateway(scripted(script='piece "x"\nhang\n'))
    with contextlib.ExitStack() as stack:
        for number in range(1000):
            connection = stack.enter_context(edge.connect())
            body = b'{"model":"local","stream":true,"messages":[{"role":"user","content":"go"}]}'
            whole = head("POST", CHAT, {"Content-Type": "application/json", "Content-Length": str(len(body))}) + body
            connection.sendall(whole if number % 2 == 0 else whole[: number % 90])
        edge.until_metric("sluice_gateway_open_streams", lambda streams: streams == 500)
        times = []
        for _ in range(50):
            begin = time.monotonic()
            assert ask(edge, "GET", "/health").status == 200
            times.append(time.monotonic() - begin)
        assert sorted(times)[45] < 0.5
    edge.until_metric("sluice_gateway_running_requests", lambda running: running == 0)


def leave_early(edge, key: str) -> None:
    with open_chat(edge, {"Authorization": f"Bearer {key}"}, stream=True) as connection:
        read = read_until(connection, b"token")
        assert b"token" in read and b"429" not in read, read


def test_a_place_is_given_back_however_its_request_ends(scripted, gateway, keys):
    key = keys("one", "--streams", "1")
    replica = scripted(script='piece "token "\npiece "token " 20ms\nloop\n')
    edge = gateway(replica, flags=["--api-keys", str(keys.file)])
    allowed = {"Authorization": f"Bearer {key}"}

    def free() -> bool:
        return chat(edge, allowed, max_tokens=1).status == 200

    for _ in range(5):
        leave_early(edge, key)
        until(free, "the place of one that left")
    endings = [
        ({"max_tokens": -1}, {}, 400), ({"model": "other"}, {}, 404), ({"temperature": "x"}, {}, 400), ({}, {"X-Request-Timeout": "0.1"}, 504),
        ({"messages": [{"role": "user", "content": "x" * 3_000_000}]}, {}, 400), ({}, {"Content-Type": "text/plain"}, 415),
    ]  # fmt: skip
    for fields, headers, status in endings:
        assert chat(edge, {**allowed, **headers}, **fields).status == status
        assert free(), fields
    for path in ("/v1/embeddings", "/tokenize"):
        assert post(edge, path, {"model": "other", "input": "x", "prompt": "x"}, allowed).status == 404
        assert free()
    with edge.connect() as connection:
        connection.sendall(head("POST", CHAT, {**allowed, "Content-Type": "application/json", "Content-Length": "9"}) + b'{"a": [1,')
        assert replies_in(connection.recv(65536))[0].status == 400
    assert free()


def test_the_place_of_a_killed_replicas_request_is_given_back(scripted, gateway, keys):
    key = keys("one", "--streams", "1")
    replica = scripted(script='piece "token "\nhang\n')
    edge = gateway(replica, flags=["--api-keys", str(keys.file), "--eject-time-ms", "50"])
    with open_chat(edge, {"Authorization": f"Bearer {key}", "Connection": "close"}, stream=True) as connection:
        replica.until_metric("sluice_running_sequences", lambda running: running == 1)
        os.kill(replica.pid, signal.SIGKILL)
        replica.process.wait()
        replica.process.returncode = 0  # its end was ours
        assert b"error" in read_all(connection)
    scripted("--listen", replica.address, script='piece "token "\n')
    until(lambda: chat(edge, {"Authorization": f"Bearer {key}"}).status == 200, "the place, at the replica that came back", 20)


def test_one_request_too_many_at_once_is_429_with_a_short_time(scripted, gateway, keys):
    key = keys("one", "--streams", "1")
    replica = scripted(script='piece "token "\nhang\n')
    edge = gateway(replica, flags=["--api-keys", str(keys.file)])
    allowed = {"Authorization": f"Bearer {key}"}
    with open_chat(edge, allowed, stream=True):
        replica.until_metric("sluice_running_sequences", lambda running: running == 1)
        for path in (CHAT, "/v1/completions", "/v1/responses", "/v1/embeddings"):
            for stream in (False, True):
                reply = post(edge, path, {"model": "local", "messages": QUESTION, "stream": stream, **({} if path == CHAT else {"input": "x"})}, allowed)
                assert reply.status == 429 and reply.error["type"] == "rate_limit_error", path
                assert 1 <= int(reply.headers["retry-after"]) <= 5 and int(reply.headers["retry-after-ms"]) > 0


def test_choices_and_prompts_count_one_by_one_against_a_keys_streams(scripted, gateway, keys):
    key = keys("four", "--streams", "4")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    allowed = {"Authorization": f"Bearer {key}"}
    for fields, status in [({"prompt": ["a"] * 4}, 200), ({"prompt": ["a"] * 5}, 429), ({"prompt": "a", "n": 5}, 429), ({"prompt": ["a"] * 2, "n": 2}, 200)]:
        assert post(edge, "/v1/completions", {"model": "local", "max_tokens": 1, **fields}, allowed).status == status, fields


def test_opening_and_resetting_leaves_nothing_behind(scripted, gateway):
    replica = scripted(script='piece "token " 1ms\nloop\n')
    edge = gateway(replica)
    whole = chat_bytes(stream=True)

    def burst() -> None:
        for number in range(250):
            with edge.connect() as connection:
                connection.sendall(whole[: len(whole) - number % 7 * 20])
                if number % 3 == 0:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset

    burst()
    replica.until_idle()
    before = edge.rss(), replica.rss()
    all_at_once([burst] * 4)
    replica.until_idle(20)
    edge.until_metric("sluice_gateway_running_requests", lambda running: running == 0)
    edge.until_metric("sluice_http_connections", lambda connections: connections == 0)
    assert edge.rss() < before[0] * 1.2 + 4 * MIB and replica.rss() < before[1] * 1.2 + 4 * MIB
    assert chat(edge, max_tokens=3).status == 200


class SlowNetwork(contextlib.AbstractContextManager):
    """A way to a server on which each connection's first bytes take their time."""

    def __init__(self, address: str, seconds: float):
        self._to, self._seconds, self._stop = address.rsplit(":", 1), seconds, threading.Event()
        self._inner = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self._inner.getsockname()[1]}"
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._inner.accept()
                far = socket.create_connection((self._to[0], int(self._to[1])))
                self._connections += [near, far]
                for pair, wait in (((near, far), 0), ((far, near), self._seconds)):
                    threading.Thread(target=self._pass_on, args=(*pair, wait), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, wait: float) -> None:
        self._stop.wait(wait)
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *_) -> None:
        self._stop.set()
        for end in (self._inner, *self._connections):
            end.close()


@pytest.mark.parametrize("seconds", [0.2, 2])
def test_a_replica_behind_a_slow_network_serves(scripted, start, seconds):
    replica = scripted(script='piece "token "\n')
    with SlowNetwork(replica.address, seconds) as network:
        edge = start("--replica", network.address, command="gateway")
        edge.until_metric("sluice_gateway_replica_up", lambda up: up == 1, seconds=15)
        assert [chat(edge, {"X-Request-Timeout": "15"}).status for _ in range(4)] == [200] * 4


def test_a_clients_time_does_not_exceed_the_operators(scripted, gateway):
    edge = gateway(scripted(script="hang\n"), flags=["--request-timeout-ms", "300"])
    begin = time.monotonic()
    assert chat(edge, {"X-Request-Timeout": "60"}).status == 504 and time.monotonic() - begin < 10
