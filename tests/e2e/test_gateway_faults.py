"""Replicas that die, drain and come back; clients that go, or don't read: what a gateway makes of it. Scripted engine."""

import concurrent.futures
import json
import os
import signal
import time

import pytest
from harness import until
from raw_http import chat, head, open_chat, read_until

ENDLESS = 'piece "token "\nloop\n'


def parked_beside_a_whole_answer(replica, edge) -> bool:
    """Whether the replica's parked sequence makes nothing while another client gets its five tokens from beginning to end."""
    before = replica.metrics()
    assert chat(edge, max_tokens=5).status == 200
    after = replica.metrics()
    made = after.total("sluice_generated_tokens_total") - before.total("sluice_generated_tokens_total")
    return made == 5 and all(look.total("sluice_parked_sequences") == 1 for look in (before, after))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("phase", ["queued", "prefill", "decode"])
def test_a_client_that_goes_frees_the_slot_at_once(scripted, gateway, phase, stream):
    script = {"queued": "hang\n", "prefill": 'prefill 3600s\npiece "never"\n', "decode": 'piece "token " 5ms\nloop\n'}[phase]
    replica = scripted("--max-sequences", "1", script=script)
    edge = gateway(replica)
    first = open_chat(edge, stream=stream)
    replica.until_metric("sluice_running_sequences", lambda running: running == 1)
    leaving = first
    if phase == "queued":
        leaving = open_chat(edge, stream=stream)
        replica.until_metric("sluice_queued_requests", lambda queued: queued == 1)
    ended = replica.metric("sluice_requests_ended_total", how="cancelled")
    leaving.close()
    replica.until_metric("sluice_requests_ended_total", lambda now: now == ended + 1, how="cancelled", seconds=2)
    first.close()
    until(lambda: '"status":499,"code":"CANCELLED"' in edge.log(), "a line that says so in the access log")
    replica.until_idle()
    edge.until_metric("sluice_gateway_running_requests", lambda running: running == 0)


def test_a_reader_that_stops_parks_its_sequence_and_loses_nothing(scripted, gateway):
    replica = scripted(script='piece "0123456789abcdef"\nloop\n')
    edge = gateway(replica)
    connection = open_chat(edge, stream=True, max_tokens=40_000)
    until(lambda: parked_beside_a_whole_answer(replica, edge), "a parked sequence", 30)
    before = (edge.rss(), replica.rss())

    def stays() -> bool:
        """For long: the kernel's buffers grow at first, and let it go on each time."""
        return all(parked_beside_a_whole_answer(replica, edge) for _ in range(30))

    until(stays, "a sequence that stays parked, every buffer on the way being full", 60)
    assert edge.rss() < before[0] + 4_000_000 and replica.rss() < before[1] + 4_000_000
    read = read_until(connection, b"data: [DONE]")
    frames = [line[6:] for line in read.split(b"\n") if line.startswith(b"data: {")]
    text = "".join(json.loads(frame)["choices"][0]["delta"].get("content", "") for frame in frames)
    assert text == "0123456789abcdef" * 40_000
    connection.close()


def test_a_killed_replica_costs_only_what_was_under_way(scripted, gateway):
    replicas = [scripted(script=ENDLESS, step_ms=20) for _ in range(2)]
    edge = gateway(*replicas, flags=["--policy", "round-robin"])
    streams = [open_chat(edge, stream=True, max_tokens=300) for _ in range(20)]
    for stream in streams:
        assert b"token" in read_until(stream, b"token")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        whole = [pool.submit(chat, edge, max_tokens=150) for _ in range(20)]
        until(lambda: sum(r.metric("sluice_running_sequences") for r in replicas) == 40, "all of them running")
        os.kill(replicas[0].pid, signal.SIGKILL)
        replicas[0].process.wait()
        assert all(answer.result().status == 200 for answer in whole), "nothing of these had been sent"
    ends = [read_until(stream, b"0\r\n\r\n") for stream in streams]
    assert all(b'"code":"replica_lost"' in end for end in ends if b'data: {"error":' in end)
    done = [end for end in ends if b"data: [DONE]" in end]
    failed = [end for end in ends if b'data: {"error":' in end]
    assert len(done) == 10 and len(failed) == 10 and not any(b"[DONE]" in end for end in failed)
    assert chat(edge, max_tokens=2).status == 200
    replicas[0].process.returncode = 0  # its end was ours


def test_a_replica_is_taken_back_when_it_returns(scripted, gateway):
    replica = scripted(script=ENDLESS)
    edge = gateway(replica, flags=["--eject-time-ms", "100"])
    os.kill(replica.pid, signal.SIGKILL)
    replica.process.wait()
    edge.until_metric("sluice_gateway_replica_up", lambda up: up == 0)
    refused = chat(edge, max_tokens=2)
    assert refused.status == 503 and refused.headers["Retry-After"] and refused.error["code"]
    for _ in range(10):
        chat(edge, max_tokens=2)
    again = scripted("--listen", replica.address, script=ENDLESS)
    edge.until_metric("sluice_gateway_replica_up", lambda up: up == 1)
    until(lambda: chat(edge, max_tokens=2).status == 200, "answers from the one that returned")
    until(lambda: pool_lines(edge)[-1].endswith("takes requests"), "a word about its return")
    came, *others, returned = pool_lines(edge)
    assert all(replica.address in line for line in (came, *others, returned)) and came.endswith("takes requests")
    assert sum("takes no requests any more: " in line for line in others) == 1 and len(others) <= 3
    replica.process.returncode = 0
    assert again.alive()


