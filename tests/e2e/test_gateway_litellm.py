"""LiteLLM's SDK as the client of the gateway, by its `openai/` route: it maps errors to classes of its own."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from harness import Server

QUESTION = [{"role": "user", "content": "Name the capital city of France."}]
ANSWER = "The capital city of France is Paris."


@pytest.fixture(scope="module")
def litellm() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise it asks a host far away when it is imported
        import litellm

        yield litellm


def options(server: Server, **more: Any) -> dict[str, Any]:
    return {"model": "openai/local", "api_base": f"http://{server.http}/v1", "api_key": "none", "max_retries": 0, **more}


def chat(server: Server, **more: Any) -> dict[str, Any]:
    return options(server, **{"messages": QUESTION, "temperature": 0, "max_tokens": 24, **more})


def test_a_chat_is_answered_with_its_usage(up, litellm):
    answer = litellm.completion(**chat(up))
    assert answer.choices[0].message.content == ANSWER and answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_chat_ends_with_the_usage_of_the_whole(up, litellm):
    whole = litellm.completion(**chat(up))
    chunks = list(litellm.completion(**chat(up, stream=True, stream_options={"include_usage": True})))
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == ANSWER and len(chunks) > 5
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_embeddings_are_those_of_openais_client(up, litellm):
    texts = ["A cat sleeps.", "Interest rates rose."]
    made = [item["embedding"] for item in litellm.embedding(input=texts, **options(up)).data]
    expected = [item.embedding for item in up.openai().embeddings.create(model="local", input=texts).data]
    assert made == [pytest.approx(vector, abs=1e-3) for vector in expected]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"temperature": 9}, "BadRequestError"),
        ({"model": "openai/no-such-model"}, "NotFoundError"),
        ({"messages": [{"role": "user", "content": "word " * 9000}]}, "ContextWindowExceededError"),
    ],
    ids=["bad", "unknown", "long"],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_error_has_its_class(up, litellm, change, error, stream):
    with pytest.raises(getattr(litellm, error)):
        litellm.completion(**chat(up, stream=stream, **change))


def test_a_wrong_key_is_an_authentication_error(scripted, gateway, litellm, keys):
    good = keys("good")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    assert litellm.completion(**chat(edge, api_key=good))
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**chat(edge, api_key="sk-wrong"))
