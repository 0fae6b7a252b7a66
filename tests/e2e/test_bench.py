"""`sluice bench` against servers whose answers are known: its figures are theirs."""

import json
import os
import pathlib
import subprocess

from harness import BINARY


def bench(*arguments: str, code: int = 0, **environment: str) -> dict:
    """One run's JSON."""
    ended = subprocess.run(
        [str(BINARY), "bench", *arguments, "--json", "-"], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    assert ended.returncode == code, ended.stderr
    return json.loads(ended.stdout)


def refused(*arguments: str) -> str:
    ended = subprocess.run([str(BINARY), "bench", *arguments], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1, ended.stdout
    return ended.stderr


ALL = ["--warm-up", "0"]


def test_grpc_closed_loop_counts_every_token(scripted):
    server = scripted(step_ms=5)
    result = bench(
        server.address, *ALL, "--requests", "40", "--concurrency", "8", "--output-tokens", "10", "--channels", "2", "--server-pid", str(server.pid)
    )
    assert result["requests"]["succeeded"] == 40
    assert result["requests"]["failed"] == 0
    assert result["tokens"]["completion"] == 400
    assert result["tokens"]["received"] == 400
    assert result["tokens"]["prompt"] > 40 * 32
    assert result["latency"]["ttft"]["count"] == 40
    assert result["latency"]["queue"]["count"] == 40
    assert result["latency"]["itl"]["p50_ms"] > 4
    assert result["latency"]["e2e"]["min_ms"] > 9 * 5
    assert result["servers"][0]["cpu_seconds"] >= 0
    server.until_idle()
    assert server.metric("sluice_requests_ended_total", how="finished") == 40


def test_step_stream_counts_every_token(scripted):
    server = scripted(step_ms=5)
    shape = ["--requests", "40", "--concurrency", "8", "--output-tokens", "10", "--channels", "2"]
    result = bench(server.address, *ALL, *shape, "--attach", "--cancel-share", "0.3", "--cancel-after-tokens", "4", "--slow-share", "0.2", "--slow-rate", "100")
    done, cancelled = result["requests"]["succeeded"], result["requests"]["cancelled"]
    assert done + cancelled == 40 and cancelled > 3 and result["requests"]["slow_readers"] > 0
    assert result["tokens"]["completion"] == 10 * done
    assert result["latency"]["ttft"]["count"] == 40
    assert server.metric("sluice_calls_total", method="Generate") == 0
    server.until_idle()


def test_rest_counts_every_token(start):
    server = start("--engine", "scripted", "--step-ms", "5", "--warm-up", "false", command="up")
    result = bench(
        f"http://{server.http}", *ALL, "--requests", "40", "--concurrency", "8", "--output-tokens", "10", "--server-metrics", server.metrics_address
    )
    assert result["requests"]["succeeded"] == 40
    assert result["tokens"]["completion"] == 400
    assert result["tokens"]["received"] > 300  # an event may stand for two tokens
    assert result["latency"]["ttft"]["count"] == 40
    assert result["tokens"]["messages"] > 300  # each is seen when it comes, not at the end
    assert result["latency"]["itl"]["p50_ms"] > 4
    assert result["latency"]["ttft"]["p50_ms"] < result["latency"]["e2e"]["p50_ms"] / 2
    assert result["latency"]["e2e"]["min_ms"] > 9 * 5
    assert result["servers"][0]["cpu_seconds"] is not None
    assert server.gateway_metric("sluice_http_connections_total") <= 8 + 3  # kept alive; the probe and the looks at metrics


def test_open_loop_over_both(start):
    server = start("--engine", "scripted", "--step-ms", "2", "--warm-up", "false", command="up")
    for target in (server.address, f"http://{server.http}"):
        result = bench(target, *ALL, "--rate", "100", "--arrivals", "constant", "--duration", "1", "--output-tokens", "5")
        assert result["requests"]["succeeded"] == 100
        assert result["latency"]["lateness"]["count"] == 100


def test_stall_of_the_server_shows_in_the_open_loop(scripted):
    server = scripted("--max-sequences", "1", script='prefill 300ms\npiece "a"\n')
    result = bench(server.address, *ALL, "--rate", "20", "--arrivals", "constant", "--requests", "10", "--output-tokens", "1")
    assert result["requests"]["succeeded"] == 10
    # Each waits for those before it: 300 ms of work come every 50 ms.
    assert result["latency"]["ttft"]["p99_ms"] > 2000
    assert result["latency"]["queue"]["max_ms"] > 2000


def test_errors_are_named_by_their_codes(scripted, keys):
    keys("somebody")
    server = scripted("--api-keys", str(keys.file))
    result = bench(server.address, *ALL, "--requests", "5", "--rate", "100")
    assert result["requests"]["errors"] == {"UNAUTHENTICATED": 5}
    assert result["latency"]["ttft"]["count"] == 0


def test_key_comes_from_the_environment_or_a_file(start, keys, tmp_path: pathlib.Path):
    key = keys("somebody")
    server = start("--engine", "scripted", "--warm-up", "false", "--api-keys", str(keys.file), command="up")
    (tmp_path / "key").write_text(key + "\n")
    for target in (server.address, f"http://{server.http}"):
        assert bench(target, *ALL, "--requests", "3", "--output-tokens", "3", SLUICE_API_KEY=key)["requests"]["succeeded"] == 3
        result = bench(target, *ALL, "--requests", "3", "--output-tokens", "3", "--key-file", str(tmp_path / "key"))
        assert result["requests"]["succeeded"] == 3
        assert key not in json.dumps(result)
    assert bench(f"http://{server.http}", *ALL, "--requests", "3", "--rate", "100")["requests"]["errors"] == {"401": 3}


def test_cancel_storm_leaves_nothing_behind(start):
    server = start("--engine", "scripted", "--step-ms", "2", "--warm-up", "false", command="up")
    for target in (server.address, f"http://{server.http}"):
        for when in (("--cancel-after-tokens", "3"), ("--cancel-after-ms", "20")):
            result = bench(target, *ALL, "--requests", "60", "--concurrency", "20", "--output-tokens", "1000", "--cancel-share", "1", *when)
            assert result["requests"]["cancelled"] == 60, result["requests"]
            assert result["requests"]["failed"] == 0
        server.until_idle()


def test_slow_readers_are_parked_and_the_others_are_not(scripted):
    server = scripted("--stream-deltas", "8", step_ms=1)
    result = bench(
        server.address, *ALL, "--requests", "20", "--concurrency", "10", "--output-tokens", "400", "--slow-share", "0.3", "--slow-rate", "300"
    )
    assert result["requests"]["succeeded"] == 20
    assert 0 < result["requests"]["slow_readers"] < 20
    assert result["latency"]["itl"]["p50_ms"] < 100


def test_seed_decides_the_workload(scripted):
    server = scripted()
    shape = ["--prompt-tokens", "lognormal:50,30", "--output-tokens", "uniform:5-50", "--requests", "30"]
    tokens = [bench(server.address, *ALL, *shape, "--seed", seed)["tokens"] for seed in ("1", "1", "2")]
    assert [each["prompt"] for each in tokens[:2]] == [tokens[0]["prompt"]] * 2
    assert tokens[0]["completion"] == tokens[1]["completion"]
    assert tokens[0]["prompt"] != tokens[2]["prompt"]


def test_prompts_of_a_file(scripted, tmp_path: pathlib.Path):
    server = scripted()
    (tmp_path / "prompts").write_text('{"prompt": "hello", "output_tokens": 3}\n{"messages": [{"role": "user", "content": "hi"}], "output_tokens": 5}\n')
    result = bench(server.address, *ALL, "--requests", "4", "--prompts", str(tmp_path / "prompts"))
    assert result["tokens"]["completion"] == 16


def test_reports_are_written(scripted, tmp_path: pathlib.Path):
    server = scripted(step_ms=2)
    ended = subprocess.run(
        [str(BINARY), "bench", server.address, "--duration", "2", "--html", str(tmp_path / "r.html"), "--json", str(tmp_path / "r.json")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert "time to first token" in ended.stdout
    assert "measuring" in ended.stderr  # a line a second, for stderr is no terminal
    assert json.loads((tmp_path / "r.json").read_text())["timeline"]
    page = (tmp_path / "r.html").read_text()
    assert page.count("<svg") == 5
    assert "<script" not in page and "src=" not in page


def test_tls(start, authority):
    certificate, key = authority.issue("server")
    server = start("--engine", "scripted", "--warm-up", "false", "--tls-cert", str(certificate), "--tls-key", str(key), command="up")
    port = server.http.rsplit(":", 1)[1]
    result = bench(f"https://localhost:{port}", *ALL, "--requests", "3", "--output-tokens", "3", "--ca", str(authority.certificate))
    assert result["requests"]["succeeded"] == 3, result["requests"]


def test_what_is_wrong_is_said_in_one_line(tmp_path: pathlib.Path):
    assert "nobody answers" in refused("127.0.0.1:1", "--requests", "1")
    assert "nobody listens" in refused("http://127.0.0.1:1", "--requests", "1")
    assert "--prompt-tokens" in refused("127.0.0.1:1", "--prompt-tokens", "many")
    limited = subprocess.run(
        ["bash", "-c", f"ulimit -n 256; exec {BINARY} bench http://127.0.0.1:1 --concurrency 1000"], capture_output=True, text=True, timeout=60
    )
    assert limited.returncode == 1
    assert "file descriptors" in limited.stderr and "256" in limited.stderr


def test_real_model_over_both(up):
    shape = ["--requests", "3", "--concurrency", "3", "--prompt-tokens", "4", "--output-tokens", "4", "--shared-prefix-tokens", "40"]
    for target in (up.address, f"http://{up.http}"):
        result = bench(target, *ALL, *shape)
        assert result["requests"]["succeeded"] == 3
        assert result["tokens"]["completion"] == 12
        assert result["tokens"]["prompt"] > 3 * 40
