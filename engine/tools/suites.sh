# shellcheck shell=bash disable=SC2154,SC2034
# Runs the suites on the assert engine, as an unprivileged user, each in a private directory.

test_usage() {
  cat <<'HELP'
usage: ./floe engine test [--list] [--quick] [--long] [--sanitize] [suite…]

Without names runs all suites: PostgreSQL's own, patches, indent, verify (this tool's verb), testkit, and one
for each module. PostgreSQL's own are regress-flashback-log (with the settings of engine/testkit/as-postgresql.conf,
and a flashback log), regress (without the log, and only what engine/testkit/storage-tests names), regress-defaults
and isolation (with the engine's defaults), and regress-shared-moved (through the port of shared sessions, each
transaction in another worker). --quick leaves these five out.
--long has regress run all tests, adds regress-size-8kB, regress-size-0 and regress-size-max, which run PostgreSQL's
suite with every bulk size at that value, one after another, the first two with small pools; adds through the port of
shared sessions regress-shared and isolation-shared with the defaults, isolation-shared-moved, and of both -two on two
workers, -three at three dispatchers, each transaction in another worker, -dedicated where something pins each session,
-off with the feature off; and takes the long form of the modules' tests where they have one. --list only names the
suites. One TAP file of testkit or a module is named like page_repair/011_tls. --sanitize runs them on an engine built with the address and undefined-behaviour
sanitizers, several times slower; any report of theirs is a failure. FLOE_TEST_DISPATCHERS=3 in the environment runs
shared_server's tests with as many dispatchers, but for those that say how many they want.
The last line reads "N passed, N failed, N skipped"; the exit status is 1 when anything failed. Right before it each
failed test is named ("failed: page_repair/011_tls: not ok 3 - …"), with the first lines of its diagnostics or its
difference. What a failed suite left behind is kept, and its place is printed.
HELP
}

# ensure_engine_user: PostgreSQL refuses to run as root.
ensure_engine_user() {
  [ "$(id -u)" -eq 0 ] || return 0
  id -u "$engine_user" >/dev/null 2>&1 ||
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$engine_user" ||
    fail "could not create the user \"$engine_user\""
}

# as_engine_user <command…>: with an environment of its own, so that no PG* variable leaks in.
as_engine_user() {
  local identity=()
  if [ "$(id -u)" -eq 0 ]; then
    identity=(setpriv "--reuid=$engine_user" "--regid=$engine_user" --clear-groups)
  fi
  local pgxs=$prefix/lib/postgresql/pgxs
  "${identity[@]}" env -i "PATH=$prefix/bin:/usr/local/bin:/usr/bin:/bin" "HOME=$run_dir" LC_ALL=C TZ=UTC \
    "INITDB_TEMPLATE=$run_dir/template" "PG_REGRESS=$pgxs/src/test/regress/pg_regress" \
    "REGRESS_SHLIB=$prefix/lib/postgresql/regress.so" "top_builddir=$run_dir" enable_injection_points=yes \
    "ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:verify_asan_link_order=0:abort_on_error=1:log_path=$run_dir/sanitizer" \
    "UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1:log_path=$run_dir/sanitizer" \
    "FLOE_BUILTIN_PRELOAD=$(preload_list)" "PG_TEST_EXTRA=${PG_TEST_EXTRA:-}" \
    ${long:+FLOE_TEST_LONG=1} ${FLOE_TEST_SEED:+"FLOE_TEST_SEED=$FLOE_TEST_SEED"} \
    ${FLOE_TEST_DISPATCHERS:+"FLOE_TEST_DISPATCHERS=$FLOE_TEST_DISPATCHERS"} \
    "TESTDATADIR=${suite_dir:-$run_dir}/data" "TESTLOGDIR=${suite_dir:-$run_dir}/log" "$@"
}

# stop_instances: whatever a suite that was cut short left running in our directory, by its pid file.
stop_instances() {
  local file pid
  while read -r file; do
    pid=$(head -n 1 "$file")
    case $pid in *[!0-9]* | '') continue ;; esac
    [ "$(readlink "/proc/$pid/exe" 2>/dev/null)" = "$prefix/bin/postgres" ] && kill -QUIT "$pid" 2>/dev/null
  done < <(find "$run_dir" -name postmaster.pid 2>/dev/null) || true
}

