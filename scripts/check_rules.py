"""Holds the rules of the tree that no compiler holds. Run from the project's root. Last line: N passed, N failed.

Each rule is one function that yields what breaks it, as "file:line: why".
"""

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path.cwd()
SRC = ROOT / "src"
FOLDERS = ["base", "access", "contract", "engine", "stream", "scheduler", "replica", "gateway", "load", "tools"]

# Which folders' headers a folder may include besides its own; a name with a slash is one header alone.
MAY_INCLUDE = {
    "base": set(),
    "access": {"base"},
    "contract": {"base"},
    "stream": {"base", "contract"},
    "engine": {"base", "contract"},
    "scheduler": {"base", "contract", "stream", "engine/engine.h", "engine/batch.h"},
    "replica": {"base", "access", "contract", "stream", "scheduler", "engine"},
    "gateway": {"base", "access", "contract"},
    "load": {"base", "contract", "gateway/asio.h"},
    "tools": set(FOLDERS) - {"tools"},
    "testing": set(),  # what tests of several folders need; only they include it
}

# Where a third party's headers may be included: header prefix -> files (regular expression on the path below src).
THIRD_PARTY_HOMES = {
    r"spdlog/": r"base/log\.cpp",
    r"prometheus/": r"base/metrics(_test)?\.cpp",
    r"tl/expected\.hpp": r"base/error\.h",
    r"llama|ggml|gguf|chat\.h|common\.h|mtmd": r"engine/llama_\w+\.(cpp|h)",
    r"google/protobuf/": r"gateway/step_wire\.cpp|contract/(wire|wire_client|\w+_test)\.cpp|replica/\w+\.cpp|tools/\w+\.cpp",
    r"grpc": r"contract/(wire|wire_client|\w+_test)\.cpp|replica/\w+\.(cpp|h)|gateway/(step_|replica_)\w+\.cpp|load/(grpc|attach)_\w+\.cpp|tools/\w+\.cpp",
    r"inference\.(grpc\.)?pb\.h": r"contract/(wire|wire_client|\w+_test)\.cpp|replica/\w+\.(cpp|h)|gateway/(step_|replica_)\w+\.cpp|load/(grpc|attach)_\w+\.cpp|tools/\w+\.cpp",
    r"boost/": r"gateway/.*|load/.*|tools/\w+\.cpp",
    r"nghttp2/": r"gateway/http2_session(_test)?\.cpp",
    r"openssl/": r"access/\w+\.cpp|gateway/tls_context\.cpp|testing/certificates\.cpp|replica/\w+\.cpp|tools/\w+\.cpp",
    r"toml\+\+/": r"tools/config_file\.cpp",
    r"CLI/": r"tools/\w+\.cpp",
    r"gtest/|gmock/": r".*(_test\.cpp|/test_\w+\.(cpp|h))",
}

# Headers of ours that may include a third party's, and whose.
HEADERS_WITH_THIRD_PARTY = {
    "base/error.h": r"tl/expected\.hpp",
    "engine/llama": r"llama|ggml|gguf|chat\.h|common\.h",
    "replica/": r"grpc|inference\.",
    "gateway/": r"boost/",
    "load/load_run_state.h": r"boost/",
    "load/rest_stream.h": r"boost/",
}

# The engine without a model is what every test above the engine stands on. The gateway's tests talk to a real replica, as the
# gateway's other side is nothing but that.
TESTS_MAY_INCLUDE = {"engine/scripted_engine.h", "testing/certificates.h", "testing/folder.h"}
GATEWAY_TESTS_MAY_INCLUDE = {"replica/replica.h"}

MOST_FILE_LINES = 350
MOST_TEST_FILE_LINES = 550
MOST_FUNCTION_LINES = 60

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
FORBIDDEN_TEXT = [
    (re.compile(r"https?://(?!(localhost|127\.0\.0\.1|\[?::1)\b)[\w.]*(pypi|pythonhosted|npmjs|crates\.io|golang\.org|debian\.org)"), "names a package registry's host"),
    (re.compile(r"(?<![\w./])/(work|tmp/(?!\{|\$)[a-z]|root|home/\w)[\w/.-]*"), "names a path of one machine"),
    (re.compile(r"\bTODO\b|\bFIXME\b|\bXXX\b"), "leaves work undone in a comment"),
    (re.compile(r"^(<{7}|>{7}) "), "is an unresolved merge"),
]


