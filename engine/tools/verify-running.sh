# shellcheck shell=bash disable=SC2154,SC2034
# Verifies the pages of a running instance, and tells of each file that fails whether the catalogs know it.
#
# The server itself verifies: a base backup to nowhere reads every page, twice where it has to, and leaves out those that change
# meanwhile. A file belongs to nothing only if that is proved:
#   1. it is seen, and only then the running transactions are listed: who made it without having committed is one of them;
#   2. they have all ended, and then no catalog knows it;
#   3. it has not changed since it was seen.
# Whatever cannot be proved is unknown, and counts like a file that matters.

# with_server <database> <program> <options…>: a client of the running instance, as the user whom it belongs to. What its superuser
# has defined to run at a login stays off.
with_server() {
  local database=$1 program=$2
  shift 2
  as_owner "$directory" env -u PGHOSTADDR -u PGSERVICE "PGHOST=$server_host" "PGPORT=$server_port" "PGUSER=${PGUSER:-postgres}" \
    "PGDATABASE=$database" "PGOPTIONS=-c event_triggers=off -c search_path=pg_catalog -c lc_messages=C" \
    "$prefix/bin/$program" -w "$@"
}

# ask <database> <query> [variables]: sets rows, one each, its columns separated by tabs.
ask() {
  local database=$1 query=$tools_dir/verify-sql/$2.sql
  shift 2
  mapfile -d '' -t rows < <(with_server "$database" psql -XAtq -0 -F $'\t' -v ON_ERROR_STOP=1 "$@" <"$query" 2>"$errors")
  wait $!
}

printable() { printf '%s' "${1//[[:cntrl:]]/?}"; }

# find_server: where the instance listens, by its postmaster.pid; whoever answers there has to be this instance.
find_server() {
  local lines
  mapfile -t lines < <(as_owner "$directory" cat "$directory/postmaster.pid")
  server_port=${lines[3]:-} server_host=${lines[4]:-}
  if [ -z "$server_host" ]; then
    server_host=${lines[5]:-}
    case $server_host in '*' | 0.0.0.0 | ::) server_host=localhost ;; esac
  fi
  ask "$home_database" server ||
    fail "could not connect to the running instance" "$(printable "$(<"$errors")")" \
      "Name a superuser in PGUSER (default postgres), its password in PGPASSWORD, and a database in PGDATABASE (default postgres)."
  [ "$(as_owner "$directory" realpath "${rows[0]%$'\t'*}")" = "$(realpath "$directory")" ] ||
    fail "another instance answers at port $server_port of \"$server_host\"" "Its data directory is \"$(printable "${rows[0]%$'\t'*}")\"."
  in_recovery=${rows[0]##*$'\t'}
}

