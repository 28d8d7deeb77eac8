#!/usr/bin/env bash
# Shows that an incremental backup brings back rows that were deleted and truncated away.
# usage: incremental-backup-truncation.sh BINDIR [DIRECTORY]
#   BINDIR     the programs of the PostgreSQL that is tested (17 or later)
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
running=''

cleanup() {
  [ -z "$running" ] || "$bin/pg_ctl" -D "$running" -m immediate stop >/dev/null 2>&1 || true
  [ $# -eq 0 ] || rm -rf "$room"
}
if [ $# -gt 1 ]; then trap 'cleanup' EXIT; else trap 'cleanup remove' EXIT; fi

sql() { "$bin/psql" -XAtq -v ON_ERROR_STOP=1 -c "$1"; }

start() {
  "$bin/pg_ctl" -D "$1" -w -l "$1.log" -o "-k $room -c listen_addresses=''" start >/dev/null
  running=$1
}

stop() {
  "$bin/pg_ctl" -D "$running" -m fast -w stop >/dev/null
  running=''
}

"$bin/initdb" -U postgres -A trust --no-sync -D "$room/main" >/dev/null
cat >>"$room/main/postgresql.conf" <<'CONF'
summarize_wal = on
autovacuum = off
fsync = off
CONF
start "$room/main"
sql 'SELECT version()'
sql "CREATE TABLE t (a int PRIMARY KEY, b text STORAGE PLAIN)"
# One row a page: 1,000 blocks.
sql "INSERT INTO t SELECT g, repeat('x', 7000) FROM generate_series(1, 1000) g"
sql 'VACUUM t' # else the next one changes most pages, and the file is sent whole
"$bin/pg_basebackup" -D "$room/full" -c fast --no-sync

sql 'DELETE FROM t WHERE a > 600'
sql 'VACUUM t'
echo "blocks after DELETE and VACUUM:       $(sql "SELECT pg_relation_size('t') / 8192")"
# COPY extends by up to 64 blocks at once; those that it does not fill are in no WAL record.
sql "COPY (SELECT g, repeat('y', 7000) FROM generate_series(2001, 2100) g) TO '$room/rows'"
sql "COPY t FROM '$room/rows'"
echo "blocks after COPY of 100 rows:        $(sql "SELECT pg_relation_size('t') / 8192")"
"$bin/pg_basebackup" -D "$room/incremental" -c fast --no-sync --incremental "$room/full/backup_manifest"
expected=$(sql 'SELECT count(*), count(*) FILTER (WHERE a BETWEEN 601 AND 1000) FROM t')
stop

"$bin/pg_combinebackup" --no-sync -o "$room/restored" "$room/full" "$room/incremental"
chmod 700 "$room/restored"
start "$room/restored"
scan=$(sql 'SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;
  SELECT count(*), count(*) FILTER (WHERE a BETWEEN 601 AND 1000) FROM t')
index=$(sql 'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT count(*), count(*) FILTER (WHERE a BETWEEN 601 AND 1000) FROM t')
stop
echo "rows | of them deleted before, as backed up:              $expected"
echo "rows | of them deleted before, restored, by the heap:     $scan"
echo "rows | of them deleted before, restored, by the index:    $index"
if [ "$scan" = "$expected" ] && [ "$index" = "$expected" ]; then
  echo 'The restored table is the one that was backed up.'
else
  echo 'The restored table is NOT the one that was backed up.'
  exit 1
fi
