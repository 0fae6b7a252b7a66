"""Servers as child processes, and what they cost: processor time and resident memory, read from /proc."""

import contextlib
import os
import re
import socket
import subprocess
import time
import urllib.request

_TICK = os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def rss_bytes(pid: int) -> int:
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


@contextlib.contextmanager
def serving(command: list[str], ready: str = "ready"):
    """Runs a server until the block ends; yields its process and the line that said that it is ready."""
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for line in server.stdout:
            if ready in line:
                yield server, line
                return
        raise SystemExit(f"{command[0]} ended before it was ready")
    finally:
        server.terminate()
        server.wait()


def address_in(line: str, name: str) -> str:
    """The address that a ready line gives for "grpc", "http" or "metrics"."""
    return re.search(rf"{name}=(\S+)", line)[1]


def metric(address: str, name: str) -> float:
    text = urllib.request.urlopen(f"http://{address}/metrics", timeout=10).read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if re.match(rf"{name}(\{{.*\}})? ", line))


def wait_for(condition, seconds: float, what: str):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"waited {seconds} s in vain for {what}")
        time.sleep(0.05)
