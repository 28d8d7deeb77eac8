#!/usr/bin/env bash
# Tries to make pg_rewind lose rows in blocks that the target truncated after the fork and got back without WAL.
# usage: pg-rewind-truncation.sh BINDIR [DIRECTORY]
#   BINDIR     the programs of the PostgreSQL that is tested
#   DIRECTORY  where the clusters are made (default: a temporary one, removed at the end)
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

cleanup() {
  for cluster in old new; do
    "$bin/pg_ctl" -D "$room/$cluster" -m immediate stop >/dev/null 2>&1 || true
  done
  [ $# -eq 0 ] || rm -rf "$room"
}
if [ $# -gt 1 ]; then trap 'cleanup' EXIT; else trap 'cleanup remove' EXIT; fi

declare -A port=([old]=5433 [new]=5434)
sql() { "$bin/psql" -XAtq -v ON_ERROR_STOP=1 -p "${port[$1]}" -c "$2"; }
start() { "$bin/pg_ctl" -D "$room/$1" -w -l "$room/$1.log" -o "-p ${port[$1]} -k $room -c listen_addresses=''" start >/dev/null; }
stop() { "$bin/pg_ctl" -D "$room/$1" -m fast -w stop >/dev/null; }

# caught_up <lsn> <cluster>: replay has passed the position
caught_up() {
  for _ in $(seq 300); do
    [ "$(sql "$2" "SELECT pg_last_wal_replay_lsn() >= '$1'")" = t ] && return
    sleep 0.1
  done
  echo 'the standby does not catch up' >&2
  exit 2
}

"$bin/initdb" -U postgres -A trust --no-sync --data-checksums -D "$room/old" >/dev/null
cat >>"$room/old/postgresql.conf" <<'CONF'
wal_keep_size = 1GB
autovacuum = off
fsync = off
CONF
start old
sql old 'SELECT version()'
"$bin/pg_basebackup" -D "$room/new" -p "${port[old]}" -c fast -R --no-sync
start new
sql old 'CREATE TABLE t (a int, b text STORAGE PLAIN)'
# One row a page: 1,200 blocks.
sql old "INSERT INTO t SELECT g, repeat('x', 7000) FROM generate_series(1, 1200) g"
sql old 'VACUUM t'
caught_up "$(sql old 'SELECT pg_current_wal_flush_lsn()')" new
"$bin/pg_ctl" -D "$room/new" -w promote >/dev/null
sql new 'CHECKPOINT'
expected=$(sql new 'SELECT count(*), sum(a) FROM t')

# The target goes its own way: truncates, and grows again.
sql old 'DELETE FROM t WHERE a > 600'
sql old 'VACUUM t'
echo "blocks after DELETE and VACUUM:       $(sql old "SELECT pg_relation_size('t') / 8192")"
# COPY extends by up to 64 blocks at once; those that it does not fill are in no WAL record.
sql old "COPY (SELECT g, repeat('y', 7000) FROM generate_series(2001, 2100) g) TO '$room/rows'"
sql old "COPY t FROM '$room/rows'"
echo "blocks after COPY of 100 rows:        $(sql old "SELECT pg_relation_size('t') / 8192")"
stop old

"$bin/pg_rewind" --target-pgdata "$room/old" --no-sync \
  --source-server "host=$room port=${port[new]} user=postgres dbname=postgres" >"$room/rewind.log" 2>&1
touch "$room/old/standby.signal"
echo "primary_conninfo = 'host=$room port=${port[new]} user=postgres'" >>"$room/old/postgresql.conf"
start old
caught_up "$(sql new 'SELECT pg_current_wal_flush_lsn()')" old
rewound=$(sql old 'SELECT count(*), sum(a) FROM t')
echo "rows | their sum, source:              $expected"
echo "rows | their sum, rewound:             $rewound"
if [ "$rewound" = "$expected" ]; then
  echo 'The rewound table is that of the source.'
else
  echo 'The rewound table is NOT that of the source.'
  exit 1
fi
