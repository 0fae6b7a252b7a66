"""Bad input is refused with a status and a message that name the field and the limit, and costs nobody anything."""

import math

import grpc
import inference_pb2 as pb
import pytest
from calls import Answer, StepStream, chat, error_of

INVALID = grpc.StatusCode.INVALID_ARGUMENT
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED
UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


def said(**fields) -> pb.Message:
    return pb.Message(role="user", **fields)


def conversation(*messages: pb.Message, **fields) -> pb.GenerateRequest:
    return pb.GenerateRequest(model="local", messages=messages, **fields)


CASES = {
    "unknown model": (pb.GenerateRequest(model="gpt-4"), grpc.StatusCode.NOT_FOUND, ["model"]),
    "no model": (pb.GenerateRequest(), grpc.StatusCode.NOT_FOUND, ["model"]),
    "unknown role": (conversation(pb.Message(role="wizard", content=b"hi")), INVALID, ["role", "messages[0]"]),
    "no role": (conversation(pb.Message(content=b"hi")), INVALID, ["role", "messages[0]"]),
    "NaN temperature": (chat("hi", temperature=math.nan), INVALID, ["temperature"]),
    "infinite temperature": (chat("hi", temperature=math.inf), INVALID, ["temperature"]),
    "negative temperature": (chat("hi", temperature=-1), INVALID, ["temperature"]),
    "negative max_tokens": (chat("hi", max_tokens=-5), INVALID, ["max_tokens"]),
    "max_tokens 0": (chat("hi", max_tokens=0), INVALID, ["max_tokens"]),
    "top_p 2": (chat("hi", top_p=2), INVALID, ["top_p"]),
    "top_p 0": (chat("hi", top_p=0), INVALID, ["top_p"]),
    "NaN top_p": (chat("hi", top_p=math.nan), INVALID, ["top_p"]),
    "negative top_k": (chat("hi", top_k=-1), INVALID, ["top_k"]),
    "min_p 2": (chat("hi", min_p=2), INVALID, ["min_p"]),
    "infinite penalty": (chat("hi", frequency_penalty=math.inf), INVALID, ["frequency_penalty"]),
    "presence_penalty 3": (chat("hi", presence_penalty=3), INVALID, ["presence_penalty"]),
    "a repetition_penalty that no logit bears": (chat("hi", repetition_penalty=1e-38), INVALID, ["repetition_penalty", "0.01"]),
    "repetition_penalty 0": (chat("hi", repetition_penalty=0), INVALID, ["repetition_penalty"]),
    "a prompt beyond the context": (chat("word " * 200_000), INVALID, ["context"]),
    "a prompt just beyond the context": (chat("word " * 20_000), INVALID, ["context"]),
    "invalid UTF-8": (chat(b"caf\xe9"), INVALID, ["UTF-8", "messages[0]"]),
    "an overlong form": (chat(b"\xc0\xaf"), INVALID, ["UTF-8"]),
    "a surrogate": (chat(b"\xed\xa0\x80"), INVALID, ["UTF-8"]),
    "NUL": (chat(b"a\0b"), INVALID, ["NUL", "messages[0]"]),
    "NUL in the prompt": (pb.GenerateRequest(model="local", prompt=b"a\0b"), INVALID, ["NUL", "prompt"]),
    "an empty stop string": (chat("hi", stop=[""]), INVALID, ["stop[0]"]),
    "ten thousand stop strings": (chat("hi", stop=["a"] * 10_000), INVALID, ["stop", "10000", "--max-stop-strings"]),
    "a long stop string": (chat("hi", stop=["a" * 5000]), INVALID, ["stop[0]", "--max-stop-bytes"]),
    "logit_bias for no token": (chat("hi", logit_bias={10_000_000: 1}), INVALID, ["logit_bias"]),
    "logit_bias for token -1": (chat("hi", logit_bias={-1: 1}), INVALID, ["logit_bias"]),
    "NaN logit_bias": (chat("hi", logit_bias={5: math.nan}), INVALID, ["logit_bias"]),
    "logit_bias 1000": (chat("hi", logit_bias={5: 1000}), INVALID, ["logit_bias"]),
    "n 0": (chat("hi", n=0), INVALID, ["n "]),
    "n 10,000": (chat("hi", n=10_000), INVALID, ["n", "--max-n"]),
    "top_logprobs 21": (chat("hi", top_logprobs=21), INVALID, ["top_logprobs"]),
    "min_tokens above max_tokens": (chat("hi", max_tokens=3, min_tokens=5), INVALID, ["min_tokens", "max_tokens"]),
    "priority 1,000": (chat("hi", priority=1000), INVALID, ["priority"]),
    "a long session_id": (chat("hi", session_id="s" * 1000), INVALID, ["session_id"]),
    "ten thousand messages": (conversation(*[said(content=b"hi")] * 10_000), INVALID, ["messages", "--max-messages"]),
    "both prompt and messages": (chat("hi", prompt=b"hi"), INVALID, ["prompt", "messages"]),
    "both content and parts": (conversation(said(content=b"hi", parts=[pb.Part(content=b"hi")])), INVALID, ["content", "parts"]),
    "an image for a text model": (conversation(said(content=PNG, mime_type="image/png")), INVALID, ["messages[0]"]),
    "an image part": (conversation(said(parts=[pb.Part(content=PNG, mime_type="image/png")])), INVALID, ["messages[0]"]),
    "a tool": (chat("hi", tools=[pb.Tool(name="f")]), UNIMPLEMENTED, ["tools"]),
    "a tool choice": (chat("hi", tool_choice=pb.ToolChoice(name="f")), UNIMPLEMENTED, ["tool_choice"]),
    "a JSON schema": (chat("hi", response_format=pb.ResponseFormat(json_schema="{}")), UNIMPLEMENTED, ["response_format"]),
    "an endless cache salt": (chat("hi", cache=pb.CacheHints(salt="s" * 2000)), INVALID, ["salt"]),
    "echo": (chat("hi", echo=True), UNIMPLEMENTED, ["echo"]),
    "a participant's name": (conversation(said(content=b"hi", name="Ann")), UNIMPLEMENTED, ["name"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_generate_refuses(replica, name):
    request, code, words = CASES[name]
    error = error_of(lambda: replica.stub().Generate(request, timeout=30))
    assert error.code() == code, error.details()
    for word in words:
        assert word in error.details(), f"{word} is not in: {error.details()}"
    assert replica.alive()


def test_refusals_cost_a_running_stream_nothing(scripted):
    server = scripted("--context-tokens", "4096", step_ms=2)
    stub = server.stub()
    running = stub.Generate(chat("hello", max_tokens=300))
    next(running)
    for request, code, _ in CASES.values():
        assert error_of(lambda r=request: stub.Generate(r)).code() == code
    assert list(running)[-1].completion_tokens == 300
    assert server.metric("sluice_generated_tokens_total") == 300
    server.until_idle()


def test_the_step_stream_refuses_one_request_and_serves_the_next(scripted):
    server = scripted()
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("hi", top_p=2))
    gateway.start(2, chat("hi", max_tokens=5))
    codes = {}
    for item in gateway.items():
        if item.HasField("status"):
            codes[item.id] = (item.status.code, item.status.message)
        if len(codes) == 2:
            break
    assert codes[1][0] == INVALID.value[0] and "top_p" in codes[1][1]
    assert codes[2][0] == 0
    gateway.close()


def test_bytes_that_are_no_message_are_refused(replica):
    raw = replica.channel().unary_stream("/inference.LLM/Generate", lambda data: data, lambda data: data)
    error = error_of(lambda: raw(b"\xff" * 100))
    assert error.code() == INVALID and "GenerateRequest" in error.details()
    unknown = replica.channel().unary_unary("/inference.LLM/Nothing", lambda data: data, lambda data: data)
    assert error_of(lambda: unknown(b"")).code() == UNIMPLEMENTED
    assert Answer.of(replica.stub().Generate(chat("hi", max_tokens=2))).last.done


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (pb.EmbedRequest(model="local"), ["inputs"]),
        (pb.EmbedRequest(model="local", inputs=[b"a"] * 5000), ["--max-embed-inputs"]),
        (pb.EmbedRequest(model="local", inputs=[b"\xff"]), ["inputs[0]", "UTF-8"]),
    ],
    ids=["none", "too many", "not UTF-8"],
)
def test_embed_refuses(replica, request_, words):
    error = error_of(lambda: replica.stub().Embed(request_))
    assert error.code() == INVALID
    assert all(word in error.details() for word in words), error.details()


def test_a_full_queue_refuses_with_the_bound_and_a_time_to_retry_after(scripted):
    server = scripted("--max-sequences", "1", "--max-queued-requests", "2", script="hang\n")
    stub = server.stub()
    calls = [stub.Generate(chat("hi"))]
    server.until_metric("sluice_running_sequences", lambda running: running == 1)
    for waiting in (1, 2):
        calls.append(stub.Generate(chat("hi")))
        server.until_metric("sluice_queued_requests", lambda queued, wanted=waiting: queued == wanted)
    error = error_of(lambda: stub.Generate(chat("hi")))
    assert error.code() == EXHAUSTED and "--max-queued-requests" in error.details()
    assert server.metric("sluice_admission_refused_total") == 1
    for call in calls:
        call.cancel()
    server.until_idle()
