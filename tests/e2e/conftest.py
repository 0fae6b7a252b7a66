"""Fixtures of the end-to-end tests: stubs made from the contract, servers with the real model and with the scripted engine."""

import contextlib
import itertools
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

import pytest
from certificates import Authority
from grpc_tools import protoc
from harness import ROOT, Server, key_command

_stubs = tempfile.TemporaryDirectory(prefix="sluice-stubs-")


def pytest_configure() -> None:
    """Makes the stubs before test modules import them."""
    made = protoc.main(
        ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={_stubs.name}", f"--grpc_python_out={_stubs.name}", "inference.proto"]
    )
    assert made == 0, "protoc could not make the stubs"
    sys.path.insert(0, _stubs.name)


def pytest_unconfigure() -> None:
    _stubs.cleanup()


@contextlib.contextmanager
def left_idle(server: Server) -> Iterator[Server]:
    """One process serves all tests; each leaves it idle and alive."""
    server.until_idle()
    yield server
    server.hang_up()
    assert server.alive(), server.log()
    server.until_idle()


@pytest.fixture(scope="session")
def shared_replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with contextlib.closing(Server(tmp_path_factory.mktemp("replica"))) as server:
        yield server


@pytest.fixture
def replica(shared_replica: Server) -> Iterator[Server]:
    """The real model with default settings."""
    with left_idle(shared_replica) as server:
        yield server


@pytest.fixture(scope="session")
def shared_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with contextlib.closing(Server(tmp_path_factory.mktemp("up"), command="up")) as server:
        yield server


@pytest.fixture
def up(shared_up: Server) -> Iterator[Server]:
    """`sluice up` with the real model: replica and gateway in one process."""
    with left_idle(shared_up) as server:
        yield server


@pytest.fixture(scope="session")
def shared_edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("edge")
    (folder / "script").write_text('piece "token "\n' * 5)
    flags = ["--engine", "scripted", "--warm-up", "false", "--script", str(folder / "script")]
    with contextlib.closing(Server(folder, *flags, command="up")) as server:
        yield server


@pytest.fixture
def edge(shared_edge: Server) -> Iterator[Server]:
    """`sluice up` whose scripted engine says five tokens, without keys: for what is refused, and how answers look."""
    with left_idle(shared_edge) as server:
        yield server


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Iterator[Callable[..., Server]]:
    """start(*flags): a replica of the test's own."""
    numbers = itertools.count()
    with contextlib.ExitStack() as servers:  # the last that was started ends first, and all of them do

        def make(*arguments: str, command: str = "replica") -> Server:
            folder = tmp_path / f"server{next(numbers)}"
            folder.mkdir()
            return servers.enter_context(contextlib.closing(Server(folder, *arguments, command=command)))

        yield make


@pytest.fixture
def scripted(start: Callable[..., Server], tmp_path: pathlib.Path) -> Callable[..., Server]:
    """scripted(*flags, script="…", step_ms=N): a replica with the scripted engine, not warmed up: its counters begin at zero."""

    def make(*arguments: str, script: str | None = None, step_ms: int = 0) -> Server:
        flags = ["--engine", "scripted", "--step-ms", str(step_ms), "--warm-up", "false"]
        if script is not None:
            file = tmp_path / "script"
            file.write_text(script)
            flags += ["--script", str(file)]
        return start(*flags, *arguments)

    return make


@pytest.fixture
def gateway(start: Callable[..., Server]) -> Callable[..., Server]:
    """gateway(replica, …, flags=[…]): a gateway of the test's own, which knows that these replicas take requests."""

    def make(*replicas: Server, flags: Sequence[str] = ()) -> Server:
        named = [word for replica in replicas for word in ("--replica", replica.address)]
        server = start(*named, *flags, command="gateway")
        server.until_metric("sluice_gateway_replica_up", lambda up: up == len(replicas))
        return server

    return make


@pytest.fixture
def keys(tmp_path: pathlib.Path) -> Callable[..., str]:
    """keys(name, *limits): a new API key in the file `keys.file`."""
    file = tmp_path / "keys"

    def add(name: str, *limits: str) -> str:
        return key_command("add", "--api-keys", str(file), name, *limits)

    add.file = file
    return add


@pytest.fixture
def authority(tmp_path: pathlib.Path) -> Authority:
    return Authority(tmp_path, "authority")
