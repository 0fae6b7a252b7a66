"""Who waits gets its turn: clients share the slots, and a turn that would come too late is refused at once."""

import concurrent.futures
import threading
import time

import grpc
from calls import Answer, chat, error_of

MANY = 30


def finished(server) -> float:
    return server.metric("sluice_requests_ended_total", how="finished")


def overtaken(server, many, one) -> float:
    """How many of `many` calls, all waiting for one slot, were finished when `one` was."""
    with concurrent.futures.ThreadPoolExecutor(MANY) as pool:
        crowd = [pool.submit(many) for _ in range(MANY)]
        server.until_metric("sluice_queued_requests", lambda waiting: waiting >= MANY - 5)
        one()
        done = finished(server)
        for call in crowd:
            call.result()
    return done


def test_a_key_with_one_request_does_not_wait_for_all_of_another_key(scripted, gateway, keys):
    many, one = keys("many"), keys("one")
    replica = scripted("--max-sequences", "1", step_ms=10)
    edge = gateway(replica, flags=["--api-keys", str(keys.file)])

    def ask(key):
        client = edge.openai(key)
        return lambda: client.completions.create(model="local", prompt="go", max_tokens=5)

    assert overtaken(replica, ask(many), ask(one)) < MANY / 2


def test_sessions_take_turns_where_there_are_no_keys(scripted):
    replica = scripted("--max-sequences", "1", step_ms=10)

    def ask(session):
        stub = replica.stub()
        return lambda: Answer.of(stub.Generate(chat("go", max_tokens=5, session_id=session)))

    assert overtaken(replica, ask("many"), ask("one")) < MANY / 2
    assert overtaken(replica, ask("same"), ask("same")) > MANY + MANY / 2


def test_a_turn_that_would_come_after_the_deadline_is_refused_at_once(scripted):
    replica = scripted("--max-sequences", "1", step_ms=20)
    stub = replica.stub()
    threads = [threading.Thread(target=lambda: Answer.of(stub.Generate(chat("go", max_tokens=10)))) for _ in range(MANY)]
    for thread in threads:
        thread.start()
    replica.until_metric("sluice_requests_ended_total", lambda done: done >= 10, how="finished")
    begin = time.monotonic()
    refused = error_of(lambda: stub.Generate(chat("go", max_tokens=1), timeout=1.5))
    assert refused.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and "after its deadline" in refused.details()
    assert time.monotonic() - begin < 1
    wait = int(dict(refused.trailing_metadata())["retry-after-ms"])
    assert 1500 < wait < 10_000
    assert Answer.of(stub.Generate(chat("go", max_tokens=1), timeout=30)).text
    for thread in threads:
        thread.join()


