"""A client that disappears, in each phase: its sequence goes and its KV is free, and nobody else notices."""

import os
import random
import signal
import subprocess
import sys
import textwrap

import grpc
import inference_pb2 as pb
import pytest
from calls import Answer, StepStream, all_at_once, chat
from harness import ROOT, TIGHT_WINDOW, until

FREED = "sluice_cancel_to_free_seconds_count"
PREFILL_TEXT = "word " * 1500


def cancelled(server) -> float:
    return server.metric("sluice_requests_ended_total", how="cancelled")


@pytest.mark.parametrize("phase", ["queued", "prefill", "decode"])
def test_a_cancelled_call_frees_its_place(scripted, phase):
    script = {"prefill": 'prefill 3600s\npiece "never"\n', "queued": 'hang\n', "decode": 'piece "token " 5ms\nloop\n'}[phase]
    server = scripted("--max-sequences", "1", script=script)
    stub = server.stub()
    first = stub.Generate(chat("one"))
    server.until_metric("sluice_running_sequences", lambda running: running == 1)
    leaving = first
    if phase == "queued":
        leaving = stub.Generate(chat("two"))
        server.until_metric("sluice_queued_requests", lambda queued: queued == 1)
    if phase == "decode":
        next(leaving)
    before = cancelled(server)
    leaving.cancel()
    server.until_metric("sluice_requests_ended_total", lambda ended: ended == before + 1, how="cancelled")
    if phase == "queued":
        assert server.metric("sluice_running_sequences") == 1, "the running one is not the one that left"
        first.cancel()
    server.until_idle()


def test_a_cancelled_parked_call_frees_its_place(scripted):
    server = scripted(script='piece "0123456789abcdef"\nloop\n')
    call = server.stub(TIGHT_WINDOW).Generate(chat("go on"))
    server.until_metric("sluice_parked_sequences", lambda parked: parked == 1)
    call.cancel()
    server.until_idle()
    assert cancelled(server) == 1


def test_a_blocked_forward_pass_is_aborted_when_nobody_wants_it(scripted):
    server = scripted(script='piece "one"\nblock\n')
    stub = server.stub()

    def leave_within_a_step() -> bool:
        call = stub.Generate(chat("stuck"))
        next(call)
        call.cancel()
        server.until_idle()
        return server.metric("sluice_aborted_steps_total") >= 1

    until(leave_within_a_step, "a cancel that met a running forward pass")


def test_the_real_model_stops_within_a_step_of_a_cancel(replica):
    freed = replica.metric(FREED)
    stub = replica.stub()
    decoding = stub.Generate(chat("Write a long story.", max_tokens=1500, ignore_eos=True))
    next(decoding)
    decoding.cancel()
    prefilling = stub.Generate(chat(PREFILL_TEXT, max_tokens=16))
    replica.until_metric("sluice_running_sequences", lambda running: running >= 1)
    prefilling.cancel()
    replica.until_idle()
    metrics = replica.metrics()
    assert metrics.total(FREED) >= freed + 1
    slowest = min(
        float(series.partition('le="')[2].partition('"')[0])
        for series, count in metrics.items()
        if series.startswith("sluice_cancel_to_free_seconds_bucket") and count == metrics.total(FREED)
    )
    assert slowest <= 2, "from cancel to free took more than a step"


def test_a_killed_client_process_leaves_nothing_behind(scripted):
    server = scripted(step_ms=5)
    program = textwrap.dedent("""
        import sys, grpc
        sys.path.insert(0, sys.argv[2])
        import inference_pb2, inference_pb2_grpc
        stub = inference_pb2_grpc.LLMStub(grpc.insecure_channel(sys.argv[1]))
        calls = [stub.Generate(inference_pb2.GenerateRequest(model="local")) for _ in range(20)]
        for call in calls:
            next(call)
        print("reading", flush=True)
        for call in calls:
            list(call)
    """)
    stubs = os.path.dirname(pb.__file__)
    client = subprocess.Popen([sys.executable, "-c", program, server.address, stubs], stdout=subprocess.PIPE, cwd=ROOT)
    assert client.stdout.readline() == b"reading\n"
    assert server.metric("sluice_running_sequences") == 20
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    server.until_idle()
    assert cancelled(server) == 20


def test_a_gateway_that_vanishes_takes_its_requests_along(scripted):
    server = scripted(step_ms=5)
    gateway = StepStream(server.replica_stub())
    for number in range(1, 51):
        gateway.start(number, chat("hello"))
    server.until_metric("sluice_running_sequences", lambda running: running == 50)
    gateway.close()
    server.until_idle()


def test_a_cancel_on_the_step_stream_ends_that_request_alone(scripted):
    server = scripted(step_ms=5)
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("hello"))
    gateway.start(2, chat("hello", max_tokens=200))
    server.until_metric("sluice_running_sequences", lambda running: running == 2)
    gateway.send(cancels=[1, 1, 77])
    ended = {}
    for item in gateway.items():
        if item.HasField("status"):
            ended[item.id] = item.status.code
            if item.id == 2:
                break
    assert ended[2] == grpc.StatusCode.OK.value[0]
    assert ended.get(1, grpc.StatusCode.CANCELLED.value[0]) == grpc.StatusCode.CANCELLED.value[0]
    gateway.close()
    server.until_idle()


def test_a_thousand_cancels_leave_no_trace(replica):
    dice = random.Random(1)
    text = "Tell me about the history of the world. " * 8

    def leave_early(stub, calls: int) -> None:
        for _ in range(calls):
            call = stub.Generate(chat(text, max_tokens=64))
            for _ in range(dice.choice([0, 0, 0, 1, 2])):
                next(call, None)
            call.cancel()

    stubs = [replica.stub() for _ in range(4)]
    all_at_once([lambda s=stub: leave_early(s, 50) for stub in stubs])
    replica.until_idle()
    settled = replica.rss()
    all_at_once([lambda s=stub: leave_early(s, 250) for stub in stubs])
    replica.until_idle()
    assert replica.rss() < settled * 1.05
    context = replica.replica_stub().Describe(pb.DescribeRequest()).models[0].context_tokens
    assert context > 0
    assert Answer.of(replica.stub().Generate(chat("Say hello.", max_tokens=8))).last.done
