#!/usr/bin/env bash
# The guarantees of `./floe engine verify`, in TAP: what verifies, what does not and is named, what is refused, that nothing is
# changed, and that a file is said to belong to nothing only where that is so. Called by `./floe engine test verify` with the variant, its prefix and a directory of the engine's user.
set -uo pipefail

variant=$1 prefix=$2 room=$3
tool=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/engine
number=0

# as_user <command…>: as the user whom the room belongs to.
as_user() {
  local identity=()
  if [ "$(id -u)" -eq 0 ]; then
    identity=(setpriv "--reuid=$(stat -c %u "$room")" "--regid=$(stat -c %g "$room")" --clear-groups)
  fi
  (cd "$room" && "${identity[@]}" env LC_ALL=C "PATH=$prefix/bin:$PATH" "$@")
}

bail() {
  echo "not ok $((number + 1)) - $1"
  exit 1
}

# verify <arguments…>: sets status, out and err.
verify() {
  status=0
  out=$("$tool" verify --variant "$variant" "$@" 2>"$room/err") || status=$?
  err=$(<"$room/err")
}

# ends <test> <status> <pattern in out> <pattern in err>: of the last verify; a pattern is one of bash's, matched anywhere.
ends() {
  number=$((number + 1))
  # shellcheck disable=SC2053
  if [ "$status" -eq "$2" ] && [[ $out == *$3* ]] && [[ $err == *$4* ]]; then
    echo "ok $number - $1"
  else
    echo "not ok $number - $1"
    printf '%s\n' "status $status, expected $2" "output:" "$out" "errors:" "$err" | sed 's/^/# /'
  fi
}

check() {
  local name=$1
  number=$((number + 1))
  shift
  if "$@"; then echo "ok $number - $name"; else echo "not ok $number - $name"; fi
}

make_instance() {
  local directory=$1
  shift
  as_user initdb --auth trust --no-sync --no-instructions --username=postgres "$@" -D "$directory" >"$room/initdb.log" 2>&1 || bail 'initdb'
  printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$sockets'" 'fsync = off' | as_user tee -a "$directory/postgresql.conf" >/dev/null
}

start() { as_user pg_ctl -s -w -D "$1" -l "$room/log" start </dev/null >/dev/null 2>&1 || bail "start of $1"; }
stop() { as_user pg_ctl -s -w -D "$1" -m "${2:-fast}" stop >/dev/null 2>&1; }
query() { as_user psql -XqAt -h "$sockets" -U postgres -d postgres -c "$1"; }
# A byte of the middle of block 0 becomes another
damage() { printf '\252' | as_user dd "of=$good/$1" bs=1 seek=5000 conv=notrunc status=none || bail "damage of $1"; }
contents() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum && find . -printf '%p %T@ %u %m\n' | sort); }

# A short name: a socket's path has a bound
sockets=$(mktemp -d) || bail 'a directory for sockets'
if [ "$(id -u)" -eq 0 ]; then chown "$(stat -c %u:%g "$room")" "$sockets"; fi
good="$room/an instance" bare=$room/bare
finish() {
  stop "$good" immediate
  rm -rf "$sockets"
}
trap finish EXIT

make_instance "$good"
start "$good"
query 'CREATE TABLE t AS SELECT g AS a, md5(g::text) AS b FROM generate_series(1, 5000) g; CHECKPOINT' || bail 'a table'
file=$(query "SELECT pg_relation_filepath('t')")

verify "$good"
ends 'a running instance verifies' 0 'in production*pages that do not verify: 0 in 0 files that matter, 0 in 0 unknown files, 0 in 0' ''
PGUSER=nobody_of_this_name verify "$good"
ends 'it is asked as a superuser, or says who to be' 1 '' 'could not connect to the running instance*PGUSER'

stop "$good" immediate
verify "$good"
ends 'one that was not shut down cleanly is refused, and what to do is said' 1 'in production' 'Start the instance once, so that recovery repairs torn pages'

