"""Clients that send what no stub sends, or open more than they should: they are refused by name, and nobody else notices."""

import pathlib
import resource
import socket

import grpc
import inference_pb2 as pb
import pytest
from calls import Answer, chat, error_of
from harness import until

INVALID = grpc.StatusCode.INVALID_ARGUMENT
METHODS = ["LLM/Generate", "LLM/Embed", "LLM/CountTokens", "Replica/Describe", "Replica/WatchLoad", "Replica/Drain"]
MILLIONS_OF_MESSAGES = b"\x12\0" * 5_000_000


def raw_call(server, method: str, message: bytes, **options) -> grpc.RpcError:
    channel = server.channel([("grpc.max_send_message_length", -1)])
    call = channel.unary_stream(f"/inference.{method}", lambda data: data, lambda data: data)
    return error_of(lambda: call(message, timeout=30, **options))


def descriptors(server) -> int:
    return len(list(pathlib.Path(f"/proc/{server.pid}/fd").iterdir()))


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_message_are_refused_by_type_and_counted(scripted, method):
    server = scripted()
    error = raw_call(server, method, b"\xff" * 100, metadata=[("x-request-id", "mine")])
    assert error.code() == INVALID and "inference." in error.details()
    assert ("x-request-id", "mine") in error.trailing_metadata()
    assert server.metric("sluice_calls_total", method=method.split("/")[1], code="INVALID_ARGUMENT") == 1
    assert "libprotobuf" not in server.log()


def test_a_string_that_is_not_utf8_is_refused_by_its_field(scripted):
    server = scripted("--log-level", "off")
    error = raw_call(server, "LLM/Generate", b"\x0a\x05local\x12\x03\x0a\x01\xff")
    assert error.code() == INVALID and error.details() == "messages[0].role is not valid UTF-8"
    assert server.log_file.read_bytes() == b""


def test_millions_of_tiny_messages_cost_no_more_than_their_bytes(scripted):
    server = scripted()
    Answer.of(server.stub().Generate(chat("hi", max_tokens=2)))
    before = server.rss()
    error = raw_call(server, "LLM/Generate", MILLIONS_OF_MESSAGES)
    assert error.code() == INVALID and "--max-message-values" in error.details() and "262144" in error.details()
    assert server.rss() - before < 60 << 20


def test_a_stranger_is_refused_before_the_message_is_looked_at(scripted, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("somebody " + "0" * 64 + "\n")
    server = scripted("--api-keys", str(keys))
    before = server.rss()
    for message in (b"\xff" * 100, MILLIONS_OF_MESSAGES):
        error = raw_call(server, "LLM/Generate", message)
        assert error.code() == grpc.StatusCode.UNAUTHENTICATED
        assert "x-request-id" in dict(error.trailing_metadata())
    assert server.rss() - before < 60 << 20


def test_compressed_requests_are_refused_and_answers_come_plain(scripted):
    server = scripted()
    bomb = chat(b"\0" * (40 << 20))
    before = server.rss()
    stub = server.stub([("grpc.max_send_message_length", -1)])
    error = error_of(lambda: stub.Generate(bomb, compression=grpc.Compression.Gzip, timeout=30))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED and "gzip" in error.details()
    assert server.rss() - before < 20 << 20
    assert Answer.of(stub.Generate(chat("hi", max_tokens=2))).last.done


def test_a_flood_of_connections_leaves_descriptors_and_the_server_accepts_again(scripted):
    server = scripted()
    old = server.stub()
    Answer.of(old.Generate(chat("hi", max_tokens=2)))
    _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (256, hard))
    host, port = server.address.rsplit(":", 1)
    flood = [socket.create_connection((host, int(port)), timeout=10) for _ in range(300)]
    server.until_metric("sluice_grpc_connections_refused_total", lambda refused: refused > 50, why="descriptors")
    assert descriptors(server) <= 256 - 60  # files, and these metrics, still have theirs
    Answer.of(old.Generate(chat("hi", max_tokens=2)))
    for one in flood:
        one.close()
    until(lambda: descriptors(server) < 100, "the flood's connections are closed")
    Answer.of(server.stub().Generate(chat("hi", max_tokens=2), wait_for_ready=True, timeout=10))
    assert server.log().count("can't accept connections") == 1


def test_connections_past_their_bound_are_closed_and_counted(scripted):
    server = scripted("--max-grpc-connections", "2")
    Answer.of(server.stub().Generate(chat("hi", max_tokens=2)))
    Answer.of(server.stub().Generate(chat("hi", max_tokens=2)))
    assert error_of(lambda: server.stub().Generate(chat("hi"), timeout=5)).code() == grpc.StatusCode.UNAVAILABLE
    assert server.metric("sluice_grpc_connections_refused_total", why="limit") >= 1
    server.hang_up()
    Answer.of(server.stub().Generate(chat("hi", max_tokens=2), wait_for_ready=True, timeout=10))


def test_watches_past_their_bound_are_refused_by_name(scripted):
    server = scripted("--max-watches", "1")
    stub = server.replica_stub()
    first = stub.WatchLoad(pb.WatchLoadRequest())
    next(first)
    error = error_of(lambda: stub.WatchLoad(pb.WatchLoadRequest()))
    assert error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max-watches" in error.details()
    first.cancel()
    server.until_metric("sluice_watches_open", lambda watches: watches == 0)
