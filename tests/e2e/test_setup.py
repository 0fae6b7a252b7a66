"""What ./run does before it builds, on machines that this one is not."""

import fcntl
import subprocess

import harness


def setup(commands: str) -> str:
    """Runs `commands` behind scripts/setup.sh as ./run does; what would need root is only said. Gives what was said."""
    script = f'set -euo pipefail; root=$PWD; source scripts/setup.sh; as_root() {{ say "as root: $*"; }}; {commands}; say "went on"'
    run = subprocess.run(["bash", "-c", script], cwd=harness.ROOT, check=False, capture_output=True, text=True)
    assert run.stderr.endswith("went on\n"), run.stderr
    return run.stderr


def test_a_package_that_dpkg_has_never_heard_of_is_installed():
    said = setup("need_packages 'try this' bash a-package-that-nobody-made")
    assert "installing 1 Debian packages to try this (none is removed): a-package-that-nobody-made" in said
    assert "--no-remove" in said


def test_where_all_is_there_nothing_is_installed():
    assert setup("need_packages 'try this' bash coreutils") == "sluice: went on\n"


def test_what_could_not_be_made_leaves_nothing_in_the_cache(tmp_path):
    said = setup(f"cache={tmp_path}; (in_cache broken bash -c 'touch half; exit 1') || true")
    assert f"making {tmp_path}/broken failed" in said
    assert [entry.name for entry in tmp_path.iterdir()] == [".lock"]


def test_a_second_build_in_a_folder_says_that_it_waits_for_the_first(tmp_path):
    (tmp_path / "build").mkdir()
    script = f'set -euo pipefail; root={harness.ROOT}; source $root/scripts/setup.sh; build_alone() {{ say "builds $*"; }}; build release sluice'
    with (tmp_path / "build/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run = subprocess.Popen(["bash", "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        with run:
            assert "waiting" in run.stderr.readline()
            assert run.poll() is None
            fcntl.flock(lock, fcntl.LOCK_UN)
            assert run.stderr.read() == "sluice: builds release sluice\n" and run.wait(10) == 0
