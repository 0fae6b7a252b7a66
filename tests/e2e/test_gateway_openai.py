"""OpenAI's own Python package as the client of `sluice up`, with the real model."""

import json
import urllib.request

import inference_pb2 as pb
import openai
import pytest
from calls import Answer, chat
from harness import until

QUESTION = [{"role": "user", "content": "Name the capital city of France."}]


def test_a_chat_is_answered_with_its_usage(up):
    answer = up.openai().chat.completions.create(model="local", messages=QUESTION, temperature=0, max_tokens=24)
    choice = answer.choices[0]
    assert "Paris" in choice.message.content and choice.finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


def test_a_streamed_chat_comes_in_pieces_with_its_usage_last(up):
    chunks = list(
        up.openai().chat.completions.create(
            model="local", messages=QUESTION, temperature=0, max_tokens=24, stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "The capital city of France is Paris."
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]].count("stop") == 1
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens > 5
    assert len({chunk.id for chunk in chunks}) == 1 and len(chunks) > 5


def test_without_include_usage_no_chunk_is_without_choices(up):
    stream = up.openai().chat.completions.create(model="local", messages=QUESTION, max_tokens=4, stream=True)
    assert all(chunk.choices for chunk in stream)


def test_a_completion_continues_a_text_and_may_repeat_it(up):
    client = up.openai()
    plain = client.completions.create(model="local", prompt="One, two, three,", temperature=0, max_tokens=6)
    echoed = client.completions.create(model="local", prompt="One, two, three,", temperature=0, max_tokens=6, echo=True)
    assert echoed.choices[0].text == "One, two, three," + plain.choices[0].text


def test_several_prompts_are_answered_in_their_order(up):
    prompts = ["One, two, three,", "The sky is", "Once upon a time"]
    together = up.openai().completions.create(model="local", prompt=prompts, temperature=0, max_tokens=5)
    assert [choice.index for choice in together.choices] == [0, 1, 2]
    assert all(choice.text for choice in together.choices)


def test_several_choices_of_one_prompt(up):
    answer = up.openai().chat.completions.create(model="local", messages=QUESTION, n=3, max_tokens=8, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]


def test_embeddings_have_length_one_and_know_what_is_alike(up):
    texts = ["A cat sleeps.", "A kitten is sleeping.", "Interest rates rose."]
    made = up.openai().embeddings.create(model="local", input=texts)
    cat, kitten, rates = (item.embedding for item in made.data)

    def likeness(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert likeness(cat, cat) == pytest.approx(1, abs=1e-3)
    assert likeness(cat, kitten) > likeness(cat, rates)


def test_fields_that_nobody_knows_are_counted_wherever_they_come(up):
    client = up.openai()
    before = up.gateway_metric("sluice_gateway_unknown_fields_total")
    client.embeddings.create(model="local", input="hi", extra_body={"one": 1})
    client.chat.completions.create(model="local", messages=[{"role": "user", "content": "hi"}], max_tokens=1, extra_body={"two": 1, "three": 1})
    until(lambda: up.gateway_metric("sluice_gateway_unknown_fields_total") == before + 3, "three more")


def test_a_response_streamed_and_whole(up):
    client = up.openai()
    whole = client.responses.create(model="local", input="Name the capital city of France.", temperature=0, max_output_tokens=24)
    assert "Paris" in whole.output_text and whole.status == "completed"
    events = list(
        client.responses.create(
            model="local", input="Name the capital city of France.", temperature=0, max_output_tokens=24, stream=True
        )
    )
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_models_are_listed_and_found(up):
    client = up.openai()
    names = {model.id for model in client.models.list()}
    assert "local" in names
    assert client.models.retrieve("local").id in names
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("no-such-model")


def test_logprobs_are_those_of_the_tokens(up):
    answer = up.openai().chat.completions.create(
        model="local", messages=QUESTION, temperature=0, max_tokens=8, logprobs=True, top_logprobs=3
    )
    tokens = answer.choices[0].logprobs.content
    assert "".join(token.token for token in tokens) == answer.choices[0].message.content
    assert all(token.logprob <= 0 and len(token.top_logprobs) == 3 for token in tokens)


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"model": "no-such-model"}, openai.NotFoundError, "model"),
        ({"temperature": 9}, openai.BadRequestError, "temperature"),
        ({"top_p": 7}, openai.BadRequestError, "top_p"),
        ({"max_tokens": -1}, openai.BadRequestError, "max_tokens"),
        ({"n": 10_000}, openai.BadRequestError, "n"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, openai.BadRequestError, "role"),
        ({"stop": [""]}, openai.BadRequestError, "stop"),
        ({"logit_bias": {"99999999": 1}}, openai.BadRequestError, "logit_bias"),
        ({"messages": [{"role": "user", "content": "word " * 9000}]}, openai.BadRequestError, "context"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]}, openai.BadRequestError, "tools"),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "response_format"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else None,
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_bad_field_is_named_and_has_its_error_class(up, change, error, named, stream):
    with pytest.raises(error) as refused:
        request = {"model": "local", "messages": QUESTION, "max_tokens": 4, **change}
        answer = up.openai().chat.completions.create(**request, stream=stream)
        list(answer)
    assert named in str(refused.value)
    assert set(refused.value.body) >= {"message", "type", "param", "code"}