# failures <part> <exit status> <log> [regression.diffs]: the failed tests of one run, for its summary: a line
# "failed: PART: not ok …" for each, with a few indented lines of its diagnostics or of its difference below.
# A run that died without such a line is named with the last that it printed.
failures() {
  awk -v part="$1" -v status="$2" -v diffs="${4:-}" '
    function show(text) { print "  " substr(text, 1, 200) }
    function tail() { for (j = count > 12 ? count - 11 : 1; j <= count; j++) show(last[j]) }
    # the diagnostics go past prove: they come in the order of the failures, not beside them
    /^not ok / { failed[++failures] = $0; next }
    /^#   Failed test/ { block[++blocks] = $0; lines = 1; next }
    /^# Looks like|^[^#]/ { lines = 0 }
    /^#/ && lines > 0 && lines++ < 8 { block[blocks] = block[blocks] "\n" $0; next }
    /^ *$|^ok / { next }
    { last[++count] = $0 }
    END {
      if (diffs != "") while ((getline line < diffs) > 0) {
        if (line ~ /^diff /) {
          name = line
          sub(/^.*\//, "", name)
          sub(/\.out$/, "", name)
          seen = 0
        }
        if (name != "" && seen++ < 20) diff[name] = diff[name] (seen > 1 ? "\n" : "") line
      }
      for (i = 1; i <= failures && i <= 10; i++) {
        print "failed: " part ": " failed[i]
        # of pg_regress: "not ok 5 + name 12 ms", "not ok 5 - name 12 ms"
        name = failed[i]
        sub(/^not ok +[0-9]+ +[-+] */, "", name)
        sub(/ +[0-9]+ ms.*$/, "", name)
        below = (name in diff) ? diff[name] : block[i]
        n = split(below, shown, "\n")
        for (j = 1; j <= n; j++) show(shown[j])
        if (n == 0 && failures == 1) tail()
      }
      if (failures > 10) print "failed: " part ": " failures - 10 " more"
      if (failures == 0 && status != 0) {
        print "failed: " part ": it ended with exit status " status
        tail()
      }
    }' "$3"
}

# judge <suite> <part> <exit status> <log> [regression.diffs]: adds what one run of a suite came to, and what failed in it.
judge() {
  local suite=$1 part=$2 status=$3 log=$4 passed failed skipped
  skipped=$(grep -Eci '^ok .*# skip' "$log" || true)
  passed=$(($(grep -c '^ok ' "$log" || true) - skipped))
  failed=$(grep -c '^not ok ' "$log" || true)
  # A test file that says why it runs nothing at all.
  skipped=$((skipped + $(grep -Eci '^1\.\.0 # skip' "$log" || true)))
  # A run that dies, or that runs nothing, has failed whatever it printed before.
  if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ $((passed + skipped)) -eq 0 ]; }; then failed=1; fi
  echo "$passed $failed $skipped" >>"$run_dir/results/$suite"
  if [ "$failed" -gt 0 ]; then
    # nothing ran, though nothing went wrong
    if [ $((passed + skipped)) -eq 0 ] && [ "$status" -eq 0 ]; then status='0, without a test'; fi
    failures "$part" "$status" "$log" "${5:-}" >>"$run_dir/failures/$suite"
    printf 'floe: the log of %s is %s\n' "$part" "$log" >&2
  fi
}

# in_all <directory> [name]: what its files hold.
in_all() { find "$1" -type f -name "${2:-*}" -print0 | sort -z | xargs -0 -r cat; }

# counts_of [suite]: "passed failed skipped", of all suites without a name.
counts_of() { in_all "$run_dir/results" "$@" | awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }'; }

# print_result <suite>: what its runs came to.
print_result() {
  local passed failed skipped
  read -r passed failed skipped <<<"$(counts_of "$1")"
  printf '%-28s %s passed, %s failed, %s skipped\n' "$1" "$passed" "$failed" "$skipped"
}

# record <suite> <exit status> <log> [regression.diffs]: the result of a suite that is one run.
record() {
  judge "$1" "$@"
  print_result "$1"
}

# took <part> <SECONDS when it began>: how long it ran; ./floe test names the slowest parts of all suites.
took() { printf '%-28s took %s s\n' "$1" "$((SECONDS - $2))"; }

# apart <directory…>: has ext4 spread what is made in them over the disk. To make a file near hundreds that were removed within
# the last minutes takes it longer than the file's bytes.
apart() { chattr +T "$@" 2>/dev/null || true; }