# inside_directory <path as a base backup names it>: relative to the data directory.
inside_directory() {
  local path=${1#./} link location
  while IFS=$'\t' read -r link location; do
    [ "${path#"$location"/}" = "$path" ] || path=pg_tblspc/$link/${path#"$location"/}
  done <<<"$tablespace_links"
  printf '%s' "$path"
}

# read_all_pages: sets failed_pages, by file.
read_all_pages() {
  local report status=0 line path
  report=$(with_server "$home_database" pg_basebackup --target=blackhole -X none --no-manifest --checkpoint=fast 2>&1) || status=$?
  tablespace_links=$(as_owner "$directory" find "$directory/pg_tblspc" -maxdepth 1 -type l -printf '%f\t%l\n')
  while IFS= read -r line; do
    case $line in
      *'NOTICE: '* | *'pg_basebackup: error: checksum error occurred'*) continue ;;
    esac
    printf '%s\n' "$(printable "$line")"
    if [[ $line =~ file\ \"(.*)\"\ has\ a\ total\ of\ ([0-9]+)\  ]]; then
      failed_pages["$(inside_directory "${BASH_REMATCH[1]}")"]=${BASH_REMATCH[2]}
    elif [[ $line =~ (verification\ failed|could\ not\ verify\ checksum)\ in\ file\ \"(.*)\",\ block\ [0-9]+: ]]; then
      path=$(inside_directory "${BASH_REMATCH[2]}")
      failed_pages["$path"]=$((${failed_pages["$path"]:-0} + 1))
    fi
  done <<<"$report"
  [ "$status" -eq 0 ] || [[ $report == *'checksum error occurred'* ]] ||
    fail "the running instance could not read all of its pages" "See the lines above." \
      "A standby that replayed WAL without full-page images cannot: verify its primary, or stop the standby and verify it then."
}

# look_at_files: prints name and what identifies the present state of each file that failed and is still there.
look_at_files() {
  # shellcheck disable=SC2016
  printf '%s\0' "${!failed_pages[@]}" |
    as_owner "$directory" bash -c 'cd "$1" && xargs -0 stat --printf "%n\t%i %s %y %z\n" -- 2>/dev/null || true' - "$directory"
}

# await_transactions: waits until those that ran when it is called have ended; sets still_running to those that have not at the
# bound. One that is prepared meanwhile has another name, so every prepared one counts.
await_transactions() {
  local -A earlier=()
  local until=$((SECONDS + 10#$wait_s)) row first=yes
  while :; do
    ask "$home_database" running-transactions || fail "could not list the running transactions" "$(printable "$(<"$errors")")"
    still_running=()
    for row in "${rows[@]}"; do
      if [ "$first" = yes ]; then earlier["$row"]=1; fi
      if [[ $row == prepared* ]] || [ -n "${earlier["$row"]:-}" ]; then still_running+=("$row"); fi
    done
    first=no
    if [ ${#still_running[@]} -eq 0 ] || [ "$SECONDS" -ge "$until" ]; then return 0; fi
    sleep 0.2
  done
}

# place_of <file>: sets tablespace, database (0 for shared ones) and number; fails for a name that no relation's file has.
place_of() {
  local fork='(_(fsm|vm|init))?(\.[0-9]+)?$'
  if [[ $1 =~ ^global/([0-9]+)$fork ]]; then
    tablespace=1664 database=0 number=${BASH_REMATCH[1]}
  elif [[ $1 =~ ^base/([0-9]+)/([0-9]+)$fork ]]; then
    tablespace=1663 database=${BASH_REMATCH[1]} number=${BASH_REMATCH[2]}
  elif [[ $1 =~ ^pg_tblspc/([0-9]+)/[^/]+/([0-9]+)/([0-9]+)$fork ]]; then
    tablespace=${BASH_REMATCH[1]} database=${BASH_REMATCH[2]} number=${BASH_REMATCH[3]}
  else
    return 1
  fi
}

# read_catalogs: sets database_name, database_state and known_relations, as far as the files that failed need them.
read_catalogs() {
  local -A numbers=()
  local file oid row tablespace database number
  ask "$home_database" databases || fail "could not read pg_database" "$(printable "$(<"$errors")")"
  for row in "${rows[@]}"; do
    oid=${row%%$'\t'*} row=${row#*$'\t'}
    database_state["$oid"]=${row%%$'\t'*} database_name["$oid"]=${row#*$'\t'}
  done
  database_state[0]=open database_name[0]=$home_database
  for file in "${!failed_pages[@]}"; do
    if place_of "$file"; then numbers["$database"]+=${numbers["$database"]:+,}$number; fi
  done
  for oid in "${!numbers[@]}"; do
    [ "${database_state["$oid"]:-}" = open ] || continue
    if ! ask "${database_name["$oid"]}" relations -v "files={${numbers["$oid"]}}"; then
      database_state["$oid"]="could not be asked: $(<"$errors")"
      continue
    fi
    if [ "$oid" != 0 ] && [ "${rows[0]}" != "$oid"$'\t\t' ]; then
      database_state["$oid"]='was renamed meanwhile'
      continue
    fi
    for row in "${rows[@]:1}"; do
      number=${row%%$'\t'*} row=${row#*$'\t'}
      known_relations["$oid/${row%%$'\t'*}/$number"]=${row#*$'\t'}
    done
  done
}

# judge_file <file>: sets word (nothing, matters or unknown) and why. The first row that applies decides; "nothing" stands
# behind everything that could make it untrue.
judge_file() {
  local file=$1 tablespace database number relation state
  if ! place_of "$file"; then
    word=unknown why="it has not the name of a relation's file"
    return
  fi
  relation=${known_relations["$database/$tablespace/$number"]:-} state=${database_state["$database"]:-none}
  if [ -n "$relation" ]; then
    word=matters why="relation $relation of database \"${database_name["$database"]}\""
  elif [ -z "${second_look["$file"]:-}" ]; then
    word=unknown why="it cannot be looked at, or has been removed meanwhile"
  elif [ "${first_look["$file"]:-}" != "${second_look["$file"]}" ]; then
    word=unknown why="it changes"
  elif [ "$state" = invalid ]; then
    word=nothing why="DROP DATABASE left database \"${database_name["$database"]}\" unfinished; run it again"
  elif [ "$in_recovery" = t ]; then
    word=unknown why="a standby does not see what its primary's running transactions made"
  elif [ ${#still_running[@]} -gt 0 ]; then
    word=unknown why="a transaction that may have made it still runs: ${still_running[0]}"
  elif [ "$state" = none ]; then
    word=nothing why="no database has the number $database"
  elif [ "$state" = closed ]; then
    word=unknown why="database \"${database_name["$database"]}\" accepts no connections (ALLOW_CONNECTIONS)"
  elif [ "$state" != open ]; then
    word=unknown why="database \"${database_name["$database"]}\" $state"
  else
    word=nothing why="no relation of database \"${database_name["$database"]}\" has this file"
  fi
}

verify_running() {
  local wait_s=$1 home_database=${PGDATABASE:-postgres}
  local errors server_host server_port in_recovery tablespace_links file word why pages
  local -A failed_pages=() first_look=() second_look=() database_name=() database_state=() known_relations=() files=() sums=()
  local -a rows=() still_running=()
  errors=$(mktemp)
  # shellcheck disable=SC2064
  trap "rm -f '$errors'" EXIT
  find_server
  read_all_pages
  while IFS=$'\t' read -r file pages; do first_look["$file"]=$pages; done < <(look_at_files)
  if [ ${#failed_pages[@]} -gt 0 ]; then
    await_transactions
    read_catalogs
    while IFS=$'\t' read -r file pages; do second_look["$file"]=$pages; done < <(look_at_files)
  fi
  while IFS= read -r file; do
    [ -n "$file" ] || continue
    judge_file "$file"
    printf '%-8s %s (pages: %s): %s\n' "$word" "$(printable "$file")" "${failed_pages["$file"]}" "$(printable "$why")"
    files["$word"]=$((${files["$word"]:-0} + 1)) sums["$word"]=$((${sums["$word"]:-0} + ${failed_pages["$file"]}))
  done < <(printf '%s\n' "${!failed_pages[@]}" | sort -V)
  printf 'pages that do not verify: %s in %s files that matter, %s in %s unknown files, %s in %s files that belong to nothing\n' \
    "${sums[matters]:-0}" "${files[matters]:-0}" "${sums[unknown]:-0}" "${files[unknown]:-0}" "${sums[nothing]:-0}" "${files[nothing]:-0}"
  [ $((${files[matters]:-0} + ${files[unknown]:-0})) -eq 0 ] ||
    fail "some pages of \"$directory\" do not verify" "See the lines above." \
      "A file is unknown until it is proved that nothing has it: run this again later."
}
