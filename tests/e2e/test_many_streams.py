"""Ten thousand streams at once on one connection, and what each costs."""

import resource

from calls import StepStream, chat
from harness import until

STREAMS = 10_000


def test_ten_thousand_open_streams_on_one_connection(scripted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= soft
    server = scripted("--max-sequences", "20000", "--max-queued-requests", "20000", script="hang\n")
    stub = server.stub()
    before = server.rss()
    calls = [stub.Generate(chat("hi")) for _ in range(STREAMS)]
    server.until_metric("sluice_running_sequences", lambda running: running == STREAMS, 60)
    each = (server.rss() - before) / STREAMS
    print(f"{each / 1000:.1f} KB a stream over Generate")
    assert each < 20_000
    for call in calls:
        call.cancel()
    server.until_idle(60)


def test_ten_thousand_requests_on_one_step_stream(scripted):
    server = scripted("--max-sequences", "20000", "--max-queued-requests", "20000", script="hang\n")
    gateway = StepStream(server.replica_stub())
    before = server.rss()
    for number in range(STREAMS):
        gateway.start(number, chat("hi"))
    server.until_metric("sluice_running_sequences", lambda running: running == STREAMS, 60)
    each = (server.rss() - before) / STREAMS
    print(f"{each / 1000:.1f} KB a request over Attach")
    assert each < 4_000
    gateway.close()
    server.until_idle(60)
    until(lambda: server.metric("sluice_attached_requests") == 0, "no request left on the step stream")
