"""Keys and their limits at the gateway, with OpenAI's client: who may call, how much, and what is said to who may not."""

import subprocess

import openai
import pytest
from harness import BINARY, key_command, until

QUESTION = [{"role": "user", "content": "go"}]


def ask(edge, key: str, **fields):
    return edge.openai(key).chat.completions.create(model="local", messages=QUESTION, **{"max_tokens": 4, **fields})


def test_without_a_key_nothing_is_answered(scripted, gateway, keys):
    good = keys("good")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    assert ask(edge, good).choices[0].finish_reason == "length"
    with pytest.raises(openai.AuthenticationError) as refused:
        ask(edge, "sk-wrong")
    assert refused.value.code == "invalid_api_key"
    assert good not in edge.log() and "sk-wrong" not in edge.log()


def test_requests_a_minute_are_429_with_a_time_and_the_client_waits_for_it(scripted, gateway, keys):
    key = keys("slow", "--rpm", "60")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    raw = edge.openai(key).chat.completions.with_raw_response
    answers = [raw.create(model="local", messages=QUESTION, max_tokens=1) for _ in range(60)]
    assert int(answers[0].headers["x-ratelimit-limit-requests"]) == 60
    left = [int(answer.headers["x-ratelimit-remaining-requests"]) for answer in answers]
    assert left[0] == 59 and left[-1] < 10
    with pytest.raises(openai.RateLimitError) as refused:
        for _ in range(60):
            ask(edge, key)
    assert int(refused.value.response.headers["retry-after-ms"]) <= 1000
    assert edge.openai(key, max_retries=3).chat.completions.create(model="local", messages=QUESTION, max_tokens=1)


def test_more_tokens_than_a_minute_holds_are_refused_for_good(scripted, gateway, keys):
    key = keys("small", "--tpm", "100")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    with pytest.raises(openai.RateLimitError) as refused:
        ask(edge, key, max_tokens=1000)
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert ask(edge, key, max_tokens=10).usage.completion_tokens == 10, "what was refused took nothing"


def test_a_key_for_one_model_sees_no_other(scripted, gateway, keys):
    key = keys("other", "--models", "no-such-model")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    with pytest.raises(openai.PermissionDeniedError):
        ask(edge, key)
    assert list(edge.openai(key).models.list()) == []


def test_a_revoked_key_is_refused_within_seconds(scripted, gateway, keys):
    key = keys("gone")
    keys("stays")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    assert ask(edge, key)
    key_command("revoke", "--api-keys", str(keys.file), "gone")

    def refused() -> bool:
        try:
            ask(edge, key)
        except openai.AuthenticationError:
            return True
        return False

    until(refused, "a refusal", 5)


def test_each_replica_gets_the_key_that_is_meant_for_it(scripted, start, keys, tmp_path):
    theirs = tmp_path / "their-key"
    theirs.write_text(keys("edge") + "\n")
    remote = scripted("--api-keys", str(keys.file))
    ours = ["--api-keys", str(tmp_path / "our-keys")]
    key = key_command("add", *ours, "me")
    pool = ["--replica", remote.address, "--replica-key", str(theirs), "--policy", "round-robin"]
    both = start("--engine", "scripted", *ours, *pool, command="up")

    def served_by() -> str:
        raw = both.openai(key).chat.completions.with_raw_response
        return raw.create(model="local", messages=QUESTION, max_tokens=1).headers["x-served-by"]

    until(lambda: {served_by(), served_by()} == {"local", remote.address}, "answers of both, each let in with its own key")


def test_without_keys_a_gateway_listens_on_loopback_only(scripted):
    replica = scripted()
    line = [str(BINARY), "gateway", "--replica", replica.address, "--listen", "0.0.0.0:0", "--metrics-listen", "off"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "--api-keys" in done.stderr and "--insecure-open" in done.stderr
