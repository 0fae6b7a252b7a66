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
    return pb.GenerateRequest(model="local", prompt=text.encode(), max_tokens=4, ignore_eos=True)


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


def test_the_chats_tail_latency_stays_within_three_times_the_quiet_one(replica):
    request = long_prompt(replica)
    quiet = chats(replica)
    prompts: list[Answer] = []
    busy = chats(replica, lambda: prompts.append(Answer.of(replica.stub().Generate(request))))
    assert prompts[0].last.prompt_tokens > 1000
    ratio = percentile(busy, 0.99) / percentile(quiet, 0.99)
    print(f"p99 between tokens: quiet {percentile(quiet, 0.99) * 1e3:.1f} ms, beside the prompt {percentile(busy, 0.99) * 1e3:.1f} ms")
    assert ratio <= 3, f"{ratio:.2f} times the quiet one"
