"""A prompt of nine tenths of the context among ten chats."""

import threading

import inference_pb2 as pb
from calls import Answer, all_at_once, chat, percentile


def long_prompt(server) -> pb.GenerateRequest:
    """Of about 90 % of the context, counted by the server itself."""
    describe = server.replica_stub().Describe(pb.DescribeRequest())
    wanted = int(0.9 * describe.models[0].context_tokens)
    sample = server.stub().CountTokens(pb.CountTokensRequest(model="local", prompt=b"The quick brown fox. " * 100)).tokens
    text = "The quick brown fox. " * (wanted * 100 // sample)
    uncached = pb.CacheHints(no_cache=True)
    return pb.GenerateRequest(model="local", prompt=text.encode(), max_tokens=4, ignore_eos=True, cache=uncached)


def chats(server, while_running=None) -> list[float]:
    """The gaps between the tokens of ten chats; `while_running` is called when all ten have begun."""
    begun = threading.Barrier(11)
    stub = server.stub()

    def one(number: int) -> list[float]:
        stream = stub.Generate(chat(f"Tell me a story about the number {number}.", max_tokens=160, ignore_eos=True, seed=number))

        def reporting():
            yield next(stream)
            begun.wait(60)
            yield from stream

        return Answer.of(reporting()).gaps()

    def beside() -> list[float]:
        begun.wait(60)
        if while_running:
            while_running()
        return []

    return [gap for gaps in all_at_once([*[lambda n=n: one(n) for n in range(10)], beside]) for gap in gaps]


ROUNDS = 3


def test_the_chats_tail_latency_stays_within_three_times_the_quiet_one(replica):
    request = long_prompt(replica)

    def ratio() -> float:
        quiet = percentile(chats(replica), 0.99)
        prompts: list[Answer] = []
        busy = percentile(chats(replica, lambda: prompts.append(Answer.of(replica.stub().Generate(request)))), 0.99)
        assert prompts[0].last.prompt_tokens > 1000
        print(f"p99 between tokens: quiet {quiet * 1e3:.1f} ms, beside the prompt {busy * 1e3:.1f} ms")
        return busy / quiet

    # What else runs on the machine can only make it worse: the first round that holds is proof enough.
    ratios: list[float] = []
    while len(ratios) < ROUNDS and (not ratios or ratios[-1] > 3):
        ratios.append(ratio())
    assert min(ratios) <= 3, f"{ratios} times the quiet one"
