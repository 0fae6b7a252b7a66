"""TLS, mutual TLS, certificates that change while it serves, API keys."""

import contextlib
import pathlib
import socket
import subprocess
from collections.abc import Callable

import grpc
import inference_pb2 as pb
import inference_pb2_grpc
import pytest
from calls import Answer, StepStream, chat, error_of
from certificates import Authority
from grpc_health.v1 import health_pb2, health_pb2_grpc
from harness import key_command, until

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
UNAUTHENTICATED = grpc.StatusCode.UNAUTHENTICATED


def connect(server, authority: Authority, client: tuple[pathlib.Path, pathlib.Path] | None = None):
    certificate, key = (file.read_bytes() for file in client) if client else (None, None)
    credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes(), key, certificate)
    channel = grpc.secure_channel(server.address, credentials, [("grpc.use_local_subchannel_pool", 1)])
    return inference_pb2_grpc.LLMStub(channel)


def answers(stub, **options) -> bool:
    return Answer.of(stub.Generate(chat("hi", max_tokens=2), timeout=10, **options)).last.done


def test_tls_serves_those_who_know_the_authority_and_no_plain_text(scripted, authority, tmp_path):
    certificate, key = authority.issue("server")
    server = scripted("--tls-cert", str(certificate), "--tls-key", str(key))
    assert answers(connect(server, authority))
    assert error_of(lambda: connect(server, Authority(tmp_path, "stranger")).Generate(chat("hi"), timeout=5)).code() == UNAVAILABLE
    assert error_of(lambda: server.stub().Generate(chat("hi"), timeout=5)).code() == UNAVAILABLE


def test_the_handshake_is_seen_by_openssl_with_http2_and_a_modern_protocol(scripted, authority):
    certificate, key = authority.issue("server")
    server = scripted("--tls-cert", str(certificate), "--tls-key", str(key))
    line = ["openssl", "s_client", "-connect", server.address, "-alpn", "h2", "-CAfile", str(authority.certificate)]
    shown = subprocess.run(line, input="", capture_output=True, text=True, errors="replace", check=True).stdout
    assert "ALPN protocol: h2" in shown and "Verify return code: 0 (ok)" in shown
    old = subprocess.run([*line, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], input="", capture_output=True, text=True, errors="replace", check=False)
    assert old.returncode != 0, "TLS 1.1 was accepted"


def test_mutual_tls_wants_a_certificate_of_its_authority(scripted, authority, tmp_path):
    certificate, key = authority.issue("server")
    server = scripted(
        "--tls-cert", str(certificate), "--tls-key", str(key), "--tls-client-ca", str(authority.certificate)
    )  # fmt: skip
    assert answers(connect(server, authority, authority.issue("client")))
    assert error_of(lambda: connect(server, authority).Generate(chat("hi"), timeout=5)).code() == UNAVAILABLE
    stranger = Authority(tmp_path, "stranger").issue("intruder")
    assert error_of(lambda: connect(server, authority, stranger).Generate(chat("hi"), timeout=5)).code() == UNAVAILABLE


def subject(server, authority: Authority) -> str:
    line = ["openssl", "s_client", "-connect", server.address, "-alpn", "h2", "-CAfile", str(authority.certificate)]
    shown = subprocess.run(line, input="", capture_output=True, text=True, errors="replace", check=False).stdout
    return next((row for row in shown.splitlines() if row.startswith("subject=")), "")


def replace(target: pathlib.Path, source: pathlib.Path) -> None:
    fresh = target.with_suffix(".fresh")
    fresh.write_bytes(source.read_bytes())
    fresh.rename(target)


def test_a_new_certificate_is_taken_up_without_a_restart_and_a_broken_one_is_not(scripted, authority):
    certificate, key = authority.issue("first")
    server = scripted("--tls-cert", str(certificate), "--tls-key", str(key), step_ms=20)
    stub = connect(server, authority)
    running = stub.Generate(chat("hi", max_tokens=100))
    next(running)
    assert "first" in subject(server, authority)

    renewed, renewed_key = authority.issue("second")
    replace(key, renewed_key)
    replace(certificate, renewed)
    until(lambda: "second" in subject(server, authority), "the new certificate", 30)
    assert sum(len(response.delta) for response in running) > 0, "the running stream was cut"

    certificate.write_text("broken")
    until(lambda: str(certificate) in server.log(), "a word about the broken certificate", 30)
    assert "second" in subject(server, authority)
    assert answers(connect(server, authority))


