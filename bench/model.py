#!/usr/bin/env python3
"""Tokens per second of the real model for concurrent chats: Sluice's defaults beside llama-server's, in turns, in one run.

Usage: bench/model.py BUILD_DIR MODEL.gguf [STREAMS [ROUNDS]]
BUILD_DIR is a release tree configured with -DSLUICE_PEERS=ON; sluice, wire_load and llama-server are built in it. Needs wrk.
"""

import json
import os
import re
import statistics
import subprocess
import sys

from process import address_in, cpu_seconds, free_port, serving, wait_for

MAX_TOKENS = 48
SECONDS = 40


def sluice(build, model, streams):
    with serving([f"{build}/sluice", "replica", "--model", model, "--listen", "127.0.0.1:0", "--metrics-listen", "off",
                  "--log-level", "error"]) as (server, line):
        load = [f"{build}/bench/wire_load", "chat", address_in(line, "grpc"), str(streams), str(MAX_TOKENS)]
        subprocess.run([*load, "3"], check=True, stdout=subprocess.DEVNULL)
        before = cpu_seconds(server.pid)
        counts = json.loads(subprocess.run([*load, str(SECONDS)], check=True, capture_output=True, text=True).stdout)
        # As wrk counts: what was finished within the time.
        return counts["finished"] * MAX_TOKENS / SECONDS, (cpu_seconds(server.pid) - before) / counts["tokens"] * 1e3


def healthy(port):
    return subprocess.run(["curl", "-sf", f"http://127.0.0.1:{port}/health"], capture_output=True).returncode == 0


def llama_server(build, model, streams):
    port = free_port()
    server = subprocess.Popen([f"{build}/bin/llama-server", "-m", model, "--port", str(port), "-np", str(streams)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: healthy(port), 60, "llama-server")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chat.lua")

        def wrk(seconds):
            return subprocess.run(["wrk", "-t1", f"-c{streams}", f"-d{seconds}s", "--timeout", "120s", "-s", script,
                                   f"http://127.0.0.1:{port}/"], check=True, capture_output=True, text=True,
                                  env={**os.environ, "MAX_TOKENS": str(MAX_TOKENS)}).stdout

        wrk(3)
        before = cpu_seconds(server.pid)
        report = wrk(SECONDS)
        requests, seconds = re.search(r"(\d+) requests in ([\d.]+)s", report).groups()
        if "Non-2xx" in report:
            raise SystemExit(report)
        tokens = int(requests) * MAX_TOKENS
        return tokens / float(seconds), (cpu_seconds(server.pid) - before) / tokens * 1e3
    finally:
        server.terminate()
        server.wait()


def main(build, model, streams=32, rounds=2):
    subprocess.run(["ninja", "-C", build, "sluice", "wire_load", "llama-server"], check=True, stdout=subprocess.DEVNULL)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(sluice(build, model, streams))
        theirs.append(llama_server(build, model, streams))
    for name, results in (("sluice replica", ours), ("llama-server", theirs)):
        print(f"| {name} | {streams} streams | {statistics.median(r[0] for r in results):.0f} tokens/s "
              f"| {statistics.median(r[1] for r in results):.2f} ms CPU/token |")
    print(f"ratio: {statistics.median(r[0] for r in ours) / statistics.median(r[0] for r in theirs):.2f}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
