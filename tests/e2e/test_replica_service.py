"""inference.Replica and the unary calls: what gateways and operators ask."""

import math

import grpc
import inference_pb2 as pb
from calls import Answer, StepStream, chat


def test_describe_names_the_model_and_every_bound(replica):
    answer = replica.replica_stub().Describe(pb.DescribeRequest())
    model = answer.models[0]
    assert model.engine == "llama" and "local" in model.aliases and model.context_tokens > 0 and model.vocabulary > 0
    bounds = {bound.name: bound.value for bound in answer.bounds}
    assert bounds["max-message-bytes"] == 50 << 20 and bounds["max-sequences"] == 32
    assert answer.attach and answer.chat_template and answer.HasField("images") and not answer.images and answer.version


def test_watch_load_tells_changes(scripted):
    server = scripted(step_ms=5)
    watch = server.replica_stub().WatchLoad(pb.WatchLoadRequest(interval_ms=10))
    assert next(watch).running == 0
    call = server.stub().Generate(chat("hi"))
    assert next(load for load in watch if load.running == 1 and load.kv_used_tokens > 0)
    call.cancel()
    assert next(load for load in watch if load.running == 0)
    watch.cancel()


def test_embeddings_are_unit_vectors_and_near_for_what_is_near(replica):
    texts = [b"A cat sat on the mat.", b"A cat sat on a mat.", b"Interest rates rose by two percent."]
    answer = replica.stub().Embed(pb.EmbedRequest(model="local", inputs=texts))
    vectors = [one.values for one in answer.embeddings]
    assert len(vectors) == 3 and answer.prompt_tokens > 10
    for vector in vectors:
        assert math.isclose(sum(value * value for value in vector), 1, rel_tol=1e-3)

    def alike(one, other) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert alike(vectors[0], vectors[1]) > alike(vectors[0], vectors[2])


def test_count_tokens_counts_the_empty_prompt_too(replica):
    answer = replica.stub().CountTokens(pb.CountTokensRequest(model="local"))
    assert answer.tokens >= 1 and answer.context_tokens > 0


def test_the_step_stream_joins_what_one_step_made(scripted):
    server = scripted(step_ms=20)
    gateway = StepStream(server.replica_stub())
    gateway.send(
        starts=[pb.Start(id=number, request=chat("hi", max_tokens=40), credit=pb.Credit(deltas=1000, bytes=1 << 20)) for number in range(1, 101)]
    )
    batches, tokens, ended = 0, 0, 0
    for batch in gateway.call:
        batches += 1
        for item in batch.items:
            if item.HasField("status"):
                ended += 1
                tokens += item.response.completion_tokens
        if ended == 100:
            break
    assert tokens == 100 * 40
    assert batches < 400, "more than a message or two for each step"
    gateway.close()


def test_the_step_stream_gives_what_generate_gives(replica):
    request = chat("Name the capital city of France.", temperature=0, max_tokens=12)
    alone = Answer.of(replica.stub().Generate(request))
    gateway = StepStream(replica.replica_stub())
    gateway.start(9, request)
    responses = []
    for item in gateway.items():
        if item.HasField("response"):
            responses.append(item.response)
        if item.HasField("status"):
            assert item.status.code == 0
            break
    assert Answer.of(iter(responses)).text == alone.text
    gateway.close()


def test_an_id_that_runs_already_is_refused_and_the_running_one_goes_on(scripted):
    server = scripted(step_ms=5)
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("hi", max_tokens=50))
    gateway.start(1, chat("hi", max_tokens=50))
    codes = []
    try:
        for item in gateway.items():
            if item.HasField("status"):
                codes.append(item.status.code)
                break
    except grpc.RpcError as error:
        codes.append(error.code().value[0])
    assert codes == [grpc.StatusCode.INVALID_ARGUMENT.value[0]]
    gateway.close()
    server.until_idle()