@pytest.fixture
def keyed(scripted: Callable, tmp_path):
    """A replica that wants a key, the key, and the file."""
    file = tmp_path / "keys"
    key = key_command("add", "--api-keys", str(file), "alice")
    assert key not in file.read_text()
    return scripted("--api-keys", str(file)), key, file


def bearer(key: str) -> dict:
    return {"metadata": [("authorization", f"Bearer {key}")]}


def test_a_call_without_a_known_key_is_refused(keyed):
    server, key, _ = keyed
    stub = server.stub()
    assert answers(stub, **bearer(key))
    for options in ({}, bearer("wrong"), bearer(key + "x"), bearer(""), {"metadata": [("authorization", key)]}):
        assert error_of(lambda o=options: stub.Generate(chat("hi"), **o)).code() == UNAUTHENTICATED
    assert error_of(lambda: server.replica_stub().Drain(pb.DrainRequest())).code() == UNAUTHENTICATED
    health = health_pb2_grpc.HealthStub(server.channel()).Check(health_pb2.HealthCheckRequest())
    assert health.status == health_pb2.HealthCheckResponse.SERVING


def test_only_a_trusted_key_may_drain(keyed):
    server, key, file = keyed
    replica = server.replica_stub()
    refused = error_of(lambda: replica.Drain(pb.DrainRequest(), **bearer(key)))
    assert refused.code() == grpc.StatusCode.PERMISSION_DENIED and "--trusted" in refused.details()
    assert answers(server.stub(), **bearer(key)), "nothing drains"
    operator = key_command("add", "--api-keys", str(file), "operator", "--trusted")
    until(lambda: may_drain(replica, operator), "the trusted key", 30)
    assert server.process.wait(15) == 0


def may_drain(replica, key: str) -> bool:
    with contextlib.suppress(grpc.RpcError):
        replica.Drain(pb.DrainRequest(), **bearer(key))
        return True
    return False


def test_without_keys_nobody_drains_from_another_machine(scripted):
    server = scripted("--listen", "0.0.0.0:0")
    assert "lets everybody in" in server.log() and "--api-keys" in server.log()
    port = server.address.rsplit(":", 1)[1]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        route.connect(("192.0.2.1", 9))  # sends nothing; says by which address this machine goes out
        outside = route.getsockname()[0]
    with grpc.insecure_channel(f"{outside}:{port}") as channel:
        refused = error_of(lambda: inference_pb2_grpc.ReplicaStub(channel).Drain(pb.DrainRequest()))
    assert refused.code() == grpc.StatusCode.PERMISSION_DENIED and "--api-keys" in refused.details()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        inference_pb2_grpc.ReplicaStub(channel).Drain(pb.DrainRequest())
    assert server.process.wait(15) == 0


def test_of_a_keys_limits_a_replica_holds_the_models_and_says_so_of_the_others(scripted, tmp_path):
    file = tmp_path / "keys"
    elsewhere = key_command("add", "--api-keys", str(file), "elsewhere", "--models", "other")
    here = key_command("add", "--api-keys", str(file), "here", "--models", "local", "--rpm", "1")
    server = scripted("--api-keys", str(file))
    assert "1 keys have rpm, tpm or streams" in server.log()
    stub = server.stub()
    assert answers(stub, **bearer(here)) and answers(stub, **bearer(here))
    for call, request in ((stub.Generate, chat("hi", max_tokens=1)), (stub.CountTokens, pb.CountTokensRequest(model="local", prompt=b"hi"))):
        assert error_of(lambda c=call, r=request: c(r, **bearer(elsewhere))).code() == grpc.StatusCode.PERMISSION_DENIED
    steps = StepStream(server.replica_stub(), metadata=bearer(elsewhere)["metadata"])
    steps.start(1, chat("hi", max_tokens=1))
    assert next(item.status.code for item in steps.items() if item.HasField("status")) == grpc.StatusCode.PERMISSION_DENIED.value[0]


def test_keys_come_and_go_without_a_restart(keyed):
    server, key, file = keyed
    stub = server.stub()
    other = key_command("add", "--api-keys", str(file), "bob")

    def accepted(of: str) -> bool:
        try:
            return answers(stub, **bearer(of))
        except grpc.RpcError as error:
            assert error.code() == UNAUTHENTICATED
            return False

    until(lambda: accepted(other), "the new key", 30)
    key_command("revoke", "--api-keys", str(file), "alice")
    until(lambda: not accepted(key), "the revoked key's end", 30)
    assert accepted(other)
