# shellcheck shell=bash disable=SC2154,SC2034
# Where things lie, which packages a build needs, and the keys that name a build.

engine_dir=$(dirname "$tools_dir")
patches_dir=$engine_dir/patches
modules_dir=$engine_dir/modules
testkit_dir=$engine_dir/testkit
work_tree=$engine_dir/src

default_cache() {
  if [ "$(id -u)" -eq 0 ]; then echo /var/cache/floe; else echo "${XDG_CACHE_HOME:-$HOME/.cache}/floe"; fi
}
cache_dir=${FLOE_CACHE:-$(default_cache)}
case $cache_dir in /*) ;; *) cache_dir=$PWD/$cache_dir ;; esac

# open_cache: makes the cache's rooms; the unprivileged engine user must be able to read them.
open_cache() {
  mkdir -p "$cache_dir"/{source,work,core,engine,log,lock,test,ccache} ||
    fail "could not create the cache directory \"$cache_dir\"" "" "Set FLOE_CACHE to a directory you may write."
  [ -w "$cache_dir/engine" ] ||
    fail "could not write to the cache directory \"$cache_dir\"" "" "Set FLOE_CACHE to a directory you may write."
}

# upstream <field>: reads one field of the pin; the file is flat JSON, one field a line.
upstream() { sed -n "s/^ *\"$1\": *\"\([^\"]*\)\".*/\1/p" "$engine_dir/upstream.json"; }

engine_user=floe

# Compiler, libraries and what the test suites need; the same names on Debian 12 and Ubuntu 24.04.
packages=(
  bison bzip2 ca-certificates ccache curl flex gcc git libc6-dev libicu-dev libipc-run-perl liblz4-dev
  libreadline-dev libssl-dev libsystemd-dev liburing-dev libzstd-dev lz4 make meson ninja-build
  openssl passwd patch perl pkg-config python3 tzdata util-linux zlib1g-dev zstd
)

# Common to every variant. What is left out (LDAP, GSSAPI, PAM, XML, procedural languages other
# than PL/pgSQL, JIT, translations, documentation) is named in engine/README.md.
meson_options=(
  -Dbuildtype=plain -Dauto_features=disabled
  # Precompiled headers keep ccache from recognising what it has compiled before.
  -Db_pch=false
  -Dssl=openssl -Dicu=enabled -Dlz4=enabled -Dzstd=enabled -Dzlib=enabled -Dliburing=enabled
  -Dreadline=enabled -Dsystemd=enabled "-Dc_args=['-O2','-g1']"
  # Installed trees are copied and moved inside the cache, so no absolute path may be baked in.
  -Drpath=false "-Dc_link_args=['-Wl,-rpath,\$ORIGIN/../lib:\$ORIGIN/..']"
  # PostgreSQL finds its files relative to its binaries; this prefix only fixes the layout.
  -Dprefix=/opt/floe/engine -Dlibdir=lib
)

# Every read and write of memory checked, and what C leaves undefined; the first finding ends the process.
# shellcheck disable=SC2054
sanitizers=(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)

# variant_options <variant>: prints the options of one variant, one a line. All are compiled alike, so
# that ccache compiles once what assertions do not change.
variant_options() {
  case $1 in
    release | stock) echo -Dcassert=false ;;
    assert) printf '%s\n' -Dcassert=true -Dinjection_points=true -Dtap_tests=enabled ;;
    sanitize)
      printf '%s\n' -Dcassert=true -Dinjection_points=true -Dtap_tests=enabled \
        "-Dc_args=['-O1','-g1',$(printf "'%s'," "${sanitizers[@]}")]" \
        "-Dc_link_args=['-Wl,-rpath,\$ORIGIN/../lib:\$ORIGIN/..','${sanitizers[0]}']"
      ;;
  esac
}

# runs_tests <variant>: whether it has what the suites need.
runs_tests() { [ "$1" = assert ] || [ "$1" = sanitize ]; }