# announce <suite>: sets suite_dir and log.
announce() {
  suite_dir=$run_dir/suites/$1 log=$run_dir/suites/$1.log
  as_engine_user mkdir -p "$suite_dir/data" "$suite_dir/log"
  apart "$suite_dir" "$suite_dir/data"
  step "test $1"
}

# regress_suite <suite> <pg_regress | pg_isolation_regress> <inputs> <arguments…>: no locale is named, because the template that the
# instance is copied from has C, and with one named it would be made by initdb each time.
regress_suite() {
  local suite=$1 program=$2 inputs=$3 status=0 began=$SECONDS suite_dir log
  shift 3
  announce "$suite"
  (cd "$inputs" && as_engine_user "$program" --inputdir="$inputs" --expecteddir="$inputs" --outputdir="$suite_dir" \
    --temp-instance="$suite_dir/instance" --temp-config="$run_dir/fast.conf" --bindir="$prefix/bin" \
    --dlpath="$prefix/lib/postgresql" --max-concurrent-tests=20 --encoding=UTF8 "$@") >"$log" 2>&1 || status=$?
  if [[ $suite == regress-defaults || $suite == regress-size-* ]]; then
    excuse_size_dependent "$log"
    # Without the excused ones the status says nothing; a run that broke off has too few results.
    status=$(($(grep -Ec '^(not )?ok ' "$log" || true) < $(grep -c . "$run_dir/core-tests" || true)))
  fi
  record "$suite" "$status" "$log" "$suite_dir/regression.diffs"
  took "$suite" "$began"
}

# excuse_size_dependent <log>: what testkit/size-dependent-tests names counts as skipped, whether it differs or not:
# by chance some do not, and a run is remembered only with as many skipped tests as the last one.
excuse_size_dependent() {
  local name
  while read -r name; do
    sed -i -E "s/^(not )?ok ([0-9]+ +[-+] $name +[0-9]+ ms.*)/ok \\2 # SKIP depends on the size of relations/" "$1"
  done < <(grep -v -e '^#' -e '^$' "$testkit_dir/size-dependent-tests")
}

# write_sizes <8kB | 0 | max>: every bulk size at that value, the last one at the end of each range.
write_sizes() {
  local setting size
  for setting in polar_bulk_read_size polar_bulk_write_size polar_bulk_extend_size \
    polar_index_create_bulk_extend_size polar_recovery_bulk_extend_size; do
    size=$1
    case $1,$setting in
      max,*_extend_size) size=8MB ;;
      max,*) size=1MB ;;
    esac
    echo "$setting = $size"
  done
}

# core_regress: PostgreSQL's suite: as PostgreSQL behaves with a flashback log, with our defaults, and what --long adds.
core_regress() {
  local inputs=$prefix/lib/postgresql/pgxs/src/test/regress suite configurations tests
  sed -n 's/^test: *//p' "$inputs/parallel_schedule" | tr -s ' ' '\n' >"$run_dir/core-tests"
  for suite in "$@"; do
    configurations=() tests=("--schedule=$inputs/parallel_schedule")
    case $suite in
      regress)
        configurations=("--temp-config=$run_dir/testkit/as-postgresql.conf")
        # Who passes with a flashback log, and with our defaults, has passed nearly all of it
        if [ -z "$long" ]; then mapfile -t tests < <(grep -v -e '^#' -e '^$' "$testkit_dir/storage-tests"); fi
        ;;
      regress-flashback-log)
        configurations=("--temp-config=$run_dir/testkit/as-postgresql.conf"
          "--temp-config=$run_dir/testkit/flashback-log.conf")
        ;;
      regress-size-*)
        write_sizes "${suite#regress-size-}" >"$run_dir/$suite.conf"
        # Nothing is written in runs where a process may pin one buffer only, as in a small pool
        if [ "$suite" = regress-size-max ]; then echo 'shared_buffers = 128MB' >>"$run_dir/$suite.conf"; fi
        configurations=("--temp-config=$run_dir/testkit/small-pools.conf" "--temp-config=$run_dir/$suite.conf")
        ;;
    esac
    regress_suite "$suite" "$inputs/pg_regress" "$inputs" "${configurations[@]}" "${tests[@]}"
  done
}

