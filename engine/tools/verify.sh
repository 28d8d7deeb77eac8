# shellcheck shell=bash disable=SC2154,SC2034
# Checks each page of a data directory: of a stopped instance by pg_checksums, of a running one by the instance.

verify_usage() {
  cat <<'HELP'
usage: ./floe engine verify [--variant release|assert|sanitize|stock] [--wait SECONDS] DIR

Reads every page of the data directory DIR, verifies its checksum, and changes nothing. Prints what pg_control says, and the pages
that do not verify.
A crash of CREATE or DROP DATABASE, or of a CREATE TABLE, leaves files behind that belong to nothing, torn pages and all. Which
files those are is in the catalogs, so only the running instance can tell.
  stopped  the engine's pg_checksums reads every page. No file is called harmless.
  running  the instance reads every page for a base backup to nowhere (a checkpoint, and full-page images while it lasts; unlogged
           and temporary tables are left out). Then each file with a page that does not verify is one that matters, one that
           belongs to nothing, or unknown, e.g. because a transaction that may have made it has not ended within --wait (default
           10 s). Connects as PGUSER (default postgres, a superuser) with PGPASSWORD to PGDATABASE (default postgres).
Exit status 0 all verify, but for files that are proved to belong to nothing; 1 some do not, or DIR cannot be verified: it was not
shut down cleanly (start it once: recovery repairs torn pages), or has no checksums.
HELP
}

# as_owner <path> <command…>: as the user whom the path belongs to, since PostgreSQL's programs refuse root.
as_owner() {
  local owner group identity=()
  owner=$(stat -c %u "$1") group=$(stat -c %g "$1")
  shift
  if [ "$(id -u)" -eq 0 ]; then identity=(setpriv "--reuid=$owner" "--regid=$group" --clear-groups); fi
  (cd / && "${identity[@]}" env LC_ALL=C "$@")
}

control_field() { sed -n "s/^$1: *//p" <<<"$control"; }

verify_verb() {
  local variant=release wait_s=10 directory='' prefix control state report status=0
  while [ $# -gt 0 ]; do
    case $1 in
      --variant)
        variant=${2:-}
        shift
        ;;
      --variant=*) variant=${1#*=} ;;
      --wait)
        wait_s=${2:-}
        shift
        ;;
      --wait=*) wait_s=${1#*=} ;;
      --help | -h)
        verify_usage
        exit 0
        ;;
      -*) usage_error "unknown option \"$1\"" "./floe engine verify --help" ;;
      *)
        [ -z "$directory" ] || usage_error "more than one directory" "./floe engine verify --help"
        directory=$1
        ;;
    esac
    shift
  done
  [ -n "$directory" ] || usage_error "no data directory is named" "./floe engine verify --help"
  [[ $wait_s =~ ^[0-9]{1,5}$ ]] || usage_error "\"$wait_s\" is not a number of seconds" "./floe engine verify --help"
  case $variant in
    release | assert | sanitize | stock) ;;
    *) usage_error "unknown variant \"$variant\"" "./floe engine verify --help" ;;
  esac
  [ -e "$directory/global/pg_control" ] ||
    fail "\"$directory\" is not a data directory" "It has no file global/pg_control." "Name the directory that pg_ctl -D takes."
  directory=$(cd "$directory" && pwd)
  prefix=$(build_engine "$variant")

  control=$(as_owner "$directory" "$prefix/bin/pg_controldata" -D "$directory") ||
    fail "could not read pg_control of \"$directory\""
  state=$(control_field 'Database cluster state')
  printf '%-34s %s\n' 'system identifier' "$(control_field 'Database system identifier')" 'state' "$state" \
    'checksums' "$([ "$(control_field 'Data page checksum version')" = 0 ] && echo off || echo on)" \
    'full-page images at checkpoint' "$(control_field "Latest checkpoint's full_page_writes")"
  [ "$(control_field 'Data page checksum version')" != 0 ] ||
    fail "\"$directory\" has no data checksums" "Nothing can be verified." "Run pg_checksums --enable on the stopped instance."
  if as_owner "$directory" "$prefix/bin/pg_ctl" status -D "$directory" >/dev/null 2>&1; then
    verify_running "$wait_s"
    return 0
  fi
  case $state in
    'shut down' | 'shut down in recovery') ;;
    *)
      fail "\"$directory\" was not shut down cleanly" "Its state is \"$state\"." \
        "Start the instance once, so that recovery repairs torn pages."
      ;;
  esac
  report=$(as_owner "$directory" "$prefix/bin/pg_checksums" --check -D "$directory" 2>&1) || status=$?
  printf '%s\n' "$report"
  [ "$status" -eq 0 ] ||
    fail "some pages of \"$directory\" do not verify" \
      "See the lines above. Whether their files belong to anything is in the catalogs, which only the running instance can read." \
      "Start the instance and run this again: it then says which of the files matter."
}