digest() { sha256sum | cut -c1-16; }

# digest_files <directory> <file…>: names and contents, independent of where the checkout lies.
digest_files() {
  (cd "$1" && shift && printf '%s\n' "$@" | sed '/^$/d' | LC_ALL=C sort -u | xargs -d '\n' --no-run-if-empty sha256sum --)
}

series() { grep -v -e '^#' -e '^$' "$patches_dir/series" || true; }

# preload_list: what the engine compiles in. $libdir, because a user may set dynamic_library_path.
preload_list() {
  local module list=''
  for module in $(grep -v -e '^#' -e '^$' "$modules_dir/preload" || true); do
    [ -e "$modules_dir/$module/Makefile" ] || fail "engine/modules/preload names \"$module\", which is not a module"
    list+="${list:+, }\$libdir/$module"
  done
  echo "$list"
}


modules() {
  local makefile
  for makefile in "$modules_dir"/*/Makefile; do
    if [ -e "$makefile" ]; then basename "$(dirname "$makefile")"; fi
  done
}

# built_files <directory>: the files below it that end up in a build; tests and prose do not.
built_files() {
  (cd "$1" && find . \( -name sql -o -name expected -o -name specs -o -name t -o -name results -o -name tmp_check \) -prune -o \
    -type f \( -name '*.c' -o -name '*.h' -o -name '*.sql' -o -name '*.control' -o -name Makefile -o -name '*.mk' \) -print)
}

# core_key <variant>: names a compiled core: release, patches, options, compiler, system.
core_key() {
  local variant=$1
  {
    upstream sha256
    printf '%s\n' "${meson_options[@]}"
    variant_options "$variant"
    cat "$tools_dir/compile.sh" "$tools_dir/source-tree.sh"
    gcc -dumpfullversion -dumpmachine 2>/dev/null || true
    sed -n -e '/^ID=/p' -e '/^VERSION_ID=/p' /etc/os-release
    if [ "$variant" != stock ]; then
      series
      # shellcheck disable=SC2046
      digest_files "$patches_dir" $(series)
      preload_list
    fi
  } | digest
}

# engine_key <variant>: names an engine: a core and the modules built on it.
engine_key() {
  local variant=$1
  {
    core_key "$variant"
    if [ "$variant" != stock ]; then
      # shellcheck disable=SC2046
      digest_files "$modules_dir" $(built_files "$modules_dir")
    fi
    if runs_tests "$variant"; then
      # shellcheck disable=SC2046
      digest_files "$testkit_dir" $(built_files "$testkit_dir")
    fi
  } | digest
}

engine_prefix() { echo "$cache_dir/engine/$1-$(engine_key "$1")"; }

# hold_lock <name>: one builder at a time; the lock goes with the process, even by kill -9.
hold_lock() {
  local lock_fd
  exec {lock_fd}>"$cache_dir/lock/$1"
  if ! flock -n "$lock_fd"; then
    step "wait for another run that holds $1"
    flock "$lock_fd"
  fi
}

packages_missing() {
  local package
  command -v dpkg-query >/dev/null || return 0
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^.i' || echo "$package"
  done
}

packages_verb() {
  case ${1:-} in
    '') printf '%s\n' "${packages[@]}" ;;
    --missing) packages_missing ;;
    --help | -h)
      cat <<'HELP'
usage: ./floe engine packages [--missing]

Prints the packages of Debian 12 or Ubuntu 24.04 that building and testing the engine needs, one a
line; with --missing only those that are not installed. Installs nothing.
HELP
      ;;
    *) usage_error "unknown option \"$1\"" "./floe engine packages --help" ;;
  esac
}

require_packages() {
  local missing
  missing=$(packages_missing | paste -sd' ' -)
  [ -z "$missing" ] || fail "packages that the build needs are not installed" "Missing: $missing" \
    "Run as root: apt-get install $missing"
}
