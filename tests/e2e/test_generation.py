"""What a generation is: where it ends, what its counts say, what sampling options and a seed do. Real model unless told otherwise."""

import math
import threading

import grpc
import inference_pb2 as pb
import pytest
from calls import Answer, chat, error_of

COUNT = "Count from one to ten in words."


def generate(server, request: pb.GenerateRequest) -> Answer:
    return Answer.of(server.stub().Generate(request))


def test_the_answer_ends_at_max_tokens_and_says_so(replica):
    last = generate(replica, chat(COUNT, max_tokens=7, ignore_eos=True)).last
    assert last.completion_tokens == 7 and last.finish_reason == pb.FINISH_REASON_LENGTH
    assert last.prompt_tokens > 5 and last.timings.decode_us > 0


def test_the_answer_ends_by_itself_and_says_so(replica):
    last = generate(replica, chat("Name the capital city of France.", temperature=0, max_tokens=200)).last
    assert last.finish_reason == pb.FINISH_REASON_STOP and last.matched_stop == "" and last.completion_tokens < 200


def test_a_prompt_pays_only_for_what_no_earlier_one_left(replica):
    question = "Name three things that are found on a beach at low tide."
    first = generate(replica, chat(question, temperature=0, max_tokens=12)).last
    again = generate(replica, chat(question, temperature=0, max_tokens=12)).last
    assert again.prompt_tokens == first.prompt_tokens and again.cached_tokens == again.prompt_tokens - 1
    other = chat(question, temperature=0, max_tokens=12)
    other.cache.salt = "another tenant"
    assert generate(replica, other).last.cached_tokens == 0


def test_the_first_message_names_the_model(replica):
    first = next(replica.stub().Generate(chat("hi", max_tokens=1)))
    assert first.model == replica.replica_stub().Describe(pb.DescribeRequest()).models[0].name != "local"


@pytest.mark.parametrize(
    ("pieces", "stop", "answer", "matched"),
    [
        (["one ", "four", " fi", "ve s", "ix", " seven"], ["four five six"], b"one ", "four five six"),
        (["ab", "ab", "ac"], ["abac"], b"ab", "abac"),
        (["xENDy"], ["END"], b"x", "END"),
        (["x", "E", "N", "E", "N", "D", "z"], ["END"], b"xEN", "END"),
        (["a", "b", "c"], ["bc", "b"], b"a", "b"),
        (["never"], ["end"], b"never", ""),
        (["e", "n"], ["end"], b"en", ""),
    ],
    ids=["over many tokens", "overlapping itself", "within a token", "false start", "the first to match", "no match", "cut short"],
)
def test_a_stop_string_is_held_back_and_never_sent(scripted, pieces, stop, answer, matched):
    server = scripted(script="".join(f'piece "{piece}"\n' for piece in pieces))
    got = generate(server, chat("go", stop=stop))
    assert got.text == answer
    assert got.last.matched_stop == matched and got.last.finish_reason == pb.FINISH_REASON_STOP