def pool_lines(edge) -> list[str]:
    """What the gateway's log says of its replicas."""
    return [line for line in edge.log().splitlines() if " pool: " in line]


def test_a_replica_that_cant_be_reached_is_said_once_with_its_address(start, scripted):
    edge = start("--replica", "127.0.0.1:1", "--replica", scripted().address, command="gateway")
    edge.until_metric("sluice_gateway_replica_up", lambda up: up == 1)
    until(lambda: any("127.0.0.1:1" in line for line in pool_lines(edge)), "a word about the other")
    for _ in range(10):
        assert chat(edge, max_tokens=1).status == 200
    (line,) = (line for line in pool_lines(edge) if "127.0.0.1:1 " in line)
    assert " warning " in line and "can't be used yet" in line and "refused" in line


def test_a_gateway_counts_what_its_log_lost_and_what_its_process_takes(start, scripted):
    edge = start("--replica", scripted().address, command="gateway")
    metrics = edge.metrics()
    assert metrics["sluice_log_lost_total"] == 0 and metrics["process_resident_memory_bytes"] > 1_000_000
    assert metrics.total("sluice_build_info") == 1


def test_a_drained_replica_costs_nobody_anything(scripted, gateway):
    replicas = [scripted(script=ENDLESS, step_ms=5) for _ in range(2)]
    edge = gateway(*replicas, flags=["--policy", "round-robin"])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(chat, edge, max_tokens=20) for _ in range(100)]
        until(lambda: replicas[0].metric("sluice_running_sequences") > 0, "work on the first")
        replicas[0].process.send_signal(signal.SIGTERM)
        assert all(answer.result().status == 200 for answer in answers)
    assert replicas[0].process.wait(20) == 0


def test_a_drained_gateway_finishes_what_runs(scripted, gateway):
    edge = gateway(scripted(script=ENDLESS, step_ms=5))
    running = open_chat(edge, stream=True, max_tokens=100)
    read_until(running, b"token")
    idle = edge.connect()
    idle.sendall(head("GET", "/health"))
    read_until(idle, b"}")
    edge.process.send_signal(signal.SIGTERM)
    assert idle.recv(10) == b"", "an idle connection is closed"
    assert b"data: [DONE]" in read_until(running, b"data: [DONE]")
    assert edge.process.wait(20) == 0


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_engine_that_fails_after_five_tokens(scripted, gateway, stream):
    edge = gateway(scripted(script='piece "a"\n' * 5 + 'fail "broken"\n', step_ms=50))
    reply = chat(edge, stream=stream)
    if stream:
        assert reply.status == 200 and b'data: {"error":' in reply.body and b"[DONE]" not in reply.body
    else:
        assert reply.status == 500 and reply.error["type"] == "server_error"
        assert reply.headers["x-should-retry"] == "false"


def test_a_full_queue_is_429_with_a_time_to_come_back(scripted, gateway):
    replica = scripted("--max-sequences", "1", "--max-queued-requests", "1", script="hang\n")
    edge = gateway(replica)
    held = [open_chat(edge)]
    replica.until_metric("sluice_running_sequences", lambda running: running == 1)
    held.append(open_chat(edge))
    replica.until_metric("sluice_queued_requests", lambda queued: queued == 1)
    refused = chat(edge)
    assert refused.status == 429 and int(refused.headers["retry-after-ms"]) > 0 and int(refused.headers["Retry-After"]) > 0
    assert refused.error["type"] == "rate_limit_error"
    for connection in held:
        connection.close()
    replica.until_idle()


def test_a_silent_stream_gets_its_status_and_comments(scripted, gateway):
    edge = gateway(scripted(script="hang\n"), flags=["--commit-after-ms", "100", "--sse-keepalive-ms", "100"])
    connection = open_chat(edge, stream=True)
    read = read_until(connection, b": keepalive\n")
    while read.count(b": keepalive\n") < 3:
        read += connection.recv(4096)
    assert read.startswith(b"HTTP/1.1 200") and b"id:" not in read.split(b"\r\n\r\n", 1)[1] and b"\n\n" not in read
    connection.close()


def test_a_deadline_is_504_and_ends_the_work(scripted, gateway):
    replica = scripted(script="hang\n")
    edge = gateway(replica)
    begin = time.monotonic()
    assert chat(edge, {"X-Request-Timeout": "0.2"}).status == 504 and time.monotonic() - begin < 5
    replica.until_idle()


def test_thousands_of_streams_share_one_replica(scripted, gateway):
    replica = scripted(script='piece "x"\nhang\n')
    edge = gateway(replica)
    edge_before = edge.rss()
    connections = [open_chat(edge, stream=True) for _ in range(5_000)]
    edge.until_metric("sluice_gateway_open_streams", lambda streams: streams == 5_000, seconds=60)
    replica.until_metric("sluice_running_sequences", lambda running: running == 5_000, seconds=60)
    assert (edge.rss() - edge_before) / 5_000 < 20_000
    for connection in connections:
        connection.close()
    replica.until_idle(30)
    edge.until_metric("sluice_gateway_running_requests", lambda running: running == 0, seconds=30)
