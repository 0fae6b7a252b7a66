"""Streams as strict clients read them: roles, finishes, usage, characters, stops, errors, comments, and clients that go."""

import json
import os
import signal
import socket
import time

import openai
import pytest
from calls import Answer, all_at_once
from calls import chat as grpc_chat
from harness import until
from raw_http import QUESTION, chat, chat_bytes, head, open_chat, post, read_all, replies_in

TEXT_SOURCES = {"/v1/chat/completions": {"messages": QUESTION}, "/v1/completions": {"prompt": "go"}, "/v1/responses": {"input": "go"}}


def chunks_of(reply) -> list[dict]:
    """The chunks of a chat or completion that ended well."""
    *events, last = reply.events()
    assert last == "[DONE]" and "[DONE]" not in events
    return [json.loads(event) for event in events]


def text_in(chunk: dict) -> str:
    return "".join(choice.get("text", choice.get("delta", {}).get("content")) or "" for choice in chunk["choices"])


def streamed(server, path: str = "/v1/chat/completions", **fields):
    return post(server, path, {"model": "local", "stream": True, **TEXT_SOURCES[path], **fields})


SPLIT = r"""piece "\xF0\x9F" 5ms
piece "\x8C\x8D" 5ms
piece "\xD1" 5ms
piece "\x8C\xE4" 5ms
piece "\xBD" 5ms
piece "\xA0" 5ms
piece "\xFF" 5ms
piece "a" 5ms
piece "\x0D\n\xE2\x80\xA8" 5ms
piece "data: [DONE]\n\n" 5ms
piece "\xE4" 5ms
"""
SPLIT_TEXT = "🌍ь你\ufffda\r\n\u2028data: [DONE]\n\n\ufffd"


@pytest.mark.parametrize("path", TEXT_SOURCES)
def test_a_character_that_tokens_split_comes_whole(scripted, gateway, path):
    edge = gateway(scripted(script=SPLIT))
    whole = post(edge, path, {"model": "local", **TEXT_SOURCES[path]}).json
    reply = streamed(edge, path)
    if path == "/v1/responses":
        assert whole["output"][0]["content"][0]["text"] == SPLIT_TEXT
        events = [json.loads(line.removeprefix("data: ")) for line in reply.body.decode().split("\n") if line.startswith("data: ")]
        assert "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta") == SPLIT_TEXT
        return
    choice = whole["choices"][0]
    assert choice.get("text", choice.get("message", {}).get("content")) == SPLIT_TEXT
    assert "".join(text_in(chunk) for chunk in chunks_of(reply)) == SPLIT_TEXT