# free_ports <count>: ports of 127.0.0.1 that nobody uses.
free_ports() {
  perl -MIO::Socket::INET -e '
    my @s = map { IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die $! } 1 .. shift;
    print join(" ", map { $_->sockport } @s), "\n"' "$1"
}

# shared_suite <suite>: PostgreSQL's suite through the port of shared sessions. What testkit/shared-differences names
# counts as skipped.
shared_suite() {
  local suite=$1 kind=${1%%-*} status=0 began=$SECONDS suite_dir log native shared inputs program schedule
  local pgxs=$prefix/lib/postgresql/pgxs client=() proof='logins > 100'
  case $kind in
    regress) inputs=$pgxs/src/test/regress program=pg_regress schedule=$inputs/parallel_schedule ;;
    isolation) inputs=$pgxs/src/test/isolation program=pg_isolation_regress schedule=$inputs/isolation_schedule ;;
  esac
  case $suite in
    *-dedicated) proof+=' AND binds = 0' ;;
    *-off) proof='logins = 0' ;;
  esac
  announce "$suite"
  if [ "$kind" = isolation ]; then
    # what differs there waits in vain, for minutes
    differing "$suite" | sed 's/^/test: /' | grep -vxFf - "$schedule" >"$suite_dir/schedule" || cp "$schedule" "$suite_dir/schedule"
    schedule=$suite_dir/schedule
  fi
  read -r native shared < <(free_ports 2)
  as_engine_user cp -a "$run_dir/template" "$suite_dir/instance"
  {
    cat "$run_dir/fast.conf" "$run_dir/testkit/as-postgresql.conf"
    printf '%s\n' "listen_addresses = '127.0.0.1'" "port = $native" "unix_socket_directories = '$suite_dir'" \
      'max_prepared_transactions = 2' 'log_lock_waits = on' "polar_ss_port = $shared" 'polar_enable_shared_server = on'
    case $suite in
      *-moved) printf '%s\n' 'polar_ss_debug_force_migrate = on' 'polar_ss_backend_max_count = -2' ;;
      *-two) echo 'polar_ss_backend_max_count = 2' ;;
      *-three) printf '%s\n' 'polar_ss_debug_force_migrate = on' 'polar_ss_backend_max_count = -2' \
        'polar_ss_dispatcher_count = 3' 'max_worker_processes = 11' ;;
      # a library that is not known to be harmless
      *-dedicated) printf '%s\n' "session_preload_libraries = 'dblink'" 'polar_ss_debug_force_migrate = on' ;;
      *-off) echo 'polar_enable_shared_server = off' ;;
      isolation-*) echo 'polar_ss_backend_max_count = -2' ;;
    esac
  } >>"$suite_dir/instance/postgresql.conf"
  client=(as_engine_user "$prefix/bin/psql" -XAt -h 127.0.0.1 -p "$native" -d postgres)
  {
    as_engine_user "$prefix/bin/pg_ctl" -D "$suite_dir/instance" -l "$suite_dir/server.log" -w start >/dev/null
    # a step that waits in vain is given up after twice this time
    (cd "$inputs" && as_engine_user env PGISOLATIONTIMEOUT=30 "$inputs/$program" --inputdir="$inputs" \
      --expecteddir="$inputs" --outputdir="$suite_dir" --host=127.0.0.1 --port="$shared" --bindir="$prefix/bin" \
      --dlpath="$prefix/lib/postgresql" --max-concurrent-tests=20 --encoding=UTF8 \
      --schedule="$schedule") || status=$?
    "${client[@]}" -c 'CREATE EXTENSION IF NOT EXISTS shared_server' -c "SELECT '# sessions moved: ' || binds
      FROM (SELECT sum(logins) AS logins, sum(binds) AS binds FROM polar_stat_dispatcher) d WHERE $proof" | grep '^#' || echo "not ok 9999 - not true of the dispatcher: $proof"
    as_engine_user "$prefix/bin/pg_ctl" -D "$suite_dir/instance" -m fast -w stop >/dev/null
    if grep -E 'TRAP|PANIC|image differs' "$suite_dir/server.log"; then echo 'not ok 9999 - the server did not stumble'; fi
  } >"$log" 2>&1
  excuse_differences "$suite" "$log"
  status=$(($(grep -Ec '^(not )?ok ' "$log" || true) < $(sed -n 's/^test: *//p' "$schedule" | wc -w)))
  record "$suite" "$status" "$log" "$suite_dir/regression.diffs"
  took "$suite" "$began"
}

