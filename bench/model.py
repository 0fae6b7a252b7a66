#!/usr/bin/env python3
"""Tokens per second of the real model for concurrent chats: Sluice's defaults beside llama-server's, in turns, in one run.

Usage: bench/model.py BUILD_DIR MODEL.gguf [STREAMS [ROUNDS]]
BUILD_DIR is a release tree configured with -DSLUICE_PEERS=ON; sluice, wire_load and llama-server are built in it.
Both answer the same questions, as many at a time as there are streams; all answers are streamed and counted to the last.
"""

import concurrent.futures
import http.client
import json
import statistics
import subprocess
import sys
import time

from process import address_in, cpu_seconds, free_port, serving, wait_for

MAX_TOKENS = 48
QUESTIONS_PER_STREAM = 3


def sluice(build, model, streams):
    with serving([f"{build}/sluice", "replica", "--model", model, "--listen", "127.0.0.1:0", "--metrics-listen", "off",
                  "--log-level", "error"]) as (server, line):
        def ask(questions):
            load = [f"{build}/bench/wire_load", "chat", address_in(line, "grpc"), str(streams), str(MAX_TOKENS), str(questions)]
            return json.loads(subprocess.run(load, check=True, capture_output=True, text=True).stdout)

        ask(streams)
        before = cpu_seconds(server.pid)
        counts = ask(QUESTIONS_PER_STREAM * streams)
        return counts["tokens"] / counts["seconds"], (cpu_seconds(server.pid) - before) / counts["tokens"] * 1e3


def tokens_of(port, number):
    """Asks llama-server one question, streamed, and returns how many tokens it says the answer had."""
    body = {"stream": True, "temperature": 0, "ignore_eos": True, "max_tokens": MAX_TOKENS,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": f"{number}: what is remarkable about the number {number}?"}]}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(answer.read())
    chunks = [json.loads(line[6:]) for line in answer if line.startswith(b"data: {")]
    return sum(chunk["usage"]["completion_tokens"] for chunk in chunks if chunk.get("usage"))


def healthy(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


def llama_server(build, model, streams):
    port = free_port()
    server = subprocess.Popen([f"{build}/bin/llama-server", "-m", model, "--port", str(port), "-np", str(streams)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: healthy(port), 60, "llama-server")
        with concurrent.futures.ThreadPoolExecutor(streams) as pool:
            sum(pool.map(lambda number: tokens_of(port, number), range(100_001, 100_001 + streams)))
            before, begin = cpu_seconds(server.pid), time.monotonic()
            tokens = sum(pool.map(lambda number: tokens_of(port, number), range(1, QUESTIONS_PER_STREAM * streams + 1)))
            seconds = time.monotonic() - begin
        return tokens / seconds, (cpu_seconds(server.pid) - before) / tokens * 1e3
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