@pytest.mark.parametrize("script", ["", 'piece "a"\n', 'piece "a"\npiece "b"\nloop\n'], ids=["no token", "one token", "endless"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
@pytest.mark.parametrize("n", [1, 2])
def test_each_choice_has_one_role_and_one_finish(scripted, gateway, path, script, n):
    edge = gateway(scripted(script=script))
    finish = "length" if "loop" in script else "stop"
    for limit in (1, 3):
        chunks = chunks_of(streamed(edge, path, n=n, max_tokens=limit))
        assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
        assert all("usage" not in chunk and "error" not in chunk and len(chunk["choices"]) == 1 for chunk in chunks)
        for index in range(n):
            choices = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
            ended = "length" if script == 'piece "a"\n' and limit == 1 else finish
            assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + [ended]
            if path == "/v1/chat/completions":
                assert choices[0]["delta"] == {"role": "assistant", "content": ""} and choices[-1]["delta"] == {}
                assert all(choice["delta"].keys() == {"content"} and choice["delta"]["content"] for choice in choices[1:-1])


@pytest.mark.parametrize("fields", [{"max_tokens": 2}, {"stop": "token"}, {}], ids=["cut", "stopped", "ended"])
def test_usage_comes_once_and_last_and_only_when_asked_for(edge, fields):
    whole = chat(edge, **fields).json["usage"]
    for options in (None, {}, {"include_usage": False}, {"include_usage": None}):
        assert all("usage" not in chunk and chunk["choices"] for chunk in chunks_of(streamed(edge, stream_options=options, **fields)))
    *chunks, last = chunks_of(streamed(edge, stream_options={"include_usage": True}, **fields))
    assert last["choices"] == [] and all(chunk["usage"] is None and chunk["choices"] for chunk in chunks)
    assert {name: last["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        name: whole[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")
    }


def test_openais_client_puts_an_empty_answer_together(scripted, gateway):
    client = gateway(scripted(script="")).openai()
    with client.chat.completions.stream(model="local", messages=QUESTION, n=2) as stream:
        choices = stream.get_final_completion().choices
    assert [(choice.message.role, choice.message.content, choice.finish_reason) for choice in choices] == [("assistant", "", "stop")] * 2


STORY = ["one", " two", " three", " fo", "ur f", "ive s", "ix", " seven", "\n", "\n", "é", " one", " two", "!", " eight", " nine"]
STOPS = [["four five six"], ["ur five"], ["five si", "six seven"], [" seven\n"], ["\n\n"], ["é"], ["two three four five six seven eight"], ["one two!"],
         ["e", "x"], ["one"], [" "], ["nine"], ["nine."], ["ten", "fo"]]  # fmt: skip


def cut(text: str, stops: list[str]) -> str:
    """What is left of a text that ends where the first of these stop strings is complete."""
    ends = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    if not ends:
        return text
    first = min(end for end, _ in ends)
    return text[: min(begin for end, begin in ends if end == first)]


@pytest.mark.parametrize("stops", STOPS, ids=str)
def test_a_stop_string_leaks_nothing_however_tokens_cut_it(scripted, gateway, stops):
    replica = scripted(script="".join(f"piece {json.dumps(piece, ensure_ascii=False)}\n" for piece in STORY))
    edge, stub = gateway(replica), replica.stub()
    for limit in range(1, len(STORY) + 2):
        fields = {"max_tokens": limit, "stop": stops}
        expected = cut("".join(STORY[:limit]), stops)
        choice = chat(edge, **fields).json["choices"][0]
        chunks = chunks_of(streamed(edge, **fields))
        raw = Answer.of(stub.Generate(grpc_chat("go", **fields)))
        texts = (choice["message"]["content"], "".join(text_in(chunk) for chunk in chunks), raw.text.decode())
        assert texts == (expected,) * 3, f"at max_tokens {limit}"
        stopped = expected != "".join(STORY[:limit]) or limit > len(STORY)
        assert choice["finish_reason"] == chunks[-1]["choices"][0]["finish_reason"] == ("stop" if stopped else "length")
    whole = chat(edge, stop=stops).json["usage"]["completion_tokens"]
    assert whole <= len(STORY) + 1 and replica.metric("sluice_slots_used") == 0


@pytest.mark.parametrize("stops", [[" is"], ["s Par", "France is"], ["capital", "."]], ids=str)
def test_with_a_model_whole_streamed_and_grpc_stop_alike(up, stops):
    question, client, stub = "Name the capital city of France.", up.openai(), up.stub()
    asked = {"model": "local", "messages": [{"role": "user", "content": question}], "temperature": 0}
    full = client.chat.completions.create(**asked, max_tokens=16).choices[0].message.content
    stopped = 0
    for limit in range(1, 41):
        fields = {"max_tokens": limit, "stop": stops}
        whole = client.chat.completions.create(**asked, **fields).choices[0]
        stream = client.chat.completions.create(**asked, **fields, stream=True)
        joined = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        raw = Answer.of(stub.Generate(grpc_chat(question, temperature=0, **fields))).text.decode()
        assert whole.message.content == joined == raw, f"at max_tokens {limit}"
        assert full.startswith(joined) and not any(stop in joined for stop in stops)
        stopped += whole.finish_reason == "stop"
        if stopped == 2:
            break  # from here on all are alike
    assert joined == cut(full, stops) and stopped == 2


def test_responses_send_every_event_in_its_order(edge):
    client = edge.openai()
    for limit, status in ((2, "incomplete"), (50, "completed")):
        with client.responses.stream(model="local", input="go", max_output_tokens=limit) as stream:
            events = list(stream)
        final = events[-1].response
        types = [event.type for event in events]
        texts = [kind for kind in types if kind == "response.output_text.delta"]
        assert texts and types == [
            "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", *texts,
            "response.output_text.done", "response.content_part.done", "response.output_item.done", f"response.{status}",
        ]  # fmt: skip
        assert [event.sequence_number for event in events] == list(range(len(events)))
        whole = client.responses.create(model="local", input="go", max_output_tokens=limit)
        assert (final.status, final.output_text, final.usage, final.incomplete_details) == (
            whole.status, whole.output_text, whole.usage, whole.incomplete_details,
        )  # fmt: skip
        assert final.status == status and (final.incomplete_details is None) == (status == "completed")


FAILING = 'piece "a" 20ms\n' * 5 + 'fail "broken"\n'


def test_an_error_in_a_stream_is_raised_by_openais_client(scripted, gateway):
    edge = gateway(scripted(script=FAILING))
    client, heard = edge.openai(), ""
    with pytest.raises(openai.APIError) as failed:
        for chunk in client.chat.completions.create(model="local", messages=QUESTION, stream=True):
            heard += chunk.choices[0].delta.content or ""
            assert chunk.choices[0].finish_reason is None
    assert "aaaaa".startswith(heard) and heard and failed.value.body["type"] == "server_error"
    assert edge.metric("sluice_gateway_streams_cut_total") == 1


def test_responses_end_a_failed_stream_with_an_event_of_that_name(scripted, gateway):
    client = gateway(scripted(script=FAILING)).openai()
    events = list(client.responses.create(model="local", input="go", stream=True))
    assert events[-1].type == "response.failed" and events[-1].response.status == "failed" and events[-1].response.error
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("path", TEXT_SOURCES)
def test_what_fails_before_its_first_token_has_its_status(scripted, gateway, path):
    edge = gateway(scripted(script='fail "broken"\n'))
    reply = streamed(edge, path)
    assert reply.status == 500 and reply.error["type"] == "server_error"


def test_a_silent_prefill_is_no_obstacle_to_openais_client(scripted, gateway):
    edge = gateway(scripted(script='prefill 400ms\npiece "a" 150ms\npiece "b" 150ms\n'), flags=["--commit-after-ms", "50", "--sse-keepalive-ms", "20"])
    chunks = list(edge.openai().chat.completions.create(model="local", messages=QUESTION, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "ab"
    events = list(edge.openai().responses.create(model="local", input="go", stream=True))
    assert events[-1].type == "response.completed"
    assert edge.metric("sluice_gateway_keepalives_total") > 5


def test_a_comment_never_stands_within_an_event(scripted, gateway):
    edge = gateway(scripted(script='piece "a" 60ms\nloop\n'), flags=["--commit-after-ms", "1", "--sse-keepalive-ms", "10"])
    reply = streamed(edge, max_tokens=5)
    lines = reply.body.decode().split("\n")
    assert lines.count(": keepalive") > 5 and not any(line.startswith(("id:", "event:", "retry:")) or line == "data: " for line in lines)
    for before, line, after in zip(lines, lines[1:], lines[2:], strict=False):
        if line == ": keepalive":
            assert before in ("", ": keepalive") and after != "", "between events, and no event of its own"
    assert "".join(text_in(chunk) for chunk in chunks_of(reply)) == "aaaaa"


def test_tokens_come_one_by_one_and_uncompressed(scripted, gateway):
    edge = gateway(scripted(script='piece "a" 250ms\nloop\n'))
    with open_chat(edge, {"Accept-Encoding": "gzip, br", "Connection": "close"}, stream=True, max_tokens=4) as connection:
        read, times = b"", []
        while piece := connection.recv(65536):
            read += piece
            times += [time.monotonic()] * piece.count(b'"content":"a"')
    (reply,) = replies_in(read)
    assert reply.headers["x-accel-buffering"] == "no" and "no-cache" in reply.headers["cache-control"] and "content-encoding" not in reply.headers
    gaps = [after - before for before, after in zip(times, times[1:], strict=False)]
    assert len(gaps) == 3 and sum(gaps) > 0.5, "not in one lump"


def test_a_stream_over_http_1_0_is_ended_by_closing(edge):
    with edge.connect() as connection:
        connection.sendall(chat_bytes({"Connection": "keep-alive"}, "HTTP/1.0", stream=True))
        (reply,) = replies_in(read_all(connection))
    assert reply.headers["transfer-encoding"] is None and chunks_of(reply)


def test_after_a_stream_the_connection_serves_on(edge):
    with edge.connect() as connection:
        connection.sendall(chat_bytes(stream=True) * 3 + head("GET", "/health", {"Connection": "close"}))
        answers = replies_in(read_all(connection))
    assert [answer.status for answer in answers] == [200] * 4 and answers[3].json == {"status": "ok"}
    assert all(chunks_of(answer) for answer in answers[:3])


def running_chat(edge, replica, behind: bytes = b"", running: int = 1, **fields) -> socket.socket:
    """A chat that has its slot, with what its client sent behind it."""
    connection = edge.connect()
    connection.sendall(chat_bytes(**fields) + behind)
    replica.until_metric("sluice_running_sequences", lambda now: now == running)
    return connection


@pytest.mark.parametrize("behind", [b"", head("GET", "/health"), b"GET /" + b"a" * 200_000], ids=["nothing", "a request", "more than is read ahead"])
def test_a_client_that_goes_is_noticed_whatever_it_sent_behind(scripted, gateway, behind):
    replica = scripted(script="hang\n")
    edge = gateway(replica)
    connection = running_chat(edge, replica, behind)
    until(lambda: edge.metric("sluice_http_connections") == 1, "the connection")
    connection.close()
    replica.until_metric("sluice_running_sequences", lambda now: now == 0, seconds=5)


def test_a_client_that_resets_in_a_silent_prefill_frees_its_slot(scripted, gateway):
    replica = scripted(script='prefill 3600s\npiece "never"\n')
    edge = gateway(replica)
    connection = running_chat(edge, replica, stream=True)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()
    replica.until_metric("sluice_running_sequences", lambda now: now == 0, seconds=5)


def test_a_client_that_vanishes_is_looked_for(scripted, gateway):
    """Its kernel says nothing any more: only probes of an idle connection can tell."""
    replica = scripted(script="hang\n")
    edge = gateway(replica)
    with running_chat(edge, replica) as connection:
        own, peer = (f"{host[1]:04X}" for host in (connection.getpeername(), connection.getsockname()))
        sockets = [line.split() for line in open("/proc/net/tcp").read().splitlines()[1:]]
        timers = [line[5].split(":")[0] for line in sockets if line[1].endswith(f":{own}") and line[2].endswith(f":{peer}")]
        assert timers == ["02"], "the keepalive timer of the server's end runs"


def test_half_of_many_clients_go_and_the_others_get_all(scripted, gateway):
    replica = scripted(script='piece "token " 5ms\nloop\n')
    edge = gateway(replica)
    leaving = [running_chat(edge, replica, running=count + 1, stream=count % 2 == 0, max_tokens=100_000) for count in range(10)]

    def whole() -> int:
        return chat(edge, max_tokens=50).json["usage"]["completion_tokens"]

    def leave() -> int:
        for connection in leaving:
            connection.close()
        return 50

    assert all_at_once([whole] * 10 + [leave]) == [50] * 11
    replica.until_idle(5)
    until(lambda: edge.metric("sluice_gateway_running_requests") == 0, "nothing left at the gateway")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_deadline_holds_though_the_replica_is_frozen(scripted, gateway, stream):
    replica = scripted(script="hang\n")
    edge = gateway(replica, flags=["--commit-after-ms", "100"] if stream else [])
    held = [running_chat(edge, replica, running=count) for count in range(1, 9)]  # so that every I/O thread has its way to the replica
    os.kill(replica.pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        reply = chat(edge, {"X-Request-Timeout": "0.5"}, stream=stream)
        assert time.monotonic() - begin < 4
    finally:
        os.kill(replica.pid, signal.SIGCONT)
        for connection in held:
            connection.close()
    if stream:
        assert json.loads(reply.events()[-1])["error"]["type"] == "timeout_error"
    else:
        assert reply.status == 504 and reply.error["type"] == "timeout_error"
    replica.until_idle()


def test_a_deadline_in_the_queue_computes_nothing(scripted, gateway):
    replica = scripted("--max-sequences", "1", script="hang\n")
    edge = gateway(replica)
    with running_chat(edge, replica):
        before = replica.metric("sluice_prompt_tokens_total")
        answers = all_at_once([lambda: chat(edge, {"X-Request-Timeout": "0.3"}) for _ in range(20)])
        assert [answer.status for answer in answers] == [504] * 20
        replica.until_metric("sluice_queued_requests", lambda queued: queued == 0)
        assert replica.metric("sluice_prompt_tokens_total") == before


@pytest.mark.parametrize("given", ["0", "-1", "x", "", "1s", "nan", "0x1"])
def test_a_time_that_is_none_is_400(edge, given):
    assert chat(edge, {"X-Request-Timeout": given}).status == 400


@pytest.mark.parametrize("given", ["inf", "1e300", "86400", "3600.5"])
def test_a_long_time_is_taken(edge, given):
    assert chat(edge, {"X-Request-Timeout": given}).status == 200


def test_what_a_replica_sends_late_of_a_gone_client_reaches_nobody(scripted, gateway):
    """Connections and step streams are used again: each answer is its own request's, to the byte."""
    replica = scripted(script="echo\n")
    edge = gateway(replica)

    def own(number: int) -> bool:
        nonce = f"nonce-{number:04}-" + "ab" * (number % 7)
        if number % 3 == 0:
            open_chat(edge, messages=[{"role": "user", "content": nonce}], stream=True).close()
            return True
        reply = chat(edge, messages=[{"role": "user", "content": nonce}], stream=number % 2 == 0)
        text = "".join(text_in(chunk) for chunk in chunks_of(reply)) if number % 2 == 0 else reply.json["choices"][0]["message"]["content"]
        return nonce in text and text.count("nonce-") == 1

    for begin in range(0, 192, 64):
        assert all(all_at_once([lambda n=number: own(n) for number in range(begin, begin + 64)]))
    replica.until_idle()
