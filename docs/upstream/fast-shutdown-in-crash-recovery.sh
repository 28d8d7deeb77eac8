#!/usr/bin/env bash
# Shows that a fast shutdown never ends when it is asked for while a server recovers from the crash of a backend.
# usage: fast-shutdown-in-crash-recovery.sh BINDIR [DIRECTORY]
#   BINDIR     the programs of the PostgreSQL that is tested
#   DIRECTORY  where the cluster is made (default: a temporary one, removed at the end)
# Not as root: PostgreSQL refuses to run as root. Exit status: 0 the fault is absent, 1 it is there.
set -euo pipefail

bin=${1:?usage: $0 BINDIR [DIRECTORY]}
if [ $# -gt 1 ]; then
  room=$2
  mkdir -p "$room"
else
  room=$(mktemp -d)
fi
export PGHOST=$room PGDATABASE=postgres PGUSER=postgres
postmaster=''

cleanup() {
  [ -z "$postmaster" ] || "$bin/pg_ctl" -D "$room/main" -m immediate stop >/dev/null 2>&1 || true
  [ $# -eq 0 ] || rm -rf "$room"
}
if [ $# -gt 1 ]; then trap 'cleanup' EXIT; else trap 'cleanup remove' EXIT; fi

# children: the server's processes with their titles
children() { ps -o pid=,args= --ppid "$postmaster"; }

# bounded <what> <command…>: tries for half a minute
bounded() {
  local what=$1 tries=0
  shift
  until "$@"; do
    tries=$((tries + 1))
    [ "$tries" -lt 300 ] || { echo "not within 30 s: $what" >&2; return 1; }
    sleep 0.1
  done
}

startup_pid() { children | awk '/: startup / { print $1 }'; }
has_startup() { [ -n "$(startup_pid)" ]; }
has_ended() { ! kill -0 "$postmaster" 2>/dev/null; }

"$bin/initdb" -U postgres -A trust --no-sync -D "$room/main" >/dev/null
# WAL enough that its replay can be caught
cat >>"$room/main/postgresql.conf" <<'CONF'
restart_after_crash = on
checkpoint_timeout = 1h
max_wal_size = 4GB
CONF
"$bin/pg_ctl" -D "$room/main" -w -l "$room/log" -o "-k $room -c listen_addresses=''" start >/dev/null
postmaster=$(head -n 1 "$room/main/postmaster.pid")
"$bin/psql" -XAtc 'SELECT version()'
"$bin/psql" -Xqc 'CREATE TABLE t AS SELECT g, md5(g::text) FROM generate_series(1, 2000000) g'

kill -KILL "$("$bin/psql" -XAtc "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'")"
bounded 'the server recovers' has_startup
startup=$(startup_pid)
# so that the request surely comes during recovery
kill -STOP "$startup"
kill -INT "$postmaster"
bounded 'the server is asked to shut down' grep -q 'received fast shutdown request' "$room/log"
kill -CONT "$startup"

if bounded 'the shutdown ends' has_ended; then
  postmaster=''
  echo 'The shutdown ended.'
else
  echo 'The shutdown does NOT end. What is left:'
  children
  exit 1
fi
