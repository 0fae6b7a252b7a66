"""The mission's own client, options and load test, word for word; only the address is the test's own."""

import contextlib
import io
import json
import subprocess

import grpc
import inference_pb2
import inference_pb2_grpc
import pytest
from calls import chat, error_of
from harness import LARGE_MESSAGES, ROOT

CLIENT_LOOP = """
import grpc
import inference_pb2, inference_pb2_grpc

channel = grpc.insecure_channel("localhost:50051")
stub = inference_pb2_grpc.LLMStub(channel)
req = inference_pb2.GenerateRequest(model="local", max_tokens=100)
for resp in stub.Generate(req):
    if resp.delta:
        print(resp.delta.decode(), end="")
    if resp.done:
        break
"""

LARGE_CHANNEL = """
channel = grpc.insecure_channel(
    "localhost:50051",
    options=[("grpc.max_send_message_length", 50*1024*1024),
             ("grpc.max_receive_message_length", 50*1024*1024)]
)
"""


def run_at(address: str, program: str, **names) -> dict:
    exec(compile(program.replace("localhost:50051", address), "mission", "exec"), names)
    return names


def test_the_client_loop_runs_as_it_stands(replica):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ended = run_at(replica.address, CLIENT_LOOP)
    assert ended["resp"].done
    assert ended["resp"].completion_tokens == 100 or ended["resp"].finish_reason == inference_pb2.FINISH_REASON_STOP
    ended["channel"].close()


def test_the_large_message_options_carry_a_large_prompt(scripted):
    tokens = str(1 << 24)
    server = scripted("--context-tokens", tokens, "--max-queued-prompt-tokens", tokens, "--max-step-tokens", tokens)
    channel = run_at(server.address, LARGE_CHANNEL, grpc=grpc)["channel"]
    stub = inference_pb2_grpc.LLMStub(channel)
    responses = list(stub.Generate(chat(b"x" * (15 << 20), max_tokens=3)))
    assert responses[-1].done and responses[-1].prompt_tokens > 15 << 20
    # Nearly fifty megabytes arrive, too: what is refused is the number of tokens.
    error = error_of(lambda: stub.Generate(chat(b"x" * ((50 << 20) - 1024))))
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "context" in error.details()
    channel.close()


def test_a_message_above_fifty_megabytes_is_refused_with_the_limit_and_the_flag(replica):
    stub = replica.stub([(name, 2 * size) for name, size in LARGE_MESSAGES])
    with pytest.raises(grpc.RpcError) as caught:
        list(stub.Generate(chat(b"x" * (51 * 1024 * 1024))))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "--max-message-bytes" in caught.value.details() and str(50 << 20) in caught.value.details()


def ghz(address: str, connections: int, calls: int) -> dict:
    line = ["ghz", "--insecure", "--proto", "inference.proto", "--call", "inference.LLM.Generate"]
    line += ["-d", '{"model":"local","max_tokens":50}', "-c", str(connections), "-n", str(calls), "-O", "json", address]
    done = subprocess.run(line, cwd=ROOT / "proto", capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_ghz_runs_its_ten_thousand_calls_without_an_error(scripted):
    server = scripted()
    report = ghz(server.address, 100, 10_000)
    assert report["statusCodeDistribution"] == {"OK": 10_000}
    assert server.metric("sluice_generated_tokens_total") >= 10_000 * 50
    server.until_idle()


def test_ghz_runs_against_the_real_model_without_an_error(replica):
    # ghz gives a call 20 s: no more of them at once than two slow cores answer in that time.
    assert ghz(replica.address, 16, 32)["statusCodeDistribution"] == {"OK": 32}