start "$good"
stop "$good"
before=$(contents "$good")
verify "$good"
ends 'one that was stopped verifies' 0 'Bad checksums:  0' ''
ends 'and what pg_control says is shown' 0 "state*shut down*checksums*on*full-page images*on" ''
check 'nothing in it has changed' [ "$before" = "$(contents "$good")" ]
(cd "$room" && "$tool" verify --variant "$variant" 'an instance' >/dev/null 2>&1)
check 'a path may be relative' [ $? -eq 0 ]

as_user touch "$good/standby.signal"
start "$good"
stop "$good"
verify "$good"
ends 'a standby that was stopped verifies' 0 'shut down in recovery*Bad checksums:  0' ''
as_user rm "$good/standby.signal"

# The second half of block 3 is what block 2 has there
as_user dd "if=$good/$file" "of=$good/$file" bs=4096 skip=5 seek=7 count=1 conv=notrunc status=none || bail 'dd'
before=$(contents "$good")
verify "$good"
ends 'a torn page does not verify; its file and block are named' 1 "checksum verification failed in file \"*/$file\", block 3:*Bad checksums:  1" \
  'some pages of'
check 'nor has anything changed then' [ "$before" = "$(contents "$good")" ]
verify "$good"
ends 'of a stopped instance no file is called harmless, and what can tell is said' 1 '' 'Start the instance and run this again'

# What crashes leave: a file of an uncommitted CREATE TABLE (a real one), a directory of an uncommitted CREATE DATABASE, a database
# that DROP DATABASE has marked; and beside them relations of every kind of name.
start "$good"
verify "$good"
ends 'of the running instance the torn page is told as one that matters' 1 \
  "matters  $file (pages: 1): relation public.t of database \"postgres\"*1 in 1 files that matter" 'some pages of'
query 'CREATE TABLE big AS SELECT string_agg(md5(g::text), NULL) AS b FROM generate_series(1, 1000) g' || bail 'a TOAST table'
query 'ALTER TABLE big ALTER b SET STORAGE EXTERNAL; UPDATE big SET b = b || b; CREATE TABLE whole AS SELECT g AS a FROM generate_series(1, 500) g; CREATE INDEX an_index ON whole (a)' || bail 'an index'
for name in half broken 'other
line'; do
  query "CREATE DATABASE \"$name\"" || bail 'a database'
done
toast=$(query "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 'big'")
index=$(query "SELECT pg_relation_filepath('an_index')")
mapped=$(query "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 'pg_proc'")
shared=$(query "SELECT pg_relation_filepath('pg_shdescription')")
map=$(query "SELECT pg_relation_filepath('t') || '_vm'")
number_of() { query "SELECT oid FROM pg_database WHERE datname = E'$1'"; }
half=$(number_of half) broken=$(number_of broken) other=$(number_of 'other\nline') closed=$(number_of template0)
exec {session}> >(as_user psql -Xq -h "$sockets" -U postgres -d postgres >"$room/session" 2>&1)
session_ends=$!
printf '%s\n' 'BEGIN; CREATE TABLE gone AS SELECT g FROM generate_series(1, 5000) g;' '\o uncommitted' '\pset format unaligned' '\pset tuples_only on' \
  "SELECT pg_relation_filepath('gone');" '\o' >&$session
for _ in $(seq 600); do
  [ ! -s "$room/uncommitted" ] || break
  sleep 0.1
done
uncommitted=$(<"$room/uncommitted")
query CHECKPOINT
damage "$uncommitted"
verify --wait 1 "$good"
ends 'a file of a transaction that runs is unknown, and the process is named' 1 \
  "unknown  $uncommitted (pages: 1): a transaction that may have made it still runs: *process *1 in 1 unknown files" 'until it is proved'
stop "$good" immediate
exec {session}>&-
wait "$session_ends"

