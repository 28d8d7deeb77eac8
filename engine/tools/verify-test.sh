#!/usr/bin/env bash
# The guarantees of `./floe engine verify`, in TAP: what verifies, what does not and is named, what is refused, and that nothing
# is changed. Called by `./floe engine test verify` with the variant, its prefix and a directory of the engine's user.
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
ends 'a running instance is refused' 1 'in production' 'is in use or was not shut down cleanly'

stop "$good" immediate
verify "$good"
ends 'one that was not shut down cleanly is refused, and what to do is said' 1 'in production' 'start it once, so that recovery repairs torn pages'

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
