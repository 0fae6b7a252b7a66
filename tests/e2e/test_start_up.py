"""What keeps a server from starting is said in one line that names it, with exit code 1."""

import os
import pathlib
import socket
import subprocess

import pytest
from certificates import openssl
from harness import command_line

MODEL = pathlib.Path(os.environ.get("SLUICE_MODEL", "model"))


def run(*arguments: str, command: str = "replica") -> tuple[int, str]:
    done = subprocess.run(command_line(command, arguments), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    return done.returncode, done.stdout + done.stderr


def check_refused(outcome: tuple[int, str], *words: str) -> None:
    code, output = outcome
    assert code == 1, output
    last = output.strip().splitlines()[-1]
    for word in words:
        assert word in last, f"{word} is not in the last line of: {output}"
    assert not any(line.startswith("ready ") for line in output.splitlines())


def test_a_missing_model_file():
    check_refused(run("--model", "nowhere/no-such.gguf"), "nowhere/no-such.gguf")


def test_a_truncated_model_file(tmp_path):
    file = tmp_path / "truncated.gguf"
    with MODEL.open("rb") as whole:
        file.write_bytes(whole.read(5_000_000))
    check_refused(run("--model", str(file)), str(file))


def test_a_file_that_is_no_gguf(tmp_path):
    file = tmp_path / "text.gguf"
    file.write_text("This is not a model.\n" * 1000)
    check_refused(run("--model", str(file)), str(file))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\x00\x00\x00" + b"\xff" * 64], ids=["empty", "magic only", "absurd counts"])
def test_a_broken_header(tmp_path, content):
    file = tmp_path / "broken.gguf"
    file.write_bytes(content)
    check_refused(run("--model", str(file)), str(file))


def test_a_folder_for_a_model(tmp_path):
    check_refused(run("--model", str(tmp_path)), str(tmp_path))


@pytest.mark.parametrize(
    ("command", "flag"),
    [("replica", "--listen"), ("replica", "--metrics-listen"), ("up", "--listen"), ("up", "--grpc-listen")],
)
def test_a_port_in_use(command, flag):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        check_refused(run("--engine", "scripted", flag, address, command=command), address, f"({flag})")


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "no.such.host.invalid:0"])
def test_an_address_that_is_none(address):
    check_refused(run("--engine", "scripted", "--listen", address), address)


def test_a_broken_certificate(tmp_path):
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nbm90IG9uZQ==\n-----END CERTIFICATE-----\n")
    check_refused(run("--engine", "scripted", "--tls-cert", str(broken), "--tls-key", str(broken)), str(broken))


def test_a_missing_certificate():
    check_refused(run("--engine", "scripted", "--tls-cert", "none.pem", "--tls-key", "none.pem"), "none.pem")


def test_a_missing_key_file():
    check_refused(run("--engine", "scripted", "--api-keys", "no-keys"), "no-keys", "--api-keys")


@pytest.mark.parametrize("path", ["/", "/proc/self/mem", "/dev/zero"], ids=["folder", "unreadable", "endless"])
@pytest.mark.parametrize(
    ("command", "flag"),
    [
        *(("replica", flag) for flag in ("--tls-cert", "--tls-key", "--tls-client-ca", "--script", "--api-keys", "--config")),
        *(("gateway", flag) for flag in ("--tls-cert", "--tls-key", "--tls-client-ca", "--replica-key", "--replica-tls-ca", "--replica-tls-cert")),
    ],
)
def test_what_is_no_file_or_has_no_end(authority, command, flag, path):
    certificate, key = authority.issue("server")
    flags = {"--tls-cert": str(certificate), "--tls-key": str(key)} if flag.startswith("--tls") else {}
    flags |= {"--engine": "scripted"} if command == "replica" else {"--replica": "127.0.0.1:1"}
    flags[flag] = path
    check_refused(run(*(word for pair in flags.items() for word in pair), command=command), path, flag)


def test_a_pair_that_is_too_weak(tmp_path):
    certificate, key = tmp_path / "weak.pem", tmp_path / "weak.key"
    openssl("req", "-x509", "-newkey", "rsa:512", "-nodes", "-subj", "/CN=weak", "-keyout", str(key), "-out", str(certificate))
    for command, more in (("replica", ["--engine", "scripted"]), ("gateway", ["--replica", "127.0.0.1:1"])):
        outcome = run(*more, "--tls-cert", str(certificate), "--tls-key", str(key), command=command)
        check_refused(outcome, str(certificate), "--tls-cert", "key too small")


def test_a_broken_script(tmp_path):
    script = tmp_path / "script"
    script.write_text('piece "fine"\nnonsense\n')
    check_refused(run("--engine", "scripted", "--script", str(script)), str(script), "2")


@pytest.mark.parametrize(
    "arguments",
    [["--no-such-flag"], ["--max-sequences", "many"], ["--max-sequences", "-1"], ["--engine", "steam"], ["--config", "no-such.toml"]],
    ids=["unknown flag", "no number", "negative", "unknown engine", "missing config"],
)
def test_flags_that_mean_nothing(arguments):
    code, output = run("--engine", "scripted", *arguments)
    assert code == 1, output
    assert arguments[0] in output or arguments[-1] in output