start "$good"
query "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'half'" || bail 'an unfinished DROP DATABASE'
stop "$good"
as_user cp -a "$good/base/5" "$good/base/99999"
for name in "$uncommitted" base/99999/1259 "base/$half/1259" "base/$broken/1259" "base/$closed/1259" "base/$other/77777" \
  "$toast" "$index" "$mapped" "$shared" "$map"; do
  [ -e "$good/$name" ] || as_user cp -a "$good/$uncommitted" "$good/$name"
  damage "$name"
done
start "$good"
before=$(cd "$good" && sha256sum "$uncommitted" "$file" base/99999/*)
verify "$good"
nothing=$(sed -n 's/^nothing *\([^ ]*\) .*/\1/p' <<<"$out" | sort)
expected=$(printf '%s\n' "$uncommitted" base/99999/{1259,"${file##*/}","${uncommitted##*/}"} "base/$half/1259" "base/$other/77777" | sort)
ends 'what a crash left of CREATE TABLE belongs to nothing' 1 "nothing  $uncommitted (pages: 1): no relation of database \"postgres\" has this file" ''
ends 'so does what it left of CREATE DATABASE' 1 'nothing  base/99999/1259 (pages: 1): no database has the number 99999' ''
ends 'and what it left of DROP DATABASE' 1 "nothing  base/$half/1259 (pages: 1): DROP DATABASE left database \"half\" unfinished" ''
ends 'a database is asked by its whole name' 1 "nothing  base/$other/77777 (pages: 1): no relation of database \"other?line\"" ''
check 'nothing else is called harmless' [ "$nothing" = "$expected" ]
ends 'a TOAST table matters' 1 "matters  $toast (pages: 1): relation pg_toast." ''
ends 'an index matters' 1 "matters  $index (pages: 1): relation public.an_index" ''
ends 'a mapped relation matters' 1 "matters  $mapped (pages: 1): relation pg_toast.pg_toast_1255" ''
ends 'a shared relation matters' 1 "matters  $shared (pages: 1): relation pg_shdescription" ''
ends 'a visibility map matters' 1 "matters  $map (pages: 1): relation public.t" ''
ends 'a database that cannot be asked is not judged' 1 "unknown  base/$closed/1259 (pages: 1): database \"template0\" accepts no connections" ''
ends 'nor is one whose catalogs do not verify' 1 "unknown  base/$broken/1259 (pages: 1): *" ''
check 'files are left as they are' [ "$before" = "$(cd "$good" && sha256sum "$uncommitted" "$file" base/99999/*)" ]
stop "$good"
(cd "$good" && rm "base/$broken/1259" "base/$closed/1259" "base/$half/1259" "$toast" "$index" "$mapped" "$shared" "$map" "$file")
start "$good"
verify "$good"
ends 'files that belong to nothing are no failure' 0 'in 0 files that matter, 0 in 0 unknown files, 5 in 5 files that belong to nothing' ''
stop "$good"
as_user touch "$good/standby.signal"
start "$good"
verify "$good"
ends 'of a standby they are unknown' 1 "unknown  $uncommitted (pages: 1): a standby does not see" ''
stop "$good"
as_user rm "$good/standby.signal"

make_instance "$bare" --no-data-checksums
verify "$bare"
ends 'one without checksums is refused' 1 'checksums*off' 'has no data checksums*Run pg_checksums --enable'

verify "$room"
ends 'a directory of something else is refused' 1 '' 'is not a data directory'
verify "$room/nothing"
ends 'so is one that is not there' 1 '' 'is not a data directory'
as_user mkdir -p "$room/broken/global" && as_user touch "$room/broken/global/pg_control"
verify "$room/broken"
ends 'and one whose pg_control cannot be read' 1 '' 'could not read pg_control'
verify
ends 'no directory is a wrong usage' 2 '' 'no data directory is named'
verify "$good" "$bare"
ends 'so are two' 2 '' 'more than one directory'
verify --repair "$good"
ends 'and an option that there is not' 2 '' 'unknown option "--repair"'
echo "1..$number"
