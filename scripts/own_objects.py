"""Prints the object files of our own sources in a build tree: all that an analysis has to compile, and nothing of llama.cpp's."""

import json
import os
import pathlib
import sys

tree = pathlib.Path(sys.argv[1])
root = pathlib.Path.cwd()
for entry in json.loads((tree / "compile_commands.json").read_text()):
    file = pathlib.Path(entry["file"])
    if file.is_relative_to(root / "src") or file.is_relative_to(root / "fuzz"):
        print(os.path.relpath(root / tree / entry["output"], root / tree))