# differing <suite>: the tests whose difference is known, from lines of "SUITE TEST".
differing() { awk -v suite="$1" '$1 == suite { print $2 }' "$testkit_dir/shared-differences"; }

# excuse_differences <suite> <log>
excuse_differences() {
  local name
  while read -r name; do
    sed -i -E "s/^(not )?ok ([0-9]+ +[-+] $name +[0-9]+ ms.*)/ok \\2 # SKIP differs through the shared port/" "$2"
  done < <(differing "$1")
}

# verify_suite: the verb that verifies pages; as who called, since it changes to the owner itself.
verify_suite() {
  local status=0 began=$SECONDS suite_dir log
  announce verify
  ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:verify_asan_link_order=0 \
    "$tools_dir/verify-test.sh" "$variant" "$prefix" "$suite_dir/data" >"$log" 2>&1 || status=$?
  record verify "$status" "$log"
  took verify "$began"
}

# beside <command…>: in the background, as soon as fewer than $at_once run. Suites wait more than they compute.
beside() {
  while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n || true; done
  # in a process group of its own, by which stop_jobs finds all of it
  set -m
  "$@" &
  set +m
}

stop_jobs() {
  local pid
  for pid in $(jobs -rp); do kill -TERM -- "-$pid" 2>/dev/null || true; done
}

# tap_suite <suite> <directory that holds t/>: begins its files; record_tap_suites prints its result.
tap_suite() {
  local suite=$1 inputs=$2 file suite_dir log
  announce "$suite"
  mkdir -p "$run_dir/tap/$suite"
  tap_suites+=("$suite")
  for file in "$inputs"/t/${only:-*}.pl; do beside tap_file "$suite" "$inputs" "${file##*/}"; done
}

# tap_file <suite> <directory that holds t/> <file>: every file gets directories of its own, named after it.
tap_file() {
  local inputs=$2 file=$3 status=0 began=$SECONDS suite_dir=$run_dir/suites/$1/${3%.pl} log=$run_dir/tap/$1/${3%.pl}
  echo 1 >"$log.status"
  echo "${inputs##*/}/${file%.pl}" >"$log.part"
  as_engine_user mkdir -p "$suite_dir/data" "$suite_dir/log"
  apart "$suite_dir/data"
  (cd "$inputs" && as_engine_user prove -v --norc --nocolor -I "$prefix/lib/postgresql/pgxs/src/test/perl" \
    -I "$run_dir/testkit/perl" "t/$file") >"$log.log" 2>&1 || status=$?
  # A file that died said why in its own log alone.
  if [ "$status" -ne 0 ] && ! grep -q '^not ok ' "$log.log"; then
    tail -n 10 "$suite_dir/log/regress_log_${file%.pl}" 2>/dev/null | sed 's/^/log: /' >>"$log.log" || true
  fi
  echo "$status" >"$log.status"
  took "$(<"$log.part")" "$began"
}