def test_a_stop_string_of_the_real_model(replica):
    whole = generate(replica, chat(COUNT, temperature=0, max_tokens=60)).text.decode()
    middle = whole[len(whole) // 2 :].split()[1]
    cut = generate(replica, chat(COUNT, temperature=0, max_tokens=60, stop=[middle]))
    assert cut.text.decode() == whole[: whole.index(middle)] and cut.last.matched_stop == middle


def test_characters_over_several_tokens_arrive_byte_for_byte(scripted):
    pieces = [r"\xF0\x9F", r"\x8C\x8D", r"\xD1", r"\x8C", r"\xE4\xBD", r"\xA0"]
    server = scripted(script="".join(f'piece "{piece}"\n' for piece in pieces))
    assert generate(server, chat("go")).text.decode() == "🌍ь你"


def test_min_tokens_holds_off_the_end(replica):
    assert generate(replica, chat("Say yes.", temperature=0, min_tokens=40, max_tokens=50)).last.completion_tokens >= 40


def test_a_seed_gives_the_same_text_again_and_another_seed_another(replica):
    texts = [generate(replica, chat("Tell me a story.", seed=seed, max_tokens=30)).text for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_temperature_zero_is_not_absent(replica):
    texts = {generate(replica, chat("Tell me a story.", temperature=0, max_tokens=20)).text for _ in range(3)}
    assert len(texts) == 1


def test_n_choices_are_told_apart_and_each_has_its_end(replica):
    offsets, texts, ends, last = {}, {}, {}, None
    for response in replica.stub().Generate(chat("Name an animal.", n=3, seed=5, temperature=1.5, max_tokens=12)):
        assert response.offset == offsets.get(response.index, 0)
        offsets[response.index] = response.offset + len(response.delta)
        texts[response.index] = texts.get(response.index, b"") + response.delta
        if response.finish_reason:
            assert response.index not in ends
            ends[response.index] = response.finish_reason
        last = response
    assert last.done and set(texts) == set(ends) == {0, 1, 2}
    assert len(set(texts.values())) > 1
    assert 3 < last.completion_tokens <= 36


def test_logprobs_are_probabilities_and_the_greedy_token_is_the_likeliest(replica):
    answer = generate(replica, chat(COUNT, temperature=0, top_logprobs=3, max_tokens=10))
    assert len(answer.logprobs) == 10
    assert b"".join(one.piece for one in answer.logprobs).startswith(answer.text)
    for one in answer.logprobs:
        assert len(one.top) == 3 and one.top[0].token == one.token
        assert one.logprob == pytest.approx(one.top[0].logprob)
        assert sum(math.exp(candidate.logprob) for candidate in one.top) <= 1.001


def test_logit_bias_forbids_and_forces(replica):
    first = generate(replica, chat("Say hello.", temperature=0, top_logprobs=2, max_tokens=1)).logprobs[0]
    banned = generate(replica, chat("Say hello.", temperature=0, top_logprobs=0, max_tokens=1, logit_bias={first.token: -100}))
    assert banned.logprobs[0].token != first.token
    forced = generate(replica, chat("Say hello.", temperature=0, top_logprobs=0, max_tokens=3, logit_bias={1000: 100}))
    assert [one.token for one in forced.logprobs] == [1000] * 3


def test_the_contexts_end_is_a_length(replica):
    model = replica.replica_stub().Describe(pb.DescribeRequest()).models[0]
    filler = b"word " * (model.context_tokens - 20)
    last = generate(replica, pb.GenerateRequest(model="local", prompt=filler, ignore_eos=True)).last
    assert last.finish_reason == pb.FINISH_REASON_LENGTH
    assert last.prompt_tokens + last.completion_tokens in (model.context_tokens, model.context_tokens + 1)


def test_a_failing_sequence_ends_with_internal_and_the_next_one_works(scripted):
    server = scripted(script='piece "fine "\nfail "scripted"\n')
    error = error_of(lambda: server.stub().Generate(chat("go")))
    assert error.code() == grpc.StatusCode.INTERNAL
    assert generate(server, chat("go", max_tokens=1)).text == b"fine "


def test_priority_goes_first_among_those_that_wait(scripted):
    server = scripted("--max-sequences", "1", script='piece "token " 2ms\nloop\n')
    stub = server.stub()
    running = stub.Generate(chat("first"))
    next(running)
    order, readers = [], []

    def read(name: str, call) -> None:
        next(call)
        order.append(name)
        for _ in call:
            pass

    for name, priority in (("low", -5), ("middle", 0), ("high", 5)):
        readers.append(threading.Thread(target=read, args=(name, stub.Generate(chat(name, priority=priority, max_tokens=20)))))
        readers[-1].start()
        server.until_metric("sluice_queued_requests", lambda queued: queued == len(readers))
    running.cancel()
    for reader in readers:
        reader.join()
    assert order == ["high", "middle", "low"]
