#!/usr/bin/env python3
"""What the gateway costs, with the scripted engine, beside Envoy's gRPC-JSON transcoder in front of the same replica, in one run.

Usage: bench/gateway.py BUILD_DIR ENVOY      (a release tree, in which it builds what it needs, and an envoy binary; needs wrk and protoc)
Processor time is that of the gateway's process alone, unless a row says otherwise.
"""

import json
import os
import pathlib
import re
import socket
import string
import subprocess
import sys
import tempfile

from process import address_in, cpu_seconds, free_port, metric, rss_bytes, serving, wait_for

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
IDLE_STREAMS = 5_000


def replica(build, *flags):
    return serving([f"{build}/sluice", "replica", "--engine", "scripted", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
                    "--log-level", "error", *flags])


def gateway(build, replica_address):
    return serving([f"{build}/sluice", "gateway", "--replica", replica_address, "--listen", "127.0.0.1:0",
                    "--metrics-listen", "127.0.0.1:0", "--access-log", "off", "--log-level", "error"])


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Envoy:
    def __init__(self, binary, replica_address, folder):
        self.port = free_port()
        subprocess.run(["protoc", f"-I{ROOT}/proto", "--include_imports", f"--descriptor_set_out={folder}/descriptor",
                        "inference.proto"], check=True)
        template = string.Template((HERE / "envoy.yaml").read_text().split("\n", 1)[1])
        config = pathlib.Path(folder) / "envoy.yaml"
        config.write_text(template.substitute(listen=self.port, descriptor=f"{folder}/descriptor",
                                              replica=replica_address.rsplit(":", 1)[1]))
        self.process = subprocess.Popen([binary, "-c", str(config), "--concurrency", "2", "-l", "error", "--use-dynamic-base-id"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: listens(self.port), 20, "Envoy")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def wrk(script, port, connections, tokens, seconds, stream="true"):
    """Requests per second and the 99th percentile of their latency in ms."""
    report = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "--timeout", "30s", "-s", str(HERE / script),
         f"http://127.0.0.1:{port}/"],
        check=True, capture_output=True, text=True, env={**os.environ, "TOKENS": str(tokens), "STREAM": stream}).stdout
    if "Non-2xx" in report or "Socket errors" in report:
        raise SystemExit(report)
    requests, spent = re.search(r"(\d+) requests in ([\d.]+)s", report).groups()
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", report).groups()
    return float(requests) / float(spent), float(value) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def measured(pid, script, port, connections, tokens, seconds, stream="true"):
    """Tokens per second, µs of processor time per token, requests per second, p99 in ms."""
    wrk(script, port, connections, tokens, 2, stream)
    before = cpu_seconds(pid)
    rate, p99 = wrk(script, port, connections, tokens, seconds, stream)
    cpu = cpu_seconds(pid) - before
    return rate * tokens, cpu / (rate * tokens * seconds) * 1e6, rate, p99


def one_token_us(build, load, address):
    """The median time of an answer of one token, each after the other on one connection."""
    line = [f"{build}/bench/wire_load", load, address, "1", "1", "2000"]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout)["p50_us"]


def idle_streams(build, row):
    with tempfile.NamedTemporaryFile("w", suffix=".script") as script:
        script.write('piece "x"\nhang\n')
        script.flush()
        with replica(build, "--script", script.name) as (_, line), gateway(build, address_in(line, "grpc")) as (edge, ready):
            empty = rss_bytes(edge.pid)
            row("idle", "sluice", empty / 1e6, "MB RSS")
            host, port = address_in(ready, "http").rsplit(":", 1)
            body = b'{"model":"local","stream":true,"messages":[{"role":"user","content":"go"}]}'
            head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            streams = []
            for _ in range(IDLE_STREAMS):
                streams.append(socket.create_connection((host, int(port))))
                streams[-1].sendall(head + body)
                streams[-1].recv(1)
            metrics = address_in(ready, "metrics")
            wait_for(lambda: metric(metrics, "sluice_gateway_open_streams") == IDLE_STREAMS, 60, "open streams")
            row(f"{IDLE_STREAMS} open streams", "sluice", (rss_bytes(edge.pid) - empty) / IDLE_STREAMS / 1e3, "kB RSS each")


def beside_envoy(build, envoy, name, flags, connections, tokens, seconds, stream, report):
    with replica(build, *flags) as (server, line), tempfile.TemporaryDirectory() as folder:
        address = address_in(line, "grpc")
        with gateway(build, address) as (edge, ready), Envoy(envoy, address, folder) as peer:
            before = cpu_seconds(server.pid)
            ours = measured(edge.pid, "chat.lua", address_in(ready, "http").rsplit(":", 1)[1], connections, tokens, seconds, stream)
            replica_us = (cpu_seconds(server.pid) - before) / (ours[0] * (seconds + 2)) * 1e6
            theirs = measured(peer.process.pid, "transcoded.lua", peer.port, connections, tokens, seconds)
            report(name, ours, theirs, replica_us)


def bare_writer_us(build, tokens, step_ms, seconds):
    """What the system alone takes for one small write on each of 400 connections at that pace."""
    port = free_port()
    with subprocess.Popen([f"{build}/bench/bare_writer", str(port), str(tokens), str(step_ms)]) as writer:
        wait_for(lambda: listens(port), 10, "bare_writer")
        _, us, _, _ = measured(writer.pid, "chat.lua", port, 400, tokens, seconds)
        writer.kill()
    return us


def main(build, envoy):
    subprocess.run(["ninja", "-C", build, "sluice", "wire_load", "bare_writer"], check=True, stdout=subprocess.DEVNULL)

    def row(what, who, value, unit):
        print(f"| {what} | {who} | {value:.2f} {unit} |", flush=True)

    def tokens(name, ours, theirs, replica_us):
        row(name, "sluice", ours[1], "µs CPU/token")
        row("", "sluice, gateway and replica", ours[1] + replica_us, "µs CPU/token")
        row("", "envoy", theirs[1], "µs CPU/token")
        row("", "sluice", ours[0], "tokens/s")
        row("", "envoy", theirs[0], "tokens/s")

    def requests(name, ours, theirs, _):
        row(name, "sluice", ours[2], "requests/s")
        row("", "envoy", theirs[2], "requests/s")
        row("", "sluice", ours[3], "ms p99")
        row("", "envoy", theirs[3], "ms p99")

    beside_envoy(build, envoy, "paced, 400 streams at 20 ms", ["--step-ms", "20"], 400, 100, 12, "true", tokens)
    row("", "a bare send() of the same size", bare_writer_us(build, 100, 20, 12), "µs CPU/token")
    beside_envoy(build, envoy, "burst, 32 connections", [], 32, 100, 8, "true", tokens)
    beside_envoy(build, envoy, "unary, one token, 64 connections", [], 64, 1, 8, "false", requests)
    with replica(build) as (_, line), gateway(build, address_in(line, "grpc")) as (_, ready):
        direct = one_token_us(build, "first-grpc", address_in(line, "grpc"))
        through = one_token_us(build, "first-http", address_in(ready, "http"))
        row("an answer of one token, one stream", "sluice", through, "µs p50")
        row("", "gRPC without a gateway", direct, "µs p50")
        row("", "sluice, added", through - direct, "µs p50")
    idle_streams(build, row)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
