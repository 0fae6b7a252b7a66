"""LangChain's ChatOpenAI as the client of `sluice up`: its own message types, its usage figures, and what it asks for unasked."""

import openai
import pydantic
import pytest
from harness import Server

QUESTION = "Name the capital city of France."
ANSWER = "The capital city of France is Paris."


class City(pydantic.BaseModel):
    name: str


@pytest.fixture
def model(up: Server):
    import langchain_openai

    return langchain_openai.ChatOpenAI(
        model="local", base_url=f"http://{up.http}/v1", api_key="none", temperature=0, max_tokens=24, max_retries=0
    )


def test_a_message_is_answered_with_its_usage(model):
    answer = model.invoke([("system", "You are a helpful assistant."), ("human", QUESTION)])
    assert "Paris" in answer.content and answer.response_metadata["finish_reason"] == "stop"
    usage = answer.usage_metadata
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] and usage["output_tokens"] > 5


def test_a_stream_comes_in_pieces_and_ends_with_its_usage(model):
    chunks = list(model.stream(QUESTION, stream_usage=True))
    assert "".join(chunk.content for chunk in chunks) == ANSWER and len(chunks) > 5
    assert [chunk.usage_metadata["output_tokens"] > 5 for chunk in chunks if chunk.usage_metadata] == [True]


def test_a_batch_is_answered_in_its_order(model):
    answers = model.batch([QUESTION, "Name three fruits.", QUESTION])
    assert answers[0].content == answers[2].content == ANSWER != answers[1].content


@pytest.mark.parametrize(
    ("method", "named"), [("json_schema", "response_format"), ("json_mode", "response_format"), ("function_calling", "tool_choice")]
)
def test_structured_output_is_refused_by_name(model, method, named):
    with pytest.raises(openai.BadRequestError) as refused:
        model.with_structured_output(City, method=method).invoke(QUESTION)
    assert refused.value.param == named


def test_an_unknown_model_is_not_found(model):
    with pytest.raises(openai.NotFoundError):
        model.invoke(QUESTION, model="no-such-model")


def test_a_stream_that_the_program_leaves_frees_the_slot(model, up):
    stream = model.stream(QUESTION, max_tokens=1900, extra_body={"ignore_eos": True})
    next(stream)
    stream.close()
    up.until_idle(5)
