# shellcheck shell=bash disable=SC2154,SC2034
# Deletes what no current key names. Nothing else in the tool deletes an engine.

prune_usage() {
  cat <<'HELP'
usage: ./floe engine prune [--dry-run]

Deletes from the cache every engine, core and log whose key is not the current one of some variant,
the work trees of interrupted builds, and what failed test runs left. Engines that instances run
from are kept; an instance that is stopped is not seen, and needs its engine again when it starts.
The release tarball and the compiler's cache stay. Prints what it deletes; --dry-run deletes nothing.
HELP
}

# in_use <directory>: does a process run from there, or the tool that made it?
in_use() {
  local exe
  if [ -e "$1/tool.pid" ] && [ -e "/proc/$(cat "$1/tool.pid")" ]; then return 0; fi
  for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe" 2>/dev/null) in "$1"/*) return 0 ;; esac
  done
  return 1
}

prune_verb() {
  local dry='' variant path name keep=' '
  case ${1:-} in
    '') ;;
    --dry-run) dry=yes ;;
    --help | -h)
      prune_usage
      exit 0
      ;;
    *) usage_error "unknown option \"$1\"" "./floe engine prune --help" ;;
  esac
  open_cache
  for variant in release assert sanitize stock; do
    if [ -z "$dry" ]; then hold_lock "engine-$variant"; fi
    keep+="$variant-$(engine_key "$variant") $variant-$(core_key "$variant") "
  done
  for path in "$cache_dir"/engine/* "$cache_dir"/core/* "$cache_dir"/work/* "$cache_dir"/test/run.* "$cache_dir"/log/*; do
    [ -e "$path" ] || continue
    name=$(basename "$path" .log)
    case $path in "$cache_dir"/log/*) name=${name#*-} ;; esac
    case $keep in
      *" $name "*) case $path in "$cache_dir"/work/*) ;; *) continue ;; esac ;;
    esac
    if in_use "$path"; then
      step "keep $path, which is in use"
      continue
    fi
    echo "$path"
    if [ -z "$dry" ]; then rm -rf "$path"; fi
  done
}
