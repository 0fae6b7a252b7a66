"""The lines that `sluice up` shows when it is ready, run as they stand there."""

import subprocess

import pytest
from certificates import openssl
from harness import BINARY, ROOT


def lines_of(server) -> list[str]:
    return server.out_file.read_text().splitlines()


def run(line: str) -> str:
    """As a shell in the checkout does, where ./run is the binary that is tested."""
    script = line.replace("./run", str(BINARY))
    done = subprocess.run(["sh", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("keyed", [False, True], ids=["open", "keys"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
def test_what_up_shows_works_as_it_stands(start, keys, tmp_path, tls, keyed):
    flags = ["--engine", "scripted", "--listen", "0.0.0.0:0", "--grpc-listen", "[::]:0"]
    (tmp_path / "script").write_text('piece "Paris"\n')
    flags += ["--script", str(tmp_path / "script")]
    if tls:
        certificate, key = tmp_path / "self.pem", tmp_path / "self.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=self",
                "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate))  # fmt: skip
        flags += ["--tls-cert", str(certificate), "--tls-key", str(key)]
    secret = keys("reader") if keyed else "none"
    flags += ["--api-keys", str(keys.file)] if keyed else ["--insecure-open"]
    server = start(*flags, command="up")
    (tmp_path / "KEY.txt").write_text(secret)
    shown = [line.strip().replace("KEY.txt", str(tmp_path / "KEY.txt")).replace("Bearer KEY", f"Bearer {secret}") for line in lines_of(server)]
    for program in ("./run chat", "curl", "grpcurl"):
        (line,) = (line for line in shown if line.startswith(program))
        answer = run(line)
        assert "Paris" in answer or "UGFyaXM=" in answer, answer
