# shellcheck shell=bash disable=SC2154,SC2034
# The modules' C in PostgreSQL's own layout, by PostgreSQL's own program.

indent_usage() {
  cat <<'HELP'
usage: ./floe engine indent [--check]

Formats the C files of engine/modules and engine/testkit with the pgindent of the pinned release.
--check changes nothing, prints what would change and ends with exit status 1 when there is something.
Types of our own are listed in engine/tools/typedefs.list.
HELP
}

# c_files: our C, relative to engine/.
c_files() { (cd "$engine_dir" && find modules testkit -name '*.[ch]' -not -path '*/tmp_check/*' | LC_ALL=C sort); }

# run_pgindent <assert prefix> <directory> <option…>: over our C files below the directory.
run_pgindent() {
  local tools=$1/lib/postgresql/pgxs/src/tools/pgindent directory=$2 typedefs status=0 files
  shift 2
  mapfile -t files < <(c_files)
  [ ${#files[@]} -gt 0 ] || return 0
  typedefs=$(mktemp)
  cat "$tools/typedefs.list" "$tools_dir/typedefs.list" >"$typedefs"
  (cd "$directory" && perl "$tools/pgindent" --indent="$tools/pg_bsd_indent" --typedefs="$typedefs" "$@" "${files[@]}") || status=$?
  rm -f "$typedefs"
  return "$status"
}

# indent_check <assert prefix>: on copies, because pgindent writes beside what it reads.
indent_check() {
  local room status=0
  room=$(mktemp -d)
  (cd "$engine_dir" && c_files | tar -cf - -T -) | tar -xf - -C "$room"
  run_pgindent "$1" "$room" --check --diff || status=$?
  rm -rf "$room"
  return "$status"
}

indent_verb() {
  local check='' prefix
  case ${1:-} in
    '') ;;
    --check) check=yes ;;
    --help | -h)
      indent_usage
      exit 0
      ;;
    *) usage_error "unknown option \"$1\"" "./floe engine indent --help" ;;
  esac
  prefix=$(build_engine assert)
  if [ -n "$check" ]; then
    indent_check "$prefix" || fail "some files are not laid out by pgindent's rules" "" "Run './floe engine indent'."
  else
    run_pgindent "$prefix" "$engine_dir" || fail "pgindent could not format every file"
  fi
}
