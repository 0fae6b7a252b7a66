#!/usr/bin/env python3
"""What the replica's wire costs, with the scripted engine, beside a bare gRPC server in the same run. Prints a table.

Usage: bench/wire.py BUILD_DIR      (a release tree; builds sluice, bare_server and wire_load in it; needs ghz in the PATH)
"""

import json
import pathlib
import subprocess
import sys
import tempfile

from process import address_in, cpu_seconds, free_port, metric, rss_bytes, serving, wait_for

ROOT = pathlib.Path(__file__).resolve().parent.parent
STREAMS = 10_000


def sluice(build, *flags):
    return serving([f"{build}/sluice", "replica", "--engine", "scripted", "--listen", "127.0.0.1:0",
                    "--metrics-listen", "127.0.0.1:0", "--log-level", "error", *flags])


def bare(build, port, *step_ms):
    return serving([f"{build}/bench/bare_server", str(port), *step_ms])


def ghz(address):
    report = subprocess.run(
        ["ghz", "--insecure", "--proto", str(ROOT / "proto/inference.proto"), "--call", "inference.LLM.Generate",
         "-d", '{"model":"local","max_tokens":50}', "-c", "100", "-n", "10000", "-O", "json", address],
        check=True, capture_output=True, text=True).stdout
    counts = json.loads(report)["statusCodeDistribution"]
    if counts != {"OK": 10000}:
        raise SystemExit(f"ghz: {counts}")


def load(build, name, address, *arguments):
    done = subprocess.run([f"{build}/bench/wire_load", name, address, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"wire_load {name}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def burst_us_per_token(pid, address):
    ghz(address)  # warm
    before = cpu_seconds(pid)
    ghz(address)
    return (cpu_seconds(pid) - before) / (10_000 * 50) * 1e6


def paced_us_per_token(build, pid, address, name):
    before = cpu_seconds(pid)
    tokens = load(build, name, address, 400, 100, 15)["tokens"]
    return (cpu_seconds(pid) - before) / tokens * 1e6


def held_bytes_per_stream(build, pid, address, name, is_open):
    before = rss_bytes(pid)
    holder = subprocess.Popen([f"{build}/bench/wire_load", name, address, str(STREAMS)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    holder.stdout.readline()
    wait_for(is_open, 60, f"{STREAMS} open streams")
    held = rss_bytes(pid) - before
    holder.stdin.close()
    holder.wait()
    return held / STREAMS


def main(build):
    subprocess.run(["ninja", "-C", build, "sluice", "bare_server", "wire_load"], check=True, stdout=subprocess.DEVNULL)
    rows = []
    port = free_port()
    with bare(build, port) as (server, _):
        rows.append(("burst, ghz -c 100 -n 10000, 50 tokens", "bare server", burst_us_per_token(server.pid, f"127.0.0.1:{port}"), "µs CPU/token"))
    with sluice(build) as (server, line):
        rows.append(("", "sluice, Generate", burst_us_per_token(server.pid, address_in(line, "grpc")), "µs CPU/token"))
    port = free_port()
    with bare(build, port, "20") as (server, _):
        rows.append(("paced, 400 requests at 20 ms", "bare server, a call for each request",
                     paced_us_per_token(build, server.pid, f"127.0.0.1:{port}", "generate"), "µs CPU/token"))
    for name in ("generate", "attach"):
        with sluice(build, "--step-ms", "20") as (server, line):
            rows.append(("", f"sluice, {name.title()}",
                         paced_us_per_token(build, server.pid, address_in(line, "grpc"), name), "µs CPU/token"))
    port = free_port()
    with bare(build, port) as (server, _):
        settled = [0]

        def is_open():  # the bare server tells nobody what it holds
            rss = rss_bytes(server.pid)
            grown, settled[0] = rss > settled[0], rss
            return not grown and rss > STREAMS * 8192

        rows.append((f"{STREAMS} open streams, one connection", "bare server",
                     held_bytes_per_stream(build, server.pid, f"127.0.0.1:{port}", "hold-generate", is_open) / 1000, "kB RSS/stream"))
    with tempfile.NamedTemporaryFile("w", suffix=".script") as script:
        script.write("piece \"x\"\nhang\n")  # the piece is for the warm-up
        script.flush()
        for name in ("generate", "attach"):
            with sluice(build, "--step-ms", "1000", "--script", script.name) as (server, line):
                metrics = address_in(line, "metrics")
                held = held_bytes_per_stream(build, server.pid, address_in(line, "grpc"), f"hold-{name}",
                                             lambda: metric(metrics, "sluice_running_sequences") == STREAMS)
                rows.append(("", f"sluice, {name.title()}", held / 1000, "kB RSS/stream"))
    for what, who, value, unit in rows:
        print(f"| {what} | {who} | {value:.2f} {unit} |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