def sources(*patterns: str) -> Iterator[pathlib.Path]:
    for folder in (SRC, ROOT / "fuzz", ROOT / "bench"):
        for pattern in patterns:
            yield from sorted(folder.rglob(pattern))


def numbered(file: pathlib.Path) -> list[tuple[int, str]]:
    return list(enumerate(file.read_text(encoding="utf-8").splitlines(), start=1))


def includes(file: pathlib.Path) -> Iterator[tuple[int, bool, str]]:
    """Line, whether it is in quotes, and name of each include."""
    for line, text in numbered(file):
        if match := INCLUDE.match(text):
            yield line, match[1] == '"', match[2]


def below_src(file: pathlib.Path) -> str:
    return str(file.relative_to(SRC)) if file.is_relative_to(SRC) else str(file.relative_to(ROOT))


def is_test(file: pathlib.Path) -> bool:
    return file.stem.endswith(("_test", "_bench")) or file.stem.startswith("test_") or file.parent == SRC / "testing"


def folders_include_only_what_the_design_allows() -> Iterator[str]:
    for file in sources("*.h", "*.cpp"):
        folder = below_src(file).split("/")[0]
        if folder in ("fuzz", "bench"):
            continue
        if folder not in MAY_INCLUDE:
            yield f"{file}:1: {folder} is in no row of the design's table"
            continue
        for line, _, name in includes(file):
            other = name.split("/")[0]
            if other not in MAY_INCLUDE or not (SRC / name).is_file() or other == folder:
                continue
            allowed = MAY_INCLUDE[folder] | (TESTS_MAY_INCLUDE if is_test(file) else set())
            if folder == "gateway" and is_test(file):
                allowed = allowed | GATEWAY_TESTS_MAY_INCLUDE
            if other not in allowed and name not in allowed:
                yield f"{file}:{line}: {folder} may not include {name}"


def third_parties_stay_in_their_homes() -> Iterator[str]:
    for file in sources("*.h", "*.cpp"):
        path = below_src(file)
        for line, _, name in includes(file):
            if (SRC / name).is_file():
                continue
            for prefix, homes in THIRD_PARTY_HOMES.items():
                if re.match(prefix, name) and not re.fullmatch(homes, path) and not path.startswith(("fuzz/", "bench/")):
                    yield f"{file}:{line}: <{name}> may not be included here"


def headers_include_no_third_party() -> Iterator[str]:
    for file in sources("*.h"):
        path = below_src(file)
        allowed = [whose for where, whose in HEADERS_WITH_THIRD_PARTY.items() if path.startswith(where)]
        for line, _, name in includes(file):
            is_third_party = ("/" in name or name.endswith((".h", ".hpp"))) and not (SRC / name).is_file()
            if is_third_party and not any(re.match(whose, name) for whose in allowed):
                if not re.match(r"sys/|unistd\.h|netinet/|arpa/|signal\.h", name) and not is_test(file):
                    yield f"{file}:{line}: a header includes {name}; forward-declare instead"


def headers_begin_with_what_they_are() -> Iterator[str]:
    for file in sources("*.h"):
        text = file.read_text(encoding="utf-8")
        if not text.startswith("//"):
            yield f"{file}:1: no comment says what this is"
        if "\n#pragma once\n" not in text:
            yield f"{file}:1: no #pragma once"


def own_header_comes_first() -> Iterator[str]:
    for file in sources("*.cpp"):
        stem = re.sub(r"_(test|bench)$", "", file.stem)
        own = file.with_name(stem + ".h")
        if not own.is_file():
            continue
        first = next((name for _, _, name in includes(file)), None)
        if first != below_src(own):
            yield f'{file}:1: the first include is not "{below_src(own)}"'


def files_hold_one_idea() -> Iterator[str]:
    for file in sources("*.h", "*.cpp"):
        lines = len(numbered(file))
        most = MOST_TEST_FILE_LINES if is_test(file) else MOST_FILE_LINES
        if lines > most:
            yield f"{file}:{lines}: longer than {most} lines"


