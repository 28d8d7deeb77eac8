# shellcheck shell=bash disable=SC2154,SC2034
# Compiles the core, builds the modules on it and installs both as one engine.

# install_tests <source> <build> <core>: the suites' inputs, so that tests need no build tree.
install_tests() {
  local source=$1 build=$2 pgxs=$3/lib/postgresql/pgxs
  cp -r "$source"/src/test/regress/{sql,expected,data,parallel_schedule} "$pgxs/src/test/regress/"
  cp -r "$source"/src/test/isolation/{specs,expected,isolation_schedule} "$pgxs/src/test/isolation/"
  mkdir -p "$pgxs/src/tools"
  cp -r "$source/src/tools/pgindent" "$pgxs/src/tools/"
  cp "$build/src/tools/pg_bsd_indent/pg_bsd_indent" "$pgxs/src/tools/pgindent/"
}

# write_preload_header <core>: what is compiled in, for who has to know it without a server, as the agent does.
write_preload_header() {
  local header=$1/include/postgresql/server/utils/builtin_preload.h
  printf '/* builtin_preload_libraries of this build */\n#define BUILTIN_PRELOAD_LIBRARIES "%s"\n' "$(preload_list)" >"$header"
}

# build_core <variant>: prints the installed core's directory.
build_core() {
  local variant=$1 key core work log
  key=$(core_key "$variant")
  core=$cache_dir/core/$variant-$key
  work=$cache_dir/work/$variant-$key
  log=$cache_dir/log/core-$variant-$key.log
  if [ -e "$core/.floe-core" ]; then
    echo "$core"
    return 0
  fi
  require_disk
  use_ccache
  if [ ! -e "$work/source/.floe-prepared" ]; then
    prepare_source "$variant" "$work/source"
    [ "$(core_key "$variant")" = "$key" ] || fail "the patches changed while the build began" "" "Run it again."
    touch "$work/source/.floe-prepared"
  fi
  local options
  mapfile -t options < <(variant_options "$variant")
  if [ ! -e "$work/build/build.ninja" ]; then
    step "configure"
    rm -rf "$work/build"
    CC='ccache gcc' run_logged "$log" meson setup "$work/build" "$work/source" "${meson_options[@]}" "${options[@]}"
  fi
  rm -rf "$work/install" "$core"
  export DESTDIR=$work/install
  local tree=$work/install/opt/floe/engine
  # Only what is installed: upstream's test modules are for the variant that runs tests.
  if runs_tests "$variant"; then
    compile "$work/build" "$log" install-quiet install-test-files src/tools/pg_bsd_indent/pg_bsd_indent
    install_tests "$work/source" "$work/build" "$tree"
  else
    compile "$work/build" "$log" install-quiet
  fi
  unset DESTDIR
  # For whoever builds extensions on the engine: $ORIGIN would be read as a make variable, and ccache
  # may not be there.
  sed -i -e "s/-Wl,-rpath,[^ ]*ORIGIN[^ ]*//g" -e "s/^CC = ccache /CC = /" "$tree/lib/postgresql/pgxs/src/Makefile.global"
  if [ "$variant" != stock ]; then write_preload_header "$tree"; fi
  touch "$tree/.floe-core"
  mv "$tree" "$core"
  rm -rf "$work"
  echo "$core"
}

# build_module <source directory> <engine> <variant> <log>
build_module() {
  local flags=''
  case $3 in
    assert) flags=-Werror ;;
    sanitize) flags="-Werror ${sanitizers[*]}" ;;
  esac
  run_logged "$4" make -C "$1" -j "$(nproc)" install USE_PGXS=1 "PG_CONFIG=$2/bin/pg_config" \
    "COPT=$flags" "CC=ccache gcc" with_llvm=no
}

# copy_built_files <from> <to>: leaves a developer's object files behind.
copy_built_files() {
  mkdir -p "$2"
  (cd "$1" && built_files "$1" | tar -cf - -T -) | tar -xf - -C "$2" --no-same-owner
}
