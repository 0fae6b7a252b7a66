"""A gateway that is stopped, alone and in `up`: what load balancers, new requests and running answers see of it. Scripted engine."""

import json
import signal
import time

import pytest
from harness import until
from raw_http import ask, chat, chat_bytes, open_chat, read_all, read_until, replies_in

ENDLESS = 'piece "token "\nloop\n'
DRAIN = ["--engine", "scripted", "--warm-up", "false", "--step-ms", "20", "--access-log", "access"]


def draining(start, command, tmp_path, *flags):
    """A gateway whose one stream never ends, and its process in a drain with this grace."""
    script = tmp_path / "endless"
    script.write_text(ENDLESS)
    if command == "up":
        server = start(*DRAIN, "--script", str(script), *flags, command="up")
    else:
        replica = start(*DRAIN[:6], "--script", str(script))
        server = start("--replica", replica.address, "--access-log", "access", *flags, command="gateway")
        server.until_metric("sluice_gateway_replica_up", lambda up: up == 1)
    running = open_chat(server, stream=True)
    assert b"token" in read_until(running, b"token")
    return server, running


def begin_drain(server) -> None:
    server.process.send_signal(signal.SIGTERM)
    until(lambda: "gateway: draining" in server.log(), "a word about the drain")


def running_requests(server) -> float:
    """Without the request that asks."""
    name = "sluice_gateway_running_requests"
    return server.metric(name) if server.metrics_address != "off" and not server.address else server.gateway_metric(name) - 1


def access_lines(server) -> list[dict]:
    return [json.loads(line) for line in (server.log_file.parent / "access").read_text().splitlines()]


@pytest.mark.parametrize("command", ["gateway", "up"])
def test_past_its_grace_a_drain_ends_streams_with_an_error_event_and_the_rest_with_503(start, tmp_path, command):
    server, running = draining(start, command, tmp_path, "--http-drain-grace-ms", "1500")
    whole = open_chat(server)
    until(lambda: running_requests(server) >= 2, "both under way")
    server.process.send_signal(signal.SIGTERM)
    begin = time.monotonic()
    body = read_all(running)
    assert 1 < time.monotonic() - begin < 10, "it went on for the grace, and no longer"
    assert body.count(b"token") > 20 and b"[DONE]" not in body and body.endswith(b"\r\n0\r\n\r\n")
    error = json.loads(body.split(b"data: ")[-1].split(b"\n\n")[0])["error"]
    assert error["code"] == "draining" and error["type"] == "server_error"
    (reply,) = replies_in(read_all(whole))
    assert reply.status == 503 and reply.error["code"] == "draining" and reply.headers["Connection"] == "close"
    assert server.process.wait(10) == 0
    ended = {line["stream"]: (line["status"], line["code"]) for line in access_lines(server) if line["method"] == "POST"}
    assert ended == {True: (200, "UNAVAILABLE"), False: (503, "UNAVAILABLE")}


@pytest.mark.parametrize("command", ["gateway", "up"])
def test_a_load_balancer_sees_a_drain_and_new_requests_are_refused_by_its_name(start, tmp_path, command):
    server, running = draining(start, command, tmp_path, "--http-drain-grace-ms", "20000")
    begin_drain(server)
    assert ask(server, "GET", "/readyz").status == 503
    assert ask(server, "GET", "/health").status == 200
    with server.connect() as connection:
        connection.sendall(chat_bytes())
        (reply,) = replies_in(read_all(connection))
    assert reply.status == 503 and reply.error["code"] == "draining" and reply.headers["Retry-After"]
    assert reply.headers["Connection"] == "close"
    assert b"token" in running.recv(65536), "what runs goes on"
    running.close()
    assert server.process.wait(10) == 0
    assert (503, "UNAVAILABLE") in [(line["status"], line.get("code")) for line in access_lines(server)]


def test_a_drain_is_to_be_seen_for_its_notice_even_if_nothing_runs(scripted, gateway):
    edge = gateway(scripted(), flags=["--http-drain-notice-ms", "1000"])
    begin_drain(edge)
    assert ask(edge, "GET", "/readyz").status == 503
    assert chat(edge).error["code"] == "draining"
    begin = time.monotonic()
    assert edge.process.wait(10) == 0 and time.monotonic() - begin > 0.5


def test_a_second_signal_ends_the_grace_with_an_error_event(start, tmp_path):
    server, running = draining(start, "gateway", tmp_path)
    begin_drain(server)
    server.process.send_signal(signal.SIGTERM)
    assert b'"code":"draining"' in read_all(running)
    assert server.process.wait(10) == 0