# record_tap_suites: once all their files have ended.
record_tap_suites() {
  local suite log
  for suite in "${tap_suites[@]}"; do
    cat "$run_dir/tap/$suite"/*.log >"$run_dir/suites/$suite.log"
    for log in "$run_dir/tap/$suite"/*.log; do
      log=${log%.log}
      # The summary of prove repeats nothing that starts with "ok "; its own lines are not counted.
      judge "$suite" "$(<"$log.part")" "$(<"$log.status")" "$log.log"
    done
    print_result "$suite"
  done
}

# make_variable <directory> <name>
make_variable() {
  make -s --no-print-directory -C "$1" USE_PGXS=1 "PG_CONFIG=$prefix/bin/pg_config" \
    --eval="print-variable: ; @echo \$($2)" print-variable 2>/dev/null | tail -n 1
}

# listed_everywhere <suite> <directory> <extension> <names…>: a test file that no list names would never run.
listed_everywhere() {
  local suite=$1 directory=$2 extension=$3 file names=" ${*:4} " missing=0
  for file in "$directory"/*."$extension"; do
    [ -e "$file" ] || continue
    case $names in
      *" $(basename "$file" ".$extension") "*) ;;
      *)
        echo "not ok 1 - $(basename "$file") is named in the Makefile"
        missing=1
        ;;
    esac
  done >"$run_dir/suites/$suite-list.log"
  if [ -s "$run_dir/suites/$suite-list.log" ]; then record "$suite-list" 1 "$run_dir/suites/$suite-list.log"; fi
  return "$missing"
}

# module_suites <module>: pg_regress, isolation, TAP: whichever the module has.
module_suites() {
  local module=$1 inputs=$run_dir/modules/$1 pgxs=$prefix/lib/postgresql/pgxs names options=() any=''
  if [ -n "$only" ]; then
    tap_suite "$module-tap-$only" "$inputs"
    return
  fi
  if [ -e "$inputs/$module.conf" ]; then options+=(--temp-config="$inputs/$module.conf"); fi
  names=$(make_variable "$inputs" REGRESS)
  listed_everywhere "$module" "$inputs/sql" sql "$names" || true
  if [ -n "$names" ]; then
    any=yes
    # shellcheck disable=SC2086
    beside regress_suite "$module" "$pgxs/src/test/regress/pg_regress" "$inputs" "${options[@]}" $names
  fi
  names=$(make_variable "$inputs" ISOLATION)
  listed_everywhere "$module-isolation" "$inputs/specs" spec "$names" || true
  if [ -n "$names" ]; then
    any=yes
    # shellcheck disable=SC2086
    beside regress_suite "$module-isolation" "$pgxs/src/test/isolation/pg_isolation_regress" "$inputs" "${options[@]}" $names
  fi
  if compgen -G "$inputs/t/*.pl" >/dev/null; then
    any=yes
    tap_suite "$module-tap" "$inputs"
  fi
  [ -n "$any" ] || {
    echo "not ok 1 - module $module has tests" >"$run_dir/suites/$module.log"
    record "$module" 1 "$run_dir/suites/$module.log"
  }
}

# command_suite <suite> <command…>: one check that either holds or not.
command_suite() {
  local suite=$1 log=$run_dir/suites/$1.log status=0 began=$SECONDS
  shift
  step "test $suite"
  ("$@") >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then echo "ok 1 - $suite"; else echo "not ok 1 - $suite"; fi >>"$log"
  if [ "$status" -ne 0 ]; then cat "$log" >&2; fi
  record "$suite" "$status" "$log"
  took "$suite" "$began"
}

# remove_old_runs: what failed or killed runs have left is kept for a day.
remove_old_runs() {
  local old
  while read -r old; do
    in_use "$old" || rm -rf "$old"
  done < <(find "$cache_dir/test" -mindepth 1 -maxdepth 1 -name 'run.*' -mtime +0 2>/dev/null)
}

# prepare_run: the private directory, owned by the engine user, with copies of what the checkout holds.
prepare_run() {
  local module
  remove_old_runs
  run_dir=$(mktemp -d "$cache_dir/test/run.XXXXXX")
  chmod 755 "$run_dir"
  echo $$ >"$run_dir/tool.pid"
  mkdir -p "$run_dir"/{suites,results,failures,modules}
  apart "$run_dir/suites"
  cp -r "$testkit_dir" "$run_dir/testkit"
  for module in $(modules); do cp -r "$modules_dir/$module" "$run_dir/modules/$module"; done
  # The suites do not outlive the machine, so they need not wait for its disk.
  echo 'fsync = off' >"$run_dir/fast.conf"
  if [ "$(id -u)" -eq 0 ]; then chown -R "$engine_user:" "$run_dir"; fi
  as_engine_user "$prefix/bin/initdb" --auth trust --no-sync --no-instructions --lc-messages=C --no-clean \
    -D "$run_dir/template" >"$run_dir/initdb.log" 2>&1 ||
    fail "initdb failed" "$(tail -n 5 "$run_dir/initdb.log")" "The log is $run_dir/initdb.log."
  # Most of it is a WAL segment of zeroes, which each instance would write again
  find "$run_dir/template/pg_wal" -type f -exec fallocate --dig-holes {} + 2>/dev/null || true
}

# sanitizer_suite: a process that a sanitizer ended may have been one whose death a test expected.
sanitizer_suite() {
  local log=$run_dir/suites/sanitizer.log file number=0
  for file in "$run_dir"/sanitizer.*; do
    [ -e "$file" ] || continue
    number=$((number + 1))
    printf 'not ok %s - a report of a sanitizer\n' "$number"
    sed 's/^/# /' "$file"
  done >"$log"
  [ -s "$log" ] || echo 'ok 1 - no sanitizer reported anything' >"$log"
  record sanitizer 0 "$log"
}

# conclude: sums the results and ends the tool.
conclude() {
  local passed failed skipped
  read -r passed failed skipped <<<"$(counts_of)"
  stop_instances
  in_all "$run_dir/failures"
  trap - EXIT
  if [ "$failed" -eq 0 ]; then rm -rf "$run_dir"; else printf 'floe: what the suites left is in %s\n' "$run_dir" >&2; fi
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}

# modules_longest_first: those with the most TAP files first, so that the end of a run has many short ones to fill it.
modules_longest_first() {
  local module
  for module in $(modules); do
    printf '%s %s\n' "$(find "$modules_dir/$module" -path '*/t/*.pl' | wc -l)" "$module"
  done | sort -k1,1nr -k2 | cut -d ' ' -f 2
}

test_verb() {
  local list='' quick='' long=${FLOE_TEST_LONG:-} variant=assert wanted=() suite only='' known prefix run_dir at_once core=() tap_suites=()
  while [ $# -gt 0 ]; do
    case $1 in
      --list) list=yes ;;
      --quick) quick=yes ;;
      --long) long=yes ;;
      --sanitize) variant=sanitize ;;
      --help | -h)
        test_usage
        exit 0
        ;;
      -*) usage_error "unknown option \"$1\"" "./floe engine test --help" ;;
      *) wanted+=("$1") ;;
    esac
    shift
  done
  # Run when they are named, or with --long
  local optional=' regress-size-8kB regress-size-0 regress-size-max' setting
  for setting in '' -two -three -dedicated -off; do optional+=" regress-shared$setting isolation-shared$setting"; done
  optional+=' isolation-shared-moved '
  local own='regress-flashback-log regress-defaults regress regress-shared-moved isolation'
  known=" $own patches indent verify $(modules_longest_first | tr '\n' ' ')testkit "
  if [ -n "$list" ]; then
    xargs -n 1 <<<"$known${long:+$optional}"
    return
  fi
  for suite in "${wanted[@]}"; do
    case $known$optional in
      *" ${suite%%/*} "*)
        [ "$suite" = "${suite%%/*}" ] || [ -e "$modules_dir/${suite/\///t/}.pl" ] || [ -e "$engine_dir/${suite/\///t/}.pl" ] ||
          usage_error "there is no TAP file \"$suite\"" "./floe engine test --help"
        ;;
      *) usage_error "unknown suite \"$suite\"; there are:${known% }${optional% }" "./floe engine test --help" ;;
    esac
  done
  if [ ${#wanted[@]} -eq 0 ]; then
    read -ra wanted <<<"$known"
    if [ -n "$quick" ]; then
      read -ra wanted <<<"${known/ $own / }"
    fi
    if [ -n "$long" ]; then read -ra wanted <<<"${wanted[*]}$optional"; fi
  fi

  prefix=$(build_engine "$variant")
  ensure_engine_user
  prepare_run
  trap 'stop_jobs; stop_instances' EXIT
  trap 'exit 130' INT TERM
  local pgxs=$prefix/lib/postgresql/pgxs
  at_once=$(($(nproc) + 1))
  for suite in "${wanted[@]}"; do
    case $suite in
      *-shared*) ;;
      regress | regress-*) core+=("$suite") ;;
    esac
  done
  for suite in "${wanted[@]}"; do
    only=''
    case $suite in */*) only=${suite#*/} suite=${suite%%/*} ;; esac
    case $suite in
      patches) beside command_suite patches patch_check "$work_tree" ;;
      indent) beside command_suite indent indent_check "$prefix" ;;
      verify) beside verify_suite ;;
      *-shared | *-shared-*) beside shared_suite "$suite" ;;
      # both are one job: each is twenty sessions at once by itself
      regress | regress-*)
        [ "$suite" = "${core[0]}" ] && beside core_regress "${core[@]}"
        ;;
      isolation)
        beside regress_suite isolation "$pgxs/src/test/isolation/pg_isolation_regress" "$pgxs/src/test/isolation" \
          --schedule="$pgxs/src/test/isolation/isolation_schedule"
        ;;
      testkit) tap_suite "testkit${only:+-$only}" "$run_dir/testkit" ;;
      *) module_suites "$suite" ;;
    esac
  done
  wait
  record_tap_suites
  if [ "$variant" = sanitize ]; then sanitizer_suite; fi
  conclude
}