def functions_fit_a_screen() -> Iterator[str]:
    """A body is what lies between a line that ends in `{` at the margin's depth and its `}` at the same depth (clang-format's shape)."""
    for file in sources("*.h", "*.cpp"):
        begin, indent = 0, ""
        for line, text in numbered(file):
            depth = re.match(r" *", text)[0]
            opens = re.search(r"\)[^;]*\{$", text) and not re.match(r" *(\}|if|for|while|switch|namespace|struct|class|enum|extern)\b", text)
            if not begin and opens and len(depth) <= 4:
                begin, indent = line, depth
            elif begin and text.startswith(indent + "}") and depth == indent:
                if line - begin > MOST_FUNCTION_LINES:
                    yield f"{file}:{begin}: a function of {line - begin} lines, more than {MOST_FUNCTION_LINES}"
                begin = 0


def every_source_is_built() -> Iterator[str]:
    for file in sources("*.cpp"):
        lists = file.parent / "CMakeLists.txt"
        text = lists.read_text(encoding="utf-8") if lists.is_file() else ""
        name = file.name.removesuffix("_test.cpp") if file.name.endswith("_test.cpp") else file.name
        name = name.removesuffix("_fuzz.cpp") if name.endswith("_fuzz.cpp") else name
        if not re.search(rf"\b{re.escape(name)}\b", text):
            yield f"{file}:1: not in {lists}"


def text_is_of_no_machine_and_no_day() -> Iterator[str]:
    for file in sorted(ROOT.rglob("*")):
        relative = file.relative_to(ROOT)
        if not file.is_file() or relative.parts[0] in {".git", "build"} or "__pycache__" in relative.parts or "corpus" in relative.parts:
            continue
        if file.suffix in {".sum", ".binpb", ".pem"} or file == pathlib.Path(__file__).resolve():
            continue
        try:
            lines = numbered(file)
        except UnicodeDecodeError:
            continue
        for line, text in lines:
            for pattern, why in FORBIDDEN_TEXT:
                if pattern.search(text):
                    yield f"{file}:{line}: {why}"


LIMIT_TABLES = {"contract/limit_table.h": "contract/limits.h", "gateway/gateway_limit_table.h": "gateway/gateway_limits.h"}


def every_bound_is_documented() -> Iterator[str]:
    page = (ROOT / "docs/back_pressure.md").read_text(encoding="utf-8")
    for table_name, limits_name in LIMIT_TABLES.items():
        table, limits = SRC / table_name, SRC / limits_name
        visited = set(re.findall(r"limits\.(\w+)", table.read_text(encoding="utf-8")))
        for line, text in numbered(limits):
            if (match := re.match(r"  std::[\w:]+ (\w+)( =|\{)", text)) and match[1] not in visited:
                yield f"{limits}:{line}: {match[1]} is not in {table_name}"
        for line, text in numbered(table):
            if (match := re.search(r'visit\("([a-z-]+)"', text)) and f"`--{match[1]}`" not in page:
                yield f"{table}:{line}: --{match[1]} is not in docs/back_pressure.md"


def every_metric_is_documented() -> Iterator[str]:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    for file in sources("*.cpp"):
        for line, text in numbered(file):
            for name in [] if is_test(file) else re.findall(r'"((?:sluice|process)_[a-z_]+)"', text):
                if f"`{name}" not in page:
                    yield f"{file}:{line}: {name} is not in docs/operations.md"


RULES = [
    folders_include_only_what_the_design_allows,
    third_parties_stay_in_their_homes,
    headers_include_no_third_party,
    headers_begin_with_what_they_are,
    own_header_comes_first,
    files_hold_one_idea,
    functions_fit_a_screen,
    every_source_is_built,
    every_bound_is_documented,
    every_metric_is_documented,
    text_is_of_no_machine_and_no_day,
]


def main() -> int:
    failed = 0
    for rule in RULES:
        broken = list(rule())
        for complaint in broken:
            print(complaint.replace(f"{ROOT}/", ""))
        failed += bool(broken)
        print(f"{'FAILED' if broken else 'ok    '} {rule.__name__.replace('_', ' ')}")
    print(f"{len(RULES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
