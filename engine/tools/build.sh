# shellcheck shell=bash disable=SC2154,SC2034
# The verbs "build" and "prefix", and what happens around a compilation: locks, resuming, progress.

build_usage() {
  cat <<'HELP'
usage: ./floe engine build [--variant release|assert|sanitize|stock]

Builds the engine and prints its prefix. An engine that is already built is used as it is; an
interrupted build is taken up again.
  release  the engine: patches, modules, optimised (default)
  assert   the same with assertions and injection points, for the test suites
  sanitize assertions and the address and undefined-behaviour sanitizers, for './floe engine test --sanitize'
  stock    PostgreSQL as released, same options, no patches, no modules: the benchmarks' baseline
HELP
}

prefix_usage() {
  cat <<'HELP'
usage: ./floe engine prefix [--variant release|assert|sanitize|stock] [--key]

Prints the prefix of the built engine, or with --key the key that names the build. Exit status 1
when that engine is not built; the key is printed in any case.
HELP
}

# parse_variant <verb> <arguments…>: sets variant and want_key.
parse_variant() {
  local verb=$1
  shift
  variant=release want_key=''
  while [ $# -gt 0 ]; do
    case $1 in
      --variant)
        variant=${2:-}
        shift
        ;;
      --variant=*) variant=${1#*=} ;;
      --key)
        [ "$verb" = prefix ] || usage_error "unknown option \"$1\"" "./floe engine $verb --help"
        want_key=yes
        ;;
      --help | -h)
        "${verb}_usage"
        exit 0
        ;;
      *) usage_error "unknown option \"$1\"" "./floe engine $verb --help" ;;
    esac
    shift
  done
  case $variant in
    release | assert | sanitize | stock) ;;
    *) usage_error "unknown variant \"$variant\"" "./floe engine $verb --help" ;;
  esac
}

prefix_verb() {
  parse_variant prefix "$@"
  local prefix
  if [ -n "$want_key" ]; then
    engine_key "$variant"
    return 0
  fi
  prefix=$(engine_prefix "$variant")
  [ -e "$prefix/.floe-engine" ] || fail "the $variant engine is not built" "Expected it in $prefix." \
    "Run './floe engine build --variant $variant'."
  echo "$prefix"
}

require_disk() {
  local free
  free=$(df -Pm "$cache_dir" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge 2500 ] || fail "not enough disk space to build the engine" \
    "\"$cache_dir\" has $free MB free; a build needs 2500 MB." "Free space, or set FLOE_CACHE to another file system."
}

# Source and build lie side by side under every key, so the compiler sees the same relative names and
# ccache finds what another build compiled. Depend mode spares a miss the second preprocessing.
use_ccache() {
  export CCACHE_DIR=$cache_dir/ccache CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1 CCACHE_MAXSIZE=2G CCACHE_UMASK=022
}

# compile <build directory> <log> <target…>: ninja, with its counter as progress every few seconds.
compile() {
  local build=$1 log=$2 ninja_pid status=0 shown=''
  shift 2
  NINJA_STATUS='[%f/%t] ' ninja -C "$build" "$@" >>"$log" 2>&1 &
  ninja_pid=$!
  # A signal to the tool must not leave the compiler running.
  # shellcheck disable=SC2064
  trap "kill $ninja_pid 2>/dev/null || true" EXIT
  while kill -0 "$ninja_pid" 2>/dev/null; do
    local now
    now=$(grep -o '^\[[0-9]*/[0-9]*\]' "$log" 2>/dev/null | tail -n 1 || true)
    if [ "$now" != "$shown" ]; then
      shown=$now
      step "compile $now"
    fi
    # Waits for ninja, but no longer than the time between two progress lines.
    timeout 5 tail --pid="$ninja_pid" -f /dev/null || true
  done
  wait "$ninja_pid" || status=$?
  trap - EXIT
  [ "$status" -eq 0 ] && return 0
  grep -A 20 '^FAILED' "$log" | head -n 60 >&2 || true
  fail "compiling failed" "" "The full log is $log."
}

# build_engine <variant>: prints the prefix.
build_engine() {
  local variant=$1 prefix core work log module
  # programs that end soon leave their memory to the system
  if [ "$variant" = sanitize ]; then export ASAN_OPTIONS=detect_leaks=0; fi
  prefix=$(engine_prefix "$variant")
  if [ ! -e "$prefix/.floe-engine" ]; then
    open_cache
    require_packages
    hold_lock "engine-$variant"
  fi
  if [ ! -e "$prefix/.floe-engine" ]; then
    log=$cache_dir/log/engine-$(basename "$prefix").log
    core=$(build_core "$variant")
    use_ccache
    work=$cache_dir/work/engine-$(basename "$prefix")
    rm -rf "$work" "$prefix"
    mkdir -p "$work"
    # Hard links: an engine costs only what its modules weigh.
    cp -al "$core" "$work/engine"
    if [ "$variant" != stock ]; then
      copy_built_files "$modules_dir" "$work/modules"
      for module in $(modules); do
        step "build module $module"
        build_module "$work/modules/$module" "$work/engine" "$variant" "$log"
      done
    fi
    [ "$(engine_prefix "$variant")" = "$prefix" ] || fail "the sources changed during the build" "" "Run it again."
    if runs_tests "$variant"; then
      copy_built_files "$testkit_dir" "$work/testkit"
      for module in "$work"/testkit/modules/*/; do
        [ -e "$module/Makefile" ] || continue
        step "build test module $(basename "$module")"
        build_module "$module" "$work/engine" "$variant" "$log"
      done
    fi
    "$work/engine/bin/postgres" --version >>"$log" || fail "the built engine does not run" "" "The full log is $log."
    printf '{"release":"%s","variant":"%s","key":"%s","modules":"%s"}\n' "$(upstream release)" "$variant" \
      "${prefix##*-}" "$(if [ "$variant" != stock ]; then modules | paste -sd, -; fi)" >"$work/engine/.floe-engine"
    mv "$work/engine" "$prefix"
    rm -rf "$work"
    step "done"
  fi
  echo "$prefix"
}

build_verb() {
  parse_variant build "$@"
  build_engine "$variant"
}
