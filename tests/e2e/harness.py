"""Starts the real binary and looks at it from outside, as an operator would: ready line, metrics, memory, exit code."""

import base64
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("SLUICE_BINARY", ROOT / "build/release/sluice"))
START_SECONDS = 60  # the real model is loaded and warmed up in about one
SANITIZER_REPORT = re.compile(r"ERROR: AddressSanitizer|ERROR: LeakSanitizer|runtime error:|WARNING: ThreadSanitizer")

LARGE_MESSAGES = [
    ("grpc.max_send_message_length", 50 * 1024 * 1024),
    ("grpc.max_receive_message_length", 50 * 1024 * 1024),
]
# A client that takes little ahead of what its program reads: docs/back_pressure.md.
TIGHT_WINDOW = [("grpc.http2.lookahead_bytes", 64), ("grpc.http2.bdp_probe", 0)]


def until(holds: Callable[[], object], what: str, seconds: float = 10) -> object:
    """Polls until `holds` gives something true, and returns that."""
    end = time.monotonic() + seconds
    while True:
        value = holds()
        if value:
            return value
        assert time.monotonic() < end, f"after {seconds} s still not: {what}"
        time.sleep(0.005)


def bytes_field(text: str | bytes) -> str:
    """A bytes field in grpcurl's and ghz' JSON."""
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def command_line(command: str, arguments: tuple[str, ...], binary: pathlib.Path = BINARY) -> list[str]:
    """A server's command line, on free ports unless the arguments say otherwise."""
    line = [str(binary), command, *arguments]
    flags = ["--listen", "--metrics-listen"] + (["--grpc-listen"] if command == "up" else [])
    for flag in flags:
        if flag not in arguments:
            line += [flag, "127.0.0.1:0"]
    return line


def key_command(*arguments: str) -> str:
    """`sluice key`, and what it printed: of "add" the new key."""
    return subprocess.run([str(BINARY), "key", *arguments], check=True, capture_output=True, text=True).stdout.strip()


class Metrics(dict[str, float]):
    """All series of one scrape: name{label="value",…} -> value."""

    @classmethod
    def parse(cls, text: str) -> "Metrics":
        lines = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return cls({name: float(value) for name, _, value in lines})

    def total(self, name: str, **labels: str) -> float:
        """The sum of all series of `name` that carry these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(
            value
            for series, value in self.items()
            if series.partition("{")[0] == name and all(label in series for label in wanted)
        )


class Server:
    """One `sluice` server process. Leaves nothing behind when it is closed, and fails the test if it died or a sanitizer spoke."""

    def __init__(self, folder: pathlib.Path, *arguments: str, command: str = "replica", binary: pathlib.Path = BINARY):
        self.log_file = folder / "stderr"
        self.out_file = folder / "stdout"
        line = command_line(command, arguments, binary)
        with self.log_file.open("wb") as log, self.out_file.open("wb") as out:
            self.process = subprocess.Popen(line, stdout=out, stderr=log, stdin=subprocess.DEVNULL, cwd=folder)
        try:
            ready = str(until(self._ready_line, f"ready line of {' '.join(line)}", START_SECONDS))
        except BaseException:
            self.process.kill()
            raise
        self.address = self._address(ready, "grpc") if command != "gateway" else ""
        self.http = self._address(ready, "http") if command != "replica" else ""
        self.metrics_address = self._address(ready, "metrics")
        self._channels: list[grpc.Channel] = []

    def _ready_line(self) -> str | None:
        assert self.process.poll() is None, f"exit code {self.process.returncode}: {self.log()}"
        lines = self.out_file.read_text(errors="replace").splitlines(keepends=True)
        return next((line.rstrip() for line in lines if line.startswith("ready ") and line.endswith("\n")), None)

    @staticmethod
    def _address(ready: str, name: str) -> str:
        match = re.search(rf"\b{name}[ =](\S+:\d+)", ready)
        assert match, f"no {name} address in: {ready}"
        return match[1]

    @property
    def pid(self) -> int:
        return self.process.pid

    def channel(self, options: list[tuple[str, int]] | None = None) -> grpc.Channel:
        """A connection of its own."""
        channel = grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1), *(options or [])])
        self._channels.append(channel)
        return channel

    def stub(self, options: list[tuple[str, int]] | None = None):
        import inference_pb2_grpc

        return inference_pb2_grpc.LLMStub(self.channel(options))

    def replica_stub(self, options: list[tuple[str, int]] | None = None):
        import inference_pb2_grpc

        return inference_pb2_grpc.ReplicaStub(self.channel(options))

    def openai(self, key: str = "none", **options):
        """OpenAI's own client of this gateway; it doesn't retry unless told to."""
        import openai

        return openai.OpenAI(base_url=f"http://{self.http}/v1", api_key=key, **{"max_retries": 0, "timeout": 60, **options})

    def connect(self) -> socket.socket:
        """A plain connection to the gateway."""
        host, port = self.http.rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=30)

    def metrics_text(self, address: str = "") -> str:
        with urllib.request.urlopen(f"http://{address or self.metrics_address}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def metrics(self) -> Metrics:
        return Metrics.parse(self.metrics_text())

    def gateway_metric(self, name: str, **labels: str) -> float:
        """Of `up`, whose gateway shows its own where it answers."""
        return Metrics.parse(self.metrics_text(self.http)).total(name, **labels)

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics().total(name, **labels)

    def until_metric(self, name: str, holds: Callable[[float], bool], seconds: float = 10, **labels: str) -> float:
        def look() -> tuple[float] | None:
            value = self.metric(name, **labels)
            return (value,) if holds(value) else None

        return until(look, f"{name}{labels or ''} as wanted", seconds)[0]

    def until_idle(self, seconds: float = 10) -> None:
        """Nothing runs, waits or holds KV."""
        names = ["sluice_slots_used", "sluice_kv_used_tokens", "sluice_queued_requests", "sluice_generate_calls_open"]

        def idle() -> bool:
            metrics = self.metrics()
            return all(metrics.total(name) == 0 for name in names)

        until(idle, "an idle server", seconds)

    def rss(self) -> int:
        """Resident bytes."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def log(self) -> str:
        return self.log_file.read_text(errors="replace") + self.out_file.read_text(errors="replace")

    def alive(self) -> bool:
        return self.process.poll() is None

    def terminate(self, seconds: float = 40) -> int:
        """SIGTERM, and its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def hang_up(self) -> None:
        """Closes every connection that was asked for, and so cancels what still runs on it."""
        while self._channels:
            self._channels.pop().close()

    def close(self) -> None:
        self.hang_up()
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(15)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"the server did not end within 15 s of SIGTERM: {self.log()}") from None
        assert not SANITIZER_REPORT.search(self.log()), self.log()
        assert self.process.returncode == 0, f"the server ended with {self.process.returncode}: {self.log()}"
