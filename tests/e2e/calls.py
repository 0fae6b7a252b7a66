"""Requests and answers, for tests that are about something else than how to make them."""

import dataclasses
import queue
import threading
import time
from collections.abc import Iterator

import grpc
import inference_pb2 as pb
import pytest


def chat(text: str | bytes, **fields) -> pb.GenerateRequest:
    """A request with one user message."""
    content = text if isinstance(text, bytes) else text.encode()
    return pb.GenerateRequest(model="local", messages=[pb.Message(role="user", content=content)], **fields)


@dataclasses.dataclass
class Answer:
    """A stream that ended well, with what every such stream must hold checked."""

    text: bytes = b""
    last: pb.GenerateResponse | None = None
    logprobs: list[pb.TokenLogprob] = dataclasses.field(default_factory=list)
    times: list[float] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, stream: Iterator[pb.GenerateResponse]) -> "Answer":
        answer = cls()
        for response in stream:
            assert answer.last is None, "a message after done"
            assert response.offset == len(answer.text), "a gap or an overlap in the answer"
            answer.text += response.delta
            answer.logprobs += response.logprobs
            answer.times.append(time.monotonic())
            if response.done:
                answer.last = response
        assert answer.last is not None, "the stream ended without done"
        return answer

    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.times, self.times[1:], strict=False)]


def all_at_once(work: list) -> list:
    """Runs each callable in a thread of its own; their results, in order. The first exception is raised."""
    results: list = [None] * len(work)

    def run(index: int) -> None:
        try:
            results[index] = work[index]()
        except BaseException as error:  # noqa: BLE001 - raised again below
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def error_of(call) -> grpc.RpcError:
    """The error that a unary call, or reading a stream, ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        result = call()
        if not hasattr(result, "SerializeToString"):
            for _ in result:
                pass
    return caught.value


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class StepStream:
    """A gateway's end of Replica/Attach."""

    def __init__(self, stub, **options):
        self._up: queue.SimpleQueue = queue.SimpleQueue()
        self.call = stub.Attach(iter(self._up.get, None), **options)

    def send(self, *, starts=(), cancels=(), credits=()) -> None:
        self._up.put(pb.AttachRequest(starts=starts, cancels=cancels, credits=credits))

    def start(self, number: int, request: pb.GenerateRequest, deltas: int = 1 << 20, size: int = 1 << 30, **fields) -> None:
        self.send(starts=[pb.Start(id=number, request=request, credit=pb.Credit(deltas=deltas, bytes=size), **fields)])

    def items(self) -> Iterator[pb.StepItem]:
        for batch in self.call:
            yield from batch.items

    def close(self) -> None:
        self._up.put(None)
        self.call.cancel()
