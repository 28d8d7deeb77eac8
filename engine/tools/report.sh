# shellcheck shell=bash disable=SC2154,SC2034
# What the tool says to people: progress on stderr, errors in PostgreSQL's voice.

started_at=$SECONDS

# step <text>: one progress line with the seconds since the tool started.
step() { printf 'floe: step %s (%s s)\n' "$1" "$((SECONDS - started_at))" >&2; }

# fail <message> [detail] [hint]: ends the tool with exit status 1.
fail() {
  printf 'floe: error: %s\n' "$1" >&2
  if [ -n "${2:-}" ]; then printf 'DETAIL:  %s\n' "$2" >&2; fi
  if [ -n "${3:-}" ]; then printf 'HINT:  %s\n' "$3" >&2; fi
  exit 1
}

# usage_error <message> <command that explains>: ends the tool with exit status 2.
usage_error() {
  printf "floe: error: %s\nHINT:  Run '%s'.\n" "$1" "$2" >&2
  exit 2
}

# run_logged <log> <command…>: output goes to the log; on failure its end is shown.
run_logged() {
  local log=$1 status=0
  shift
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 || status=$?
  [ "$status" -eq 0 ] && return 0
  tail -n 30 "$log" >&2
  fail "\"$1\" failed with exit status $status" "" "The full log is $log."
}
