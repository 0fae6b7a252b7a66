"""A deadline ends the work, wherever the request is."""

import socket
import struct
import time

import grpc
import h2.config
import h2.connection
import h2.events
from calls import StepStream, chat, error_of

DEADLINE = grpc.StatusCode.DEADLINE_EXCEEDED


def test_fifty_milliseconds_on_a_long_generation(replica):
    stub = replica.stub()
    generated = replica.metric("sluice_generated_tokens_total")
    for _ in range(10):
        begin = time.monotonic()
        error = error_of(lambda: stub.Generate(chat("Write a novel.", max_tokens=1500, ignore_eos=True), timeout=0.05))
        assert error.code() == DEADLINE
        assert time.monotonic() - begin < 1
    replica.until_idle(seconds=2)
    assert replica.metric("sluice_generated_tokens_total") - generated < 10 * 50, "the model went on"


def test_a_request_that_expires_in_the_queue_never_reaches_the_model(scripted):
    server = scripted("--max-sequences", "1", script="hang\n")
    stub = server.stub()
    first = stub.Generate(chat("the one that runs"))
    server.until_metric("sluice_running_sequences", lambda running: running == 1)
    tokens = server.metric("sluice_prompt_tokens_total")
    for call in [stub.Generate(chat("too late"), timeout=0.1) for _ in range(20)]:
        assert error_of(lambda c=call: c).code() == DEADLINE
    server.until_metric("sluice_queued_requests", lambda queued: queued == 0)
    first.cancel()
    server.until_idle()
    assert server.metric("sluice_prompt_tokens_total") == tokens


def test_a_deadline_on_the_step_stream(scripted):
    server = scripted(step_ms=5)
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("hello"), timeout_ms=50)
    status = next(item.status for item in gateway.items() if item.HasField("status"))
    assert status.code == DEADLINE.value[0]
    gateway.close()
    server.until_idle()
    assert server.metric("sluice_requests_ended_total", how="deadline") == 1


def test_a_deadline_that_has_passed_is_refused_before_any_work(scripted):
    server = scripted()
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("hello"), timeout_ms=0)
    status = next(item.status for item in gateway.items() if item.HasField("status"))
    assert status.code == DEADLINE.value[0]
    assert server.metric("sluice_prompt_tokens_total") == 0
    gateway.close()


def test_the_longest_deadline_that_the_wire_can_say_has_not_passed(scripted):
    server = scripted()
    fields = {":method": "POST", ":scheme": "http", ":path": "/inference.LLM/Generate", ":authority": "x", "te": "trailers"}
    fields |= {"content-type": "application/grpc", "grpc-timeout": "99999999H"}  # gRPC's own client would shorten it
    request = chat("hello", max_tokens=2).SerializeToString()
    client = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    client.initiate_connection()
    client.send_headers(1, list(fields.items()))
    client.send_data(1, b"\0" + struct.pack(">I", len(request)) + request, end_stream=True)
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        trailers: dict[str, str] = {}
        while "grpc-status" not in trailers:
            connection.sendall(client.data_to_send())
            for event in client.receive_data(connection.recv(65536)):
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    trailers |= dict(event.headers)
    assert trailers["grpc-status"] == "0", trailers