def test_a_time_out_of_the_client_frees_the_slot(up):
    with pytest.raises(openai.APITimeoutError):
        up.openai(timeout=0.3).chat.completions.create(
            model="local", messages=QUESTION, max_tokens=1900, extra_body={"ignore_eos": True}
        )
    up.until_idle(5)


def test_an_abandoned_stream_frees_the_slot(up):
    stream = up.openai().chat.completions.create(
        model="local", messages=QUESTION, max_tokens=1900, stream=True, extra_body={"ignore_eos": True}
    )
    next(iter(stream))
    stream.close()
    up.until_idle(5)


def test_a_second_turn_says_what_was_cached(up):
    client = up.openai()
    talk = [{"role": "user", "content": "Name three fruits that grow on trees in a warm country."}]
    first = client.chat.completions.create(model="local", messages=talk, max_tokens=8, temperature=0)
    talk += [{"role": "assistant", "content": first.choices[0].message.content}, {"role": "user", "content": "And one more?"}]
    second = client.chat.completions.create(model="local", messages=talk, max_tokens=8, temperature=0)
    assert second.usage.prompt_tokens_details.cached_tokens > first.usage.prompt_tokens // 2
    uncached = client.chat.completions.create(
        model="local", messages=talk, max_tokens=8, temperature=0, extra_headers={"Cache-Control": "no-cache"}
    )
    assert uncached.usage.prompt_tokens_details.cached_tokens == 0


SCRIPTS = {
    "emoji": "Write five emoji of animals.", "Thai": "สวัสดีครับ คุณชื่ออะไร", "Arabic": "ما هي عاصمة فرنسا؟", "Chinese": "法国的首都是哪里？",
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_streamed_whole_and_grpc_are_the_same_text_at_every_length(up, script):
    client, stub = up.openai(), up.stub()
    for length in range(1, 41, 3):
        asked = {"messages": [{"role": "user", "content": SCRIPTS[script]}], "temperature": 0, "max_tokens": length}
        whole = client.chat.completions.create(model="local", **asked).choices[0].message.content
        stream = client.chat.completions.create(model="local", **asked, stream=True)
        streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        raw = Answer.of(stub.Generate(chat(SCRIPTS[script], temperature=0, max_tokens=length))).text
        assert whole == streamed == raw.decode(errors="replace"), f"at max_tokens {length}"


def test_headers_say_who_served(up):
    with urllib.request.urlopen(
        urllib.request.Request(
            f"http://{up.http}/v1/chat/completions",
            json.dumps({"model": "local", "messages": QUESTION, "max_tokens": 2}).encode(),
            {"Content-Type": "application/json", "X-Request-Id": "my-own-id", "Origin": "http://localhost:3000"},
        )
    ) as answer:
        headers = answer.headers
    assert headers["x-request-id"] == "my-own-id" and headers["x-served-by"] and headers["x-routing-reason"]
    assert headers["x-attempts"] == "1" and int(headers["x-gateway-overhead-us"]) >= 0
    assert headers["access-control-allow-origin"] == "http://localhost:3000"


def test_priorities_and_hints_are_taken_in_every_dialect(up):
    answer = up.openai().chat.completions.create(
        model="local",
        messages=QUESTION,
        max_tokens=2,
        service_tier="flex",
        extra_body={
            "prompt_cache_key": "k", "session_id": "s", "cache_salt": "pepper", "priority": 3, "provider": {"only": ["local"]},
            "models": ["local"], "user": "u", "something_unknown": 1,
        },
    )  # fmt: skip
    assert answer.choices[0].finish_reason == "length"
    until(lambda: "something_unknown" not in up.log(), "nothing of the body in the log")


def test_grpc_and_rest_share_one_replica(up):
    described = up.replica_stub().Describe(pb.DescribeRequest())
    assert described.models[0].name in {model.id for model in up.openai().models.list()}


def test_another_size_of_vectors_is_refused_by_name(up):
    asked = up.metric("sluice_calls_total", method="Embed")
    with pytest.raises(openai.BadRequestError) as refused:
        up.openai().embeddings.create(model="local", input="hi", dimensions=7)
    assert refused.value.param == "dimensions"
    assert up.metric("sluice_calls_total", method="Embed") == asked, "nothing was computed"
    size = up.replica_stub().Describe(pb.DescribeRequest()).models[0].embedding_size
    assert len(up.openai().embeddings.create(model="local", input="hi", dimensions=size).data[0].embedding) == size
