"""Who gets in and what leaks out: framing tricks, keys on every route, browsers, reflected values, tenants, certificates, logs."""

import json
import pathlib
import signal
import ssl
import threading

import pytest
from certificates import Authority
from harness import key_command, until
from raw_http import QUESTION, ask, chat, head, post, read_all, replies, replies_in

CHAT = "/v1/chat/completions"
HIDDEN = head("GET", "/v1/models", {"Connection": "close"})
CHUNKED = "Transfer-Encoding: chunked\r\n"
LENGTH = f"Content-Length: {len(HIDDEN)}\r\n"


def framed(fields: str, body: str = "", first: str = f"POST {CHAT} HTTP/1.1") -> bytes:
    """A request in front of a hidden one."""
    return f"{first}\r\nHost: x\r\n{fields}\r\n{body}".encode("latin-1") + HIDDEN


FRAMINGS = {
    "length, then chunked": framed("Content-Length: 5\r\n" + CHUNKED, "0\r\n\r\n"),
    "chunked, then no length": framed(CHUNKED + "Content-Length: 0\r\n", "0\r\n\r\n"),
    "two lengths": framed("Content-Length: 0\r\n" + LENGTH),
    "two lengths alike": framed("Content-Length: 0\r\nContent-Length: 0\r\n"),
    "a list of lengths": framed("Content-Length: 0, 0\r\n"),
    "a signed length": framed("Content-Length: +0\r\n"),
    "a hexadecimal length": framed("Content-Length: 0x0\r\n"),
    "a length with a gap": framed("Content-Length: 0 0\r\n"),
    "a huge length": framed("Content-Length: 18446744073709551616\r\n"),
    "an empty length": framed("Content-Length:\r\n"),
    "chunked twice": framed(CHUNKED + CHUNKED, "0\r\n\r\n"),
    "chunked, identity": framed("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
    "gzip, chunked": framed("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
    "identity with a length": framed("Transfer-Encoding: identity\r\nContent-Length: 0\r\n"),
    "x before chunked": framed("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
    "chunked behind a vertical tab": framed("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n"),
    "chunked, folded": framed("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
    "a space before the colon": framed("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
    "a tab before the colon": framed("Content-Length\t: 0\r\n"),
    "a space before the first name": framed(" Content-Length: 0\r\n"),
    "chunked in HTTP/1.0": framed(CHUNKED, "0\r\n\r\n", f"POST {CHAT} HTTP/1.0"),
    "line feeds alone": f"POST {CHAT} HTTP/1.1\nHost: x\nContent-Length: 0\n\n".encode() + HIDDEN,
    "a line feed between fields": framed("A: b\nContent-Length: 0\r\n"),
    "a carriage return within a field": framed("A: b\rContent-Length: 0\r\n"),
    "a NUL in a name": framed("Content-Length\0: 0\r\n"),
    "a NUL in a value": framed("A: b\0\r\nContent-Length: 0\r\n"),
    "no colon": framed("Content-Length 0\r\n"),
    "a chunk's size with a sign": framed(CHUNKED, "+0\r\n\r\n"),
    "a chunk's size with 0x": framed(CHUNKED, "0x0\r\n\r\n"),
    "a chunk's size with a space": framed(CHUNKED, " 0\r\n\r\n"),
    "a chunk's size of 68 bits": framed(CHUNKED, "10000000000000000\r\n\r\n"),
    "a line feed ends a chunk's size": framed(CHUNKED, "0\n\r\n"),
    "a line feed in a chunk's extension": framed(CHUNKED, "0;a\nb\r\n\r\n"),
    "a carriage return in a chunk's extension": framed(CHUNKED, "0;a\rb\r\n\r\n"),
    "a line feed ends a chunk": framed(CHUNKED, "2\r\n{}\n0\r\n\r\n"),
    "a chunk longer than said": framed(CHUNKED, "1\r\n{}\r\n0\r\n\r\n"),
    "a line feed ends the trailers": framed(CHUNKED, "0\r\n\n"),
    "a length in the trailers": framed(CHUNKED, "0\r\n" + LENGTH + "\r\n"),
    "a coding in the trailers": framed(CHUNKED, "0\r\n" + CHUNKED + "\r\n"),
    "two hosts": framed("Host: y\r\nContent-Length: 0\r\n"),
    "no host": f"POST {CHAT} HTTP/1.1\r\nContent-Length: 0\r\n\r\n".encode() + HIDDEN,
    "a version to come": framed("Content-Length: 0\r\n", first=f"POST {CHAT} HTTP/1.9"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN,
    "HTTP/0.9": b"GET /health\r\n" + HIDDEN,
    "a space in the target": framed("", first="GET /health HTTP/1.1 /x HTTP/1.1"),
    "a tunnel": framed("", first="CONNECT 127.0.0.1:22 HTTP/1.1"),
    "another scheme": framed("", first="GET ftp://x/health HTTP/1.1"),
}  # fmt: skip


@pytest.mark.parametrize("sent", FRAMINGS.values(), ids=FRAMINGS.keys())
def test_an_ambiguous_message_is_refused_and_nothing_behind_it_is_read(edge, sent):
    answers = replies(edge, sent)
    assert len(answers) == 1 and answers[0].status in (400, 501, 505) and answers[0].error["type"]
    assert answers[0].headers["connection"] == "close"


@pytest.mark.parametrize("host", ["a b", "a/b", "a@b", "<script>"])
def test_a_host_that_is_none_is_refused(edge, host):
    assert replies(edge, f"GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())[0].status == 400


def test_what_is_unusual_and_clear_is_one_request_and_the_next(edge):
    body = json.dumps({"model": "local", "messages": QUESTION, "max_tokens": 1})
    size = f"{len(body):X}"
    for fields, content in [
        (CHUNKED, f"{size};a=b;c=\"d;e\"\r\n{body}\r\n0;x\r\n\r\n"), (CHUNKED, f"000000{size}\r\n{body}\r\n0000\r\n\r\n"),
        ("TRANSFER-ENCODING: Chunked\r\n", f"{size}\r\n{body}\r\n0\r\nAuthorization: Bearer x\r\n\r\n"), (f"content-length:\t{len(body)} \r\n", body),
    ]:  # fmt: skip
        assert [reply.status for reply in replies(edge, framed(fields, content))] == [200, 200]
    assert [reply.status for reply in replies(edge, f"GET /health HTTP/1.1\r\nHost: x\r\n{LENGTH}\r\n".encode() + HIDDEN + HIDDEN)] == [200, 200]
    assert len(replies(edge, head("GET", "/health", {"Connection": "close"}) + HIDDEN)) == 1, "nothing is answered behind a close"
    assert len(replies(edge, head("GET", "/health", {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": ""}) + HIDDEN)) == 2


def test_pipelined_requests_are_answered_in_their_order(edge):
    targets = ["/health", "/v1/models", "/nowhere", "/v1/models/local", "/v1/models/none", "/readyz"] * 5
    answers = replies(edge, b"".join(head("GET", target) for target in targets) + HIDDEN)
    assert [answer.status for answer in answers] == [200, 200, 404, 200, 404, 200] * 5 + [200]


OPEN_ROUTES = ["/health", "/readyz"]
GET_ROUTES = ["/v1/models", "/v1/models/local", "/metrics", "/v1/models?api_key={key}", "/%761/models", "http://x/v1/models", "http://x:1@y/metrics"]
POST_ROUTES = [CHAT, "/v1/completions", "/v1/responses", "/v1/embeddings", "/tokenize"]
NO_ROUTES = ["//v1/models", "/v1/models/", "/V1/models", "/v1/./models", "/v1/x/../models", "/v1/models;x", "/v1/models%2f", "/",
             "/inference.LLM/Generate", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/debug/pprof", "/v1/../metrics/", "/metrics%20"]  # fmt: skip


@pytest.fixture
def locked(scripted, gateway, keys):
    """A gateway that wants a key, and one that it takes."""
    server = gateway(scripted(script='piece "token "\n' * 5), flags=["--api-keys", str(keys.file)] if keys("good") else [])
    server.key = keys("other")
    until(lambda: ask(server, "GET", "/v1/models", headers={"Authorization": f"Bearer {server.key}"}).status == 200, "the key to be read", 5)
    return server


def test_each_route_wants_a_key_in_each_of_its_spellings(locked):
    key = locked.key
    attempts = [
        [], [("Authorization", "")], [("Authorization", "Bearer")], [("Authorization", "Bearer ")], [("Authorization", "Bearer wrong")],
        [("Authorization", key)], [("Authorization", f"Basic {key}")], [("Authorization", f"Bearer {key}x")], [("Authorization", f"Bearer {key} x")],
        [("Authorization", f"Bearer {key[:-1]}")], [("X-Api-Key", key)], [("Cookie", f"key={key}")], [("X-Authorization", f"Bearer {key}")],
        [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {key}")], [("X-HTTP-Method-Override", "GET")], [("X-Forwarded-For", "127.0.0.1")],
        [("X-Original-URL", "/health")], [("Authorization", f"Bearer {key},Bearer wrong")], [("Transfer-Authorization", f"Bearer {key}")],
    ]  # fmt: skip
    bodies = set()
    for fields in attempts:
        for target in GET_ROUTES:
            reply = ask(locked, "GET", target.format(key=key), headers=fields)
            assert reply.status == 401 and reply.headers["www-authenticate"], (target, fields)
            bodies.add(reply.body)
        for target in POST_ROUTES:
            reply = post(locked, target, {"model": "local", "messages": QUESTION, "input": "x", "prompt": "x"}, fields)
            assert reply.status == 401, (target, fields)
            bodies.add(reply.body)
    assert len(bodies) == 1, "a wrong key and none are told the same"
    assert ask(locked, "HEAD", "/v1/models").status == ask(locked, "HEAD", "/metrics").status == 401
    for target in OPEN_ROUTES:
        assert ask(locked, "GET", target).status == 200
    for target in NO_ROUTES:
        assert ask(locked, "GET", target).status == ask(locked, "POST", target, b"{}").status == 404, target


def test_two_keys_in_one_request_are_none(locked):
    right, wrong = ("Authorization", f"Bearer {locked.key}"), ("Authorization", "Bearer wrong")
    assert ask(locked, "GET", "/v1/models", headers=[right]).status == 200
    assert ask(locked, "GET", "/v1/models", headers=[right, wrong]).status in (400, 401)


def test_the_scheme_is_a_word_in_any_case_before_any_spaces(locked):
    for scheme in ("bearer ", "BEARER ", "Bearer  "):
        assert ask(locked, "GET", "/v1/models", headers={"Authorization": scheme + locked.key}).status == 200, scheme


def test_without_a_key_no_body_is_parsed(locked):
    for body in (b"{" * 100_000, b"\xff", b""):
        assert post(locked, CHAT, body).status == 401


ORIGIN = "https://ok.example"
OWN_PAGE = "http://localhost:3000"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type,x-api-key,x-grpc-web,x-stainless-os"}


def test_browsers_of_a_named_origin_get_in_and_no_others(scripted, gateway, keys):
    keys("good")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file), "--cors-origin", ORIGIN])
    for origin in (ORIGIN, "null", f"{ORIGIN}.evil", "http://ok.example", "https://OK.example", "https://ok.example:444", "*", "https://evil.example"):
        allowed = [origin] if origin == ORIGIN else []
        for target in (CHAT, "/v1/models", "/nowhere"):
            reply = ask(edge, "OPTIONS", target, headers={"Origin": origin, **PREFLIGHT})
            assert reply.status == 204 and reply.body == b"" and reply.headers["vary"] == "Origin"
            assert reply.headers.get_all("access-control-allow-origin", []) == allowed
            assert reply.headers["access-control-allow-credentials"] is None
        refused = chat(edge, {"Origin": origin})
        assert refused.status == 401 and refused.headers.get_all("access-control-allow-origin", []) == allowed, "a page sees why"
    listed = ask(edge, "OPTIONS", CHAT, headers={"Origin": ORIGIN, **PREFLIGHT}).headers
    assert set(PREFLIGHT["Access-Control-Request-Headers"].split(",")) <= set(listed["access-control-allow-headers"].split(", "))
    assert "POST" in listed["access-control-allow-methods"]
    exposed = chat(edge, {"Origin": ORIGIN}).headers["access-control-expose-headers"]
    assert all(name in exposed for name in ("x-request-id", "retry-after", "x-ratelimit-remaining-requests", "x-gateway-warnings"))


@pytest.mark.parametrize(
    ("sent", "status"),
    [(head("POST", CHAT, {"Origin": OWN_PAGE, "Content-Length": str(10**9)}), 413), (head("GET", "/%zz", {"Origin": OWN_PAGE}), 400)],
    ids=["too long", "malformed"],
)
def test_a_page_sees_why_even_where_http_itself_refuses(edge, sent, status):
    (reply,) = replies(edge, sent)
    assert reply.status == status and reply.headers["access-control-allow-origin"] == OWN_PAGE


def test_without_keys_a_strangers_page_cannot_have_the_model_work(scripted, gateway):
    server = scripted()
    edge = gateway(server)
    assert chat(edge, {"Origin": OWN_PAGE}, max_tokens=3).status == 200
    asked = server.metrics()["sluice_prompt_tokens_total"]
    refused = chat(edge, {"Origin": ORIGIN})
    assert refused.status == 403 and "--cors-origin" in refused.error["message"]
    assert refused.headers["access-control-allow-origin"] is None
    assert server.metrics()["sluice_prompt_tokens_total"] == asked


def test_a_preflight_repeats_only_names(edge):
    for wanted in ("x-a, <script>", "a;b", '"x"', "x" * 10_000, ",,,", "a b"):
        reply = ask(edge, "OPTIONS", CHAT, headers={"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": wanted})
        assert reply.status == 204 and not set('<>";') & set(reply.headers["access-control-allow-headers"])
    assert ask(edge, "OPTIONS", CHAT).status == 405, "no preflight, no answer for one"


@pytest.mark.parametrize("given", ["a b", "a\tb", "é", "x" * 129, "%0d%0aSet-Cookie: a=b", "a;b", '"', "<x>", "a/b", "", "x" * 8000])
def test_a_request_id_that_is_none_is_replaced(edge, given):
    for reply in (ask(edge, "GET", "/health", headers={"X-Request-Id": given}), chat(edge, {"X-Request-Id": given}), chat(edge, {"X-Request-Id": given}, n=0)):
        (shown,) = reply.headers.get_all("x-request-id")
        assert shown != given and len(shown) == 32 and "set-cookie" not in reply.headers


@pytest.mark.parametrize("given", ["a", "x" * 128, "A-z_0.9"])
def test_a_request_id_comes_back_with_every_answer(edge, given):
    for reply in (ask(edge, "GET", "/nowhere", headers={"X-Request-Id": given}), chat(edge, {"X-Request-Id": given}), chat(edge, {"X-Request-Id": given}, n=0)):
        assert reply.headers.get_all("x-request-id") == [given]


@pytest.mark.parametrize("field", ["x-session-id", "x-smg-routing-key", "openengine-routing-key", "session_id", "traceparent", "x-llm-d-inference-objective",
                                   "x-smg-priority", "cache-control", "openengine-priority", "user-agent", "x-smg-target-worker"])  # fmt: skip
def test_odd_values_of_routing_headers_hurt_nobody(edge, field):
    for value in ("", "a\tb", "é\xff", "%0d%0ax", "x" * 60_000, "00-zz-zz-01", "-99999999999", "\x80"):
        fields = f"{field}: {value}\r\nContent-Type: application/json\r\nConnection: close\r\n".encode("latin-1")
        body = json.dumps({"model": "local", "messages": QUESTION, "max_tokens": 1}).encode()
        raw = b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s" % (CHAT.encode(), fields, len(body), body)
        assert replies(edge, raw)[0].status == 200, value


def test_warnings_name_what_was_not_used_and_can_not_split_the_head(edge):
    provider = {"bananas": 1, "a\r\nSet-Cookie: b": 1, "é": 1, "sort": "price", "x" * 1000: 1, **{f"more{n}": 1 for n in range(20)}}
    for fields in ({}, {"stream": True}, {"model": "other"}):
        reply = chat(edge, provider=provider, **fields)
        warnings = reply.headers.get_all("x-gateway-warnings")
        assert any("bananas" in warning for warning in warnings) and len(warnings) <= 8
        assert "set-cookie" not in reply.headers and all(len(warning) < 100 for warning in warnings)
    assert "x-gateway-warnings" not in chat(edge, provider={"only": ["local"]}).headers
    assert chat(edge, provider={"bananas": 1, "require_parameters": True}).status == 400


def test_only_trusted_callers_name_the_machine(scripted, gateway, keys):
    plain, trusted = keys("plain"), keys("trusted", "--trusted")
    edge = gateway(scripted(), flags=["--api-keys", str(keys.file)])
    for header in ("x-smg-target-worker", "x-gateway-destination-endpoint"):
        assert chat(edge, {"Authorization": f"Bearer {plain}", header: "10.0.0.1:1"}, max_tokens=1).status == 200, "ignored"
        assert chat(edge, {"Authorization": f"Bearer {trusted}", header: "10.0.0.1:1"}).status == 503


def test_no_error_names_a_replicas_address(scripted, gateway):
    replica = scripted(script="hang\n")
    edge = gateway(replica)
    replica.process.send_signal(signal.SIGKILL)
    replica.process.wait()
    replica.process.returncode = 0  # its end was ours
    port = replica.address.rpartition(":")[2]
    long = [{"role": "user", "content": "x" * 2_000_000}]  # goes as a call of its own
    for _ in range(3):
        for path, fields in [("/v1/embeddings", {"input": "x"}), ("/tokenize", {"prompt": "x"}), (CHAT, {"messages": QUESTION}), (CHAT, {"messages": long})]:
            reply = post(edge, path, {"model": "local", **fields}, {"X-Request-Timeout": "5"})
            assert reply.status in (503, 504) and port not in reply.error["message"] and "ipv4" not in reply.error["message"], reply.error


def cached(edge, key: str, text: str, **fields) -> int:
    reply = chat(edge, {"Authorization": f"Bearer {key}"}, messages=[{"role": "user", "content": text}], max_tokens=1, **fields)
    assert reply.status == 200, reply
    return reply.json["usage"]["prompt_tokens_details"]["cached_tokens"]


def test_no_key_sees_what_another_has_cached(up_with_keys):
    edge, key = up_with_keys
    mine, theirs = key("mine"), key("theirs")
    until(lambda: ask(edge, "GET", "/v1/models", headers={"Authorization": f"Bearer {theirs}"}).status == 200, "both keys", 5)
    text = " ".join(f"The secret number is {number}." for number in range(8))
    assert cached(edge, mine, text) == 0
    unsalted = {"prompt_cache_key": "mine", "session_id": "mine", "user": "mine"}
    for hint in (unsalted, {"cache_salt": "mine"}, {"cache_salt": "\nmine\n"}, {"cache": {"namespace": "mine\n"}}):
        assert cached(edge, theirs, text, **hint) == 0, hint
    assert cached(edge, mine, text) > 20
    assert cached(edge, mine, text, cache_salt="own") == 0, "a salt narrows"


@pytest.fixture
def up_with_keys(start, keys):
    keys("first")
    return start("--api-keys", str(keys.file), command="up"), keys


def over_tls(server, context: ssl.SSLContext, sent: bytes) -> list:
    with server.connect() as plain, context.wrap_socket(plain, server_hostname="localhost") as connection:
        connection.sendall(sent)
        return replies_in(read_all(connection))


def test_a_certificate_of_the_right_authority_opens_the_door_and_names_a_trusted_client(scripted, start, authority, tmp_path):
    certificate, key = authority.issue("server")
    replica = scripted()
    flags = ["--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(authority.certificate), "--trusted-client", "CN=boss"]
    edge = start("--replica", replica.address, *flags, command="gateway")
    edge.until_metric("sluice_gateway_replica_up", lambda up: up == 1)

    def context(issuer: Authority | None = None, name: str = "") -> ssl.SSLContext:
        made = ssl.create_default_context(cafile=str(authority.certificate))
        if issuer:
            made.load_cert_chain(*map(str, issuer.issue(name)))
        return made

    boss, worker = context(authority, "boss"), context(authority, "worker")
    body = json.dumps({"model": "local", "messages": QUESTION, "max_tokens": 1}).encode()
    fields = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close", "x-smg-target-worker": "10.0.0.1:1"}
    sent = head("POST", CHAT, fields) + body
    assert over_tls(edge, worker, sent)[0].status == 200, "its wish is ignored"
    assert over_tls(edge, boss, sent)[0].status == 503, "its wish is obeyed: there is no such machine"
    for intruder in (context(), context(Authority(tmp_path, "stranger"), "boss-of-others")):
        try:
            assert over_tls(edge, intruder, sent) == []
        except (ssl.SSLError, ConnectionError):
            pass
    assert replies(edge, sent) == [], "plain text is no TLS"
    old = context(authority, "old")
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        over_tls(edge, old, sent)
    edge.until_metric("sluice_http_connections_refused_total", lambda refused: refused >= 2, why="tls")


def test_two_certificates_share_no_cache(start, authority):
    certificate, key = authority.issue("server")
    flags = ["--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(authority.certificate)]
    replica = start()
    edge = start("--replica", replica.address, *flags, command="gateway")
    edge.until_metric("sluice_gateway_replica_up", lambda up: up == 1)
    body = json.dumps({"model": "local", "messages": [{"role": "user", "content": "One secret, two secrets, three secrets."}], "max_tokens": 1}).encode()
    sent = head("POST", CHAT, {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close"}) + body

    def cached_for(name: str) -> int:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        context.load_cert_chain(*map(str, authority.issue(name)))
        return over_tls(edge, context, sent)[0].json["usage"]["prompt_tokens_details"]["cached_tokens"]

    assert cached_for("alice") == 0
    assert cached_for("bob") == 0, "another's certificate, another's cache"
    assert cached_for("alice") > 5


PROMPT, ANSWER = "canaryPROMPTzebra", "canaryANSWERllama"


def test_canaries_are_found_nowhere_in_logs_metrics_and_errors(scripted, gateway, keys):
    key = keys("test")
    replica = scripted("--log-level", "debug", script=f'piece "{ANSWER} " 2ms\npiece "{ANSWER} " 2ms\nfail "broken"\n')
    edge = gateway(replica, flags=["--api-keys", str(keys.file), "--log-level", "debug"])
    allowed, text = {"Authorization": f"Bearer {key}", "User-Agent": PROMPT, "X-Session-Id": PROMPT}, [{"role": "user", "content": PROMPT}]
    told = [
        chat(edge, allowed, messages=text), chat(edge, allowed, messages=text, stream=True), chat(edge, allowed, messages=text, max_tokens=-1),
        chat(edge, allowed, messages=text, stop=[PROMPT * 50]), chat(edge, allowed, messages=text, model=PROMPT), chat(edge, allowed, messages=[{"role": PROMPT}]),
        chat(edge, allowed, messages=text, response_format={"type": PROMPT}), chat(edge, allowed, messages=text, tool_choice=PROMPT),
        chat(edge, allowed, messages=[{"role": "user", "content": [{"type": PROMPT}]}]), chat(edge, allowed, messages=text, logit_bias={PROMPT: 1}),
        chat(edge, {**allowed, "X-Request-Timeout": PROMPT}), chat(edge, {**allowed, "Content-Type": PROMPT}), chat(edge, {"Authorization": f"Bearer {key}wrong"}),
        post(edge, CHAT, f'{{"{PROMPT}', allowed), ask(edge, "GET", f"/v1/models/{PROMPT}?key={key}", headers=allowed), ask(edge, "GET", f"/{PROMPT}?key={key}"),
        chat(edge, {**allowed, "X-Request-Timeout": "0.001"}, messages=text), chat(edge, {**allowed, "X-Request-Id": f"{PROMPT} x"}, messages=text),
        post(edge, "/v1/embeddings", {"model": "local", "input": [PROMPT, 5]}, allowed), post(edge, "/tokenize", {"model": PROMPT, "prompt": PROMPT}, allowed),
    ]  # fmt: skip
    seen = {
        "the errors": b"".join(reply.body for reply in told if reply.status != 200).decode(),
        "the heads": "".join(str(reply.headers) for reply in told),
        "the metrics": edge.metrics_text() + replica.metrics_text(),
        "the command line": pathlib.Path(f"/proc/{edge.pid}/cmdline").read_bytes().decode(),
    }
    assert edge.terminate() == 0 and replica.terminate() == 0
    seen["the log"] = edge.log() + replica.log()
    for place, content in seen.items():
        for canary in (PROMPT, ANSWER, key):
            assert canary not in content, f"{canary} is in {place}"


def test_the_access_log_stays_one_line_of_json_a_request(scripted, gateway, tmp_path):
    file = tmp_path / "access"
    edge = gateway(scripted(script='piece "a"\n'), flags=["--access-log", str(file)])
    asked = [("GET", "/health"), ("BREW", "/health"), ("GET", "/%0a%1b[31m%22"), ("GET", "/v1/models/%0a%22"), ("A" * 60_000, "/health"), ("M'!#$%&*+^`|~", "/x")]
    for method, target in asked:
        ask(edge, method, target, headers={"User-Agent": 'a"b\\', "X-Request-Id": "a\tb"})
    for model in ("a\nb", "\x1b[31m", '"', "\\", "\0", "é", "x" * 100_000):
        chat(edge, model=model)
    for line in until(lambda: (found := file.read_text().split("\n"))[len(asked) + 7 :] == [""] and found[:-1], "all lines"):
        record = json.loads(line)
        assert "\x1b" not in line and (record["status"] < 400) == (record["code"] == "OK"), record
        assert len(line) < 2000, "no line is as long as its client likes"


def test_keys_are_compared_as_digests(keys):
    key = keys("test")
    assert key not in keys.file.read_text()
    shown = key_command("list", "--api-keys", str(keys.file))
    assert "test" in shown and key not in shown


def test_a_mad_neighbour_does_not_stop_the_streams(edge):
    """Refused bombs beside an honest client: what it gets is the same."""
    stop = threading.Event()

    def bomb() -> None:
        while not stop.is_set():
            post(edge, CHAT, b'{"a":' * 100_000)
            chat(edge, response_format={"type": "json_schema", "json_schema": {"schema": {"pattern": "(" * 10_000}}})

    attacker = threading.Thread(target=bomb)
    attacker.start()
    try:
        for _ in range(50):
            assert chat(edge).json["choices"][0]["message"]["content"] == "token " * 5
    finally:
        stop.set()
        attacker.join()
