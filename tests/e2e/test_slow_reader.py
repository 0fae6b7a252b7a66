"""A client that stops reading parks its own sequence; the others, and the memory, do not change."""

import grpc
import inference_pb2 as pb
from calls import Answer, StepStream, all_at_once, chat, percentile
from harness import LARGE_MESSAGES, TIGHT_WINDOW

NUMBERED = "".join(f'piece "{number:07d} "\n' for number in range(5000))
NUMBERED_TEXT = b"".join(b"%07d " % number for number in range(5000))


def parked(server) -> float:
    return server.until_metric("sluice_parked_sequences", lambda count: count == 1)


def test_without_credit_nothing_is_sent_and_with_it_not_a_byte_is_missing(scripted):
    server = scripted(script=NUMBERED)
    gateway = StepStream(server.replica_stub())
    gateway.start(7, chat("count"), deltas=3)
    received, offset, messages = b"", 0, 0
    status = None
    for item in gateway.items():
        assert item.id == 7
        if item.response.delta:
            assert item.response.offset == offset
            received += item.response.delta
            offset += len(item.response.delta)
            messages += 1
        if item.HasField("status"):
            status = item.status
            break
        if messages == 3:
            parked(server)
            generated = server.metric("sluice_generated_tokens_total")
            assert generated < 5000, "a parked sequence goes on"
            gateway.send(credits=[pb.Credit(id=7, deltas=1 << 20, bytes=1 << 30)])
    assert received == NUMBERED_TEXT and status.code == 0
    assert server.metric("sluice_parkings_total") >= 1
    gateway.close()


def test_a_reader_with_a_small_window_parks_and_gets_every_byte_when_it_reads_again(scripted):
    server = scripted(script=NUMBERED)
    call = server.stub(TIGHT_WINDOW).Generate(chat("count"))
    parked(server)
    before = server.metric("sluice_generated_tokens_total")
    assert before < 5000
    answer = Answer.of(call)
    assert answer.text == NUMBERED_TEXT
    assert answer.last.timings.parked_us > 0


def test_past_the_park_limit_the_request_ends_with_an_error_that_says_why(scripted):
    server = scripted("--park-limit-ms", "300", script='piece "0123456789abcdef"\nloop\n')
    gateway = StepStream(server.replica_stub())
    gateway.start(1, chat("go on"), deltas=2)
    statuses = (item.status for item in gateway.items() if item.HasField("status"))
    status = next(statuses)
    assert status.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert "not read" in status.message and "--park-limit-ms" in status.message
    gateway.close()
    server.until_idle()
    assert server.metric("sluice_requests_ended_total", how="not_read") == 1


def test_thirty_one_others_do_not_notice_and_memory_is_flat(scripted):
    server = scripted(step_ms=20)
    stub = server.stub(LARGE_MESSAGES)

    def readers() -> list[float]:
        answers = all_at_once([lambda: Answer.of(stub.Generate(chat("hi", max_tokens=150))) for _ in range(31)])
        return [gap for answer in answers for gap in answer.gaps()]

    quiet = readers()
    slow = server.stub(TIGHT_WINDOW).Generate(chat("hi"))
    parked(server)
    rss = server.rss()
    busy = readers()
    assert server.metric("sluice_parked_sequences") == 1
    assert percentile(busy, 0.5) < 1.25 * percentile(quiet, 0.5)
    assert percentile(busy, 0.99) < 1.5 * percentile(quiet, 0.99)
    assert server.rss() < rss + (2 << 20)
    slow.cancel()
    server.until_idle()


def test_a_hundred_readers_that_stopped_cost_a_bounded_amount_of_memory(scripted):
    server = scripted(script='piece "' + "x" * 1000 + '"\nloop\n')
    warm = Answer.of(server.stub().Generate(chat("hi", max_tokens=1000)))
    assert len(warm.text) == 1_000_000
    rss = server.rss()
    stub = server.stub(TIGHT_WINDOW)
    calls = [stub.Generate(chat("hi")) for _ in range(100)]
    server.until_metric("sluice_parked_sequences", lambda count: count == 100)
    assert (server.rss() - rss) / 100 < 128 << 10
    for call in calls:
        call.cancel()
    server.until_idle()
