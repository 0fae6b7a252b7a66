"""Prints the object files of our own sources in a build tree: all that an analysis has to compile, and nothing of llama.cpp's."""

import json
import pathlib
import re
import sys

tree = pathlib.Path(sys.argv[1])
root = pathlib.Path.cwd()
for entry in json.loads((tree / "compile_commands.json").read_text()):
    file = pathlib.Path(entry["file"])
    if any(file.is_relative_to(root / folder) for folder in ("src", "fuzz", "bench")):
        print(re.search(r" -o (\S+)", entry["command"])[1])
