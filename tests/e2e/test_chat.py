"""`sluice chat`, as a person and as a pipe use it."""

import os
import pty
import select
import signal
import subprocess
import time

import pytest
from harness import BINARY, until


def chat(server, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess:
    line = [str(BINARY), "chat", "--server", server.address, *arguments]
    return subprocess.run(line, input=text or "", capture_output=True, text=True, timeout=60, check=False)


def test_a_prompt_as_argument_prints_the_answer_alone(replica):
    done = chat(replica, "--temperature", "0", "--max-tokens", "24", "Name the capital city of France.")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout and "\x1b" not in done.stdout


def test_a_prompt_from_a_pipe(replica):
    done = chat(replica, "--temperature", "0", "--max-tokens", "24", text="Name the capital city of Italy.")
    assert done.returncode == 0, done.stderr
    assert "Rome" in done.stdout and "\x1b" not in done.stdout


def test_a_pipe_and_a_question_go_along_together_the_pipe_first(scripted):
    server = scripted(script="echo\n")
    assert chat(server, "Which one?", text="Apples.\nPears.\n").stdout.strip().endswith("Apples.\nPears.\n\nWhich one?")
    assert chat(server, "Which one?", text="").stdout.strip().endswith("Which one?")
    large = chat(server, "hi", text="x" * (51 << 20))
    assert large.returncode == 1 and "stdin" in large.stderr


def test_a_question_does_not_wait_for_an_empty_device_and_says_that_it_waits_for_a_pipe(scripted):
    line = [str(BINARY), "chat", "--server", scripted(script="echo\n").address, "hello"]
    quiet = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)
    assert quiet.stdout.strip().endswith("hello") and not quiet.stderr
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert "stdin" in process.stderr.readline()
        assert process.communicate("first", timeout=20)[0].strip().endswith("first\n\nhello")


def test_a_file_goes_along_as_a_part(replica, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("The secret word is banana.")
    done = chat(replica, "--temperature", "0", "--max-tokens", "24", "--file", str(note), "What is the secret word?")
    assert done.returncode == 0, done.stderr
    assert "banana" in done.stdout.lower()


def test_a_system_text_is_taken(replica):
    done = chat(replica, "--system", "You are a pirate.", "--max-tokens", "16", "Hello!")
    assert done.returncode == 0 and done.stdout.strip()


@pytest.mark.parametrize("arguments", [["--file", "no-such-file", "hi"], ["--server", "127.0.0.1:1", "hi"], ["--server", "", "hi"]], ids=["file", "server", "no server"])
def test_what_goes_wrong_is_said_in_a_line_on_stderr(replica, arguments):
    done = chat(replica, *arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1 and arguments[1] in done.stderr


def test_an_answer_that_cant_be_written_is_an_error(scripted):
    server = scripted(step_ms=5)
    line = [str(BINARY), "chat", "--server", server.address, "go on for ever"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "stdout" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    server.until_idle()
    closed = subprocess.run(["sh", "-c", 'exec "$@" >&- </dev/null', "sh", *line], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert closed.returncode == 1 and "stdout" in closed.stderr and len(closed.stderr.strip().splitlines()) == 1


def test_ctrl_c_ends_a_single_answer(scripted):
    server = scripted(step_ms=20)
    line = [str(BINARY), "chat", "--server", server.address, "go on for ever"]
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130 and process.stderr.read() == b""
    server.until_idle()


def test_a_timeout_is_an_error(scripted):
    server = scripted(step_ms=20)
    done = chat(server, "--timeout", "0.2", "go on for ever")
    assert done.returncode == 1 and len(done.stderr.strip().splitlines()) == 1
    server.until_idle()


class Terminal:
    """`sluice chat` on a terminal of its own."""

    def __init__(self, *arguments: str):
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(BINARY, [str(BINARY), "chat", *arguments])
        self.seen = ""

    def read(self) -> str:
        while select.select([self.descriptor], [], [], 0)[0]:
            try:
                self.seen += os.read(self.descriptor, 4096).decode(errors="replace")
            except OSError:
                break
        return self.seen

    def type(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def wait(self) -> int:
        status = until(lambda: (os.waitpid(self.pid, os.WNOHANG)[0] and (True,)), "the chat's end")
        os.close(self.descriptor)
        return bool(status)


def test_ctrl_c_stops_the_answer_and_not_the_chat(scripted):
    server = scripted(step_ms=20)
    terminal = Terminal("--server", server.address)
    try:
        terminal.type("go on for ever\r")
        until(lambda: terminal.read().count("token") >= 3, "some of the answer")
        terminal.type("\x03")
        server.until_idle()
        os.kill(terminal.pid, 0)
        before = terminal.read().count("token")
        terminal.type("once more\r")
        until(lambda: terminal.read().count("token") > before + 3, "a second answer")
        terminal.type("\x03")
        server.until_idle()
        assert "tok/s" in terminal.read() or "tokens/s" in terminal.read()
        terminal.type("\x04")
        terminal.wait()
    except BaseException:
        os.kill(terminal.pid, signal.SIGKILL)
        raise


def test_the_history_goes_along(scripted):
    server = scripted(script="echo\n")
    terminal = Terminal("--server", server.address)
    try:
        terminal.type("marmalade\r")
        until(lambda: server.metric("sluice_requests_ended_total", how="finished") >= 1, "a first answer")
        seen = server.metric("sluice_prompt_tokens_total")
        terminal.type("again\r")
        until(lambda: terminal.read().count("marmalade") >= 3, "the first message in the second prompt")
        assert server.metric("sluice_prompt_tokens_total") > seen
        terminal.type("\x04")
        terminal.wait()
    except BaseException:
        os.kill(terminal.pid, signal.SIGKILL)
        raise


def test_without_a_server_the_default_model_is_served_in_process(tmp_path):
    line = [str(BINARY), "chat", "--temperature", "0", "--max-tokens", "24", "Name the capital city of France."]
    begin = time.monotonic()
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout and time.monotonic() - begin < 60
