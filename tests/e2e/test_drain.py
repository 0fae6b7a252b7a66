"""A drain cuts no stream: new calls are refused, running ones finish, and past the grace they end with a clear status."""

import signal

import grpc
import inference_pb2 as pb
import pytest
import raw_http
from calls import StepStream, all_at_once, chat, error_of
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import until

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def test_sigterm_under_load_cuts_no_stream(scripted):
    server = scripted(step_ms=10)
    stub = server.stub()
    health = health_pb2_grpc.HealthStub(server.channel())
    watch = health.Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    calls = [stub.Generate(chat("hi", max_tokens=150)) for _ in range(50)]
    for call in calls:
        next(call)
    server.process.send_signal(signal.SIGTERM)
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING

    refused = error_of(lambda: server.stub().Generate(chat("too late"), timeout=5))
    assert refused.code() == UNAVAILABLE

    def finish(call) -> pb.GenerateResponse:
        return list(call)[-1]

    assert all(last.done for last in all_at_once([lambda c=call: finish(c) for call in calls]))
    assert server.process.wait(15) == 0


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("requests", [0, 3])
def test_replica_and_gateway_of_one_process_end_well(start, requests, stop):
    server = start("--engine", "scripted", command="up")
    for _ in range(requests):
        assert raw_http.chat(server).status == 200
    server.process.send_signal(stop)
    assert server.process.wait(15) == 0, server.log()


def test_past_the_grace_streams_end_with_unavailable(scripted):
    server = scripted("--drain-grace-ms", "300", step_ms=10)
    call = server.stub().Generate(chat("for ever"))
    next(call)
    server.process.send_signal(signal.SIGTERM)
    error = error_of(lambda: call)
    assert error.code() == UNAVAILABLE and "drain" in error.details()
    assert server.process.wait(15) == 0


def test_the_drain_call_does_what_the_signal_does(scripted):
    server = scripted(step_ms=10)
    call = server.stub().Generate(chat("hi", max_tokens=100))
    next(call)
    replica = server.replica_stub()
    assert replica.Drain(pb.DrainRequest(grace_ms=20_000)).running == 1
    assert error_of(lambda: server.stub().Generate(chat("too late"), timeout=5)).code() == UNAVAILABLE
    assert list(call)[-1].done
    until(lambda: server.process.poll() is not None, "the process' end", 15)
    assert server.process.returncode == 0


def test_a_drain_finishes_what_runs_on_the_step_stream_and_refuses_new_starts(scripted):
    server = scripted(step_ms=10)
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("hi", max_tokens=100))
    server.until_metric("sluice_running_sequences", lambda running: running == 1)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: "drain" in server.log(), "a word about the drain")
    gateway.start(2, chat("too late"))
    codes = {}
    try:
        for item in gateway.items():
            if item.HasField("status"):
                codes[item.id] = item.status.code
    except grpc.RpcError as error:
        assert error.code() == UNAVAILABLE
    assert codes[1] == 0, "the running request was cut"
    assert codes.get(2, UNAVAILABLE.value[0]) == UNAVAILABLE.value[0]
    assert server.process.wait(15) == 0


def test_an_idle_server_ends_at_once(scripted):
    assert scripted().terminate(5) == 0
