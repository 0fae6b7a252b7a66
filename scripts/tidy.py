"""Runs clang-tidy over our own sources, two at a time, and remembers by content which of them were clean.

Usage: tidy.py BUILD_TREE CACHE_FOLDER. Last line: N passed, N failed.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path.cwd()
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def own_text(file: pathlib.Path, seen: dict[pathlib.Path, bytes]) -> dict[pathlib.Path, bytes]:
    """The file and every header of ours that it includes, directly or not."""
    if file not in seen and file.is_file():
        seen[file] = file.read_bytes()
        for name in INCLUDE.findall(seen[file].decode()):
            own_text(ROOT / "src" / name, seen)
    return seen


def main() -> int:
    tree, cache = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    common = version + (ROOT / ".clang-tidy").read_bytes() + (ROOT / "proto/inference.proto").read_bytes()

    def check(entry: dict) -> tuple[str, str]:
        file = pathlib.Path(entry["file"])
        name = str(file.relative_to(ROOT))
        command = entry.get("command", "").replace(str(ROOT), "")
        texts = own_text(file, {})
        key = hashlib.sha256(common + command.encode() + b"\0".join(texts[at] for at in sorted(texts))).hexdigest()
        if (cache / key).exists():
            return name, ""
        run = subprocess.run(
            ["clang-tidy", "--quiet", "-p", str(tree), str(file)], capture_output=True, text=True, check=False
        )
        if run.returncode == 0:
            (cache / key).touch()
            return name, ""
        return name, run.stdout + run.stderr

    entries = [
        entry
        for entry in json.loads((tree / "compile_commands.json").read_text())
        if any(pathlib.Path(entry["file"]).is_relative_to(ROOT / folder) for folder in ("src", "fuzz", "bench"))
    ]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, (name, complaint) in enumerate(pool.map(check, entries), start=1):
            if complaint:
                failed += 1
                print(complaint)
            if complaint or done % 10 == 0:
                print(f"[{done}/{len(entries)}] clang-tidy {name}", flush=True)
    print(f"{len(entries) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
