# shellcheck shell=bash disable=SC2154,SC2034
# The verb "package": Debian packages of what a host needs, from what is built. The same sources give the same bytes.

package_usage() {
  cat <<'HELP'
usage: ./floe engine package [--output DIRECTORY]

Packs for this distribution and architecture what a host needs, so that it needs no checkout and no
compiler, and prints the files' names. The engine is built first where it is not.
  floe-engine-RELEASE-KEY  one build of the engine; any number of them side by side
  floe-engine              asks for the newest build, which new instances get
  floe-agent               the agent, its verbs and its Node, and units of systemd
--output is packages/ in the cache unless it is given. Files of the same name are replaced.
SOURCE_DATE_EPOCH, else the last commit, dates the files in the packages and their versions.
HELP
}

package_dir=$tools_dir/package
checkout=$(dirname "$engine_dir")
# where the packages put it; the launcher, the units and the agent's command line say the same
packaged_dir=usr/lib/floe
units_dir=usr/lib/systemd/system

# source_epoch <path…>: when these sources changed last, in seconds.
source_epoch() {
  local epoch=${SOURCE_DATE_EPOCH:-}
  [ -n "$epoch" ] || epoch=$(git -C "$checkout" log -1 --format=%ct -- "$@" 2>/dev/null || true)
  [ -n "$epoch" ] || fail "the date of the sources is not known" \
    "\"$checkout\" is no clone of the repository, or git refuses to read it." \
    "Set SOURCE_DATE_EPOCH to the date of this release, in seconds since 1970."
  echo "$epoch"
}

version_date() { date --utc --date "@$1" +%Y%m%d%H%M%S; }

# tree_digest <tree>: of the files below it, so that two packages that differ never have the same version.
tree_digest() {
  (cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | sha256sum | cut -c 1-12
}

# distribution: of which one this machine is; its libraries are the ones that the packages ask for.
distribution() {
  # shellcheck disable=SC1091
  (. /etc/os-release && echo "$ID-${VERSION_ID:-rolling}")
}

programs_of() { find "$1" -type f \( -perm -u+x -o -name '*.so*' \) -print; }

# package_of <file>: the installed package that holds it; dpkg may know it by the other name of a merged directory.
package_of() {
  dpkg-query -S "$1" "/usr$1" "${1#/usr}" 2>/dev/null | sed -n '/^diversion /d; s/^\([^:, ]*\).*/\1/p' | sort -u || true
}

# libraries_of <tree>: the packages of this distribution whose libraries the programs below it load, as a Depends line.
libraries_of() {
  local tree=$1 program needed package glibc loaded
  local -A own=() found=()
  while read -r program; do own[$(basename "$program")]=yes; done < <(find "$tree" \( -type f -o -type l \) -name '*.so*')
  loaded=$(/sbin/ldconfig -p)
  while read -r needed; do
    [ -z "${own[$needed]:-}" ] || continue
    package=$(package_of "$(awk -v name="$needed" '$1 == name && !n++ { print $NF }' <<<"$loaded")")
    [ -n "$package" ] || fail "no package holds the library \"$needed\"" "A program below \"$tree\" needs it."
    found[$package]=yes
  done < <(programs_of "$tree" | xargs -d '\n' objdump -p 2>/dev/null | awk '$1 == "NEEDED" { print $2 }' | sort -u)
  # objdump fails for scripts; other libraries have the version of their interface in the name of their package
  glibc=$({ programs_of "$tree" | xargs -d '\n' objdump -T 2>/dev/null || true; } | grep -o 'GLIBC_[0-9][0-9.]*' | sort -uV | tail -n 1)
  unset 'found[libc6]'
  {
    echo "libc6 (>= ${glibc#GLIBC_})"
    if [ "${#found[@]}" -gt 0 ]; then printf '%s\n' "${!found[@]}" | LC_ALL=C sort; fi
  } | paste -sd, - | sed 's/,/, /g'
}

# write_control <tree> <name> <version> <field: value>… : its control file; the last argument describes it.
write_control() {
  local tree=$1 name=$2 version=$3 field size
  shift 3
  size=$(find "$tree" -path "$tree/DEBIAN" -prune -o -type f -printf '%s\n' | awk '{ s += int(($1 + 1023) / 1024) } END { print s + 0 }')
  {
    printf 'Package: %s\nVersion: %s\nArchitecture: %s\n' "$name" "$version" "$(dpkg --print-architecture)"
    printf 'Maintainer: The Floe developers <packages@floe.invalid>\nSection: database\nPriority: optional\n'
    printf 'Installed-Size: %s\n' "$size"
    # an agent installs what a console brings only where it was built for the host's own
    printf 'Floe-Distribution: %s\n' "$(distribution)"
    for field in "$@"; do printf '%s\n' "$field"; done
  } >"$tree/DEBIAN/control"
}

# build_deb <tree> <epoch> <directory>: prints the package's file. It takes its name only when it is whole.
build_deb() {
  local tree=$1 epoch=$2 directory=$3 file
  (cd "$tree" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | LC_ALL=C sort | xargs -d '\n' md5sum) >"$tree/DEBIAN/md5sums"
  chmod -R u=rwX,go=rX "$tree"
  find "$tree" -exec touch --no-dereference --date "@$epoch" {} +
  file=$(sed -n -e 's/^Package: //p' -e 's/^Version: //p' -e 's/^Architecture: //p' "$tree/DEBIAN/control" | paste -sd_ -).deb
  SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zzstd -z6 --build "$tree" "$directory/.$file" >&2 ||
    fail "\"$file\" could not be built"
  mv "$directory/.$file" "$directory/$file"
  echo "$directory/$file"
}

# notices <tree> <package> <file…>: what the licences of its parts ask for.
notices() {
  local doc=$1/usr/share/doc/$2 file
  shift 2
  mkdir -p "$doc"
  {
    printf 'Floe\n====\n'
    cat "$checkout/LICENSE"
    for file in "$@"; do
      printf '\n%s\n====\n' "${file%%=*}"
      cat "${file#*=}"
    done
  } >"$doc/copyright"
}

# package_engine <work> <output>: prints two packages' files.
package_engine() {
  local work=$1 output=$2 prefix key release epoch version name tree tarball libraries
  prefix=$(build_engine release)
  key=$(engine_key release)
  release=$(upstream release)
  epoch=$(source_epoch engine)
  version=$release+$(version_date "$epoch").$key
  name=floe-engine-$release-$key
  tree=$work/build
  step "pack $name"
  mkdir -p "$tree/DEBIAN" "$tree/$packaged_dir/engine"
  cp -a "$prefix" "$tree/$packaged_dir/engine/$release-$key"
  tarball=$(fetch_release)
  tar -xOf "$tarball" --occurrence=1 "postgresql-$release/COPYRIGHT" >"$work/postgresql"
  notices "$tree" "$name" "PostgreSQL=$work/postgresql"
  sed "s,@PREFIX@,/$packaged_dir/engine/$release-$key," "$package_dir/engine-prerm" >"$tree/DEBIAN/prerm"
  chmod 755 "$tree/DEBIAN/prerm"
  libraries=$(libraries_of "$tree")
  write_control "$tree" "$name" "$version" "Depends: $libraries" \
    "Description: Floe's engine, build $key" \
    " PostgreSQL $release with Floe's patches and modules. Builds are installed side by side:" \
    " an instance keeps the one that it runs on until it is moved."
  build_deb "$tree" "$epoch" "$output"

  tree=$work/newest
  mkdir -p "$tree/DEBIAN" "$tree/$packaged_dir/engine" "$tree/etc/apt/apt.conf.d"
  ln -s "$release-$key" "$tree/$packaged_dir/engine/current"
  # builds that instances run from were once installed for this package, and are not to go with its next version
  printf 'APT::NeverAutoRemove { "^floe-engine-"; };\n' >"$tree/etc/apt/apt.conf.d/01floe-engine"
  echo /etc/apt/apt.conf.d/01floe-engine >"$tree/DEBIAN/conffiles"
  notices "$tree" floe-engine
  write_control "$tree" floe-engine "$version" "Depends: $name" \
    "Description: Floe's newest engine" \
    " Asks for the build of PostgreSQL $release that new instances get."
  build_deb "$tree" "$epoch" "$output"
}

# bundled <file…>: the npm packages that these bundles hold, as their directories.
bundled() {
  grep -oh 'node_modules/\(@[^/" ]*/\)\?[^/" ]*/' "$@" | sort -u | while read -r package; do
    if [ -d "$checkout/$package" ]; then echo "$checkout/${package%/}"; fi
  done
}

# package_agent <work> <output>: prints its file.
package_agent() {
  local work=$1 output=$2 tree=$1/agent agent=$checkout/apps/agent floe epoch version directory licence script libraries
  [ -n "${FLOE_NODE:-}" ] || fail "the agent's Node is not known" "" "Run './floe engine package'."
  epoch=$(source_epoch .)
  step "build floe-agent"
  mkdir -p "$cache_dir/log"
  (cd "$agent" && run_logged "$cache_dir/log/agent-package.log" "$FLOE_NODE" build.mjs)
  step "pack floe-agent"
  floe=$tree/$packaged_dir
  mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/usr/sbin" "$tree/$units_dir" \
    "$floe"/{node/bin,apps/agent/dist,apps/cli/dist,infra/host-check,infra/host-prepare}
  cp "$FLOE_NODE" "$floe/node/bin/node"
  cp "$agent"/dist/{main.js,floe-tree,floe-host-check} "$floe/apps/agent/dist/"
  cp "$checkout"/apps/cli/dist/*.js "$floe/apps/cli/dist/"
  cp "$checkout/infra/host-check/floe-host-check" "$floe/infra/host-check/"
  cp "$checkout/infra/host-prepare/floe-host-prepare" "$floe/infra/host-prepare/"
  cp "$checkout/floe" "$floe/"
  echo '{ "type": "module" }' >"$floe/apps/package.json"
  ln -s "../lib/floe/floe" "$tree/usr/bin/floe"
  ln -s "../lib/floe/infra/host-check/floe-host-check" "$tree/usr/sbin/"
  ln -s "../lib/floe/infra/host-prepare/floe-host-prepare" "$tree/usr/sbin/"
  cp "$agent/src/host/floe-instance@.service" "$package_dir/floe.slice" "$tree/$units_dir/"
  FLOE_CHECKOUT=/$packaged_dir FLOE_CACHE=/var/cache/floe \
    "$FLOE_NODE" "$checkout/apps/cli/dist/main.js" agent unit >"$tree/$units_dir/floe-agent.service"
  for script in postinst prerm postrm; do install -m 755 "$package_dir/agent-$script" "$tree/DEBIAN/$script"; done
  version=$(sed -n "s/^const release = '\(.*\)'/\1/p" "$agent/src/version.ts")+$(version_date "$epoch").$(tree_digest "$tree")
  printf '{ "version": "%s" }\n' "$version" >"$floe/floe-package.json"

  local parts=("Node.js=$(dirname "$FLOE_NODE")/../LICENSE")
  while read -r directory; do
    licence=$(find "$directory" -maxdepth 1 -iname 'licen[cs]e*' -print | sort | head -n 1)
    [ -z "$licence" ] || parts+=("${directory#"$checkout"/node_modules/}=$licence")
  done < <(bundled "$agent/dist/main.js.map" "$checkout"/apps/cli/dist/*.js)
  notices "$tree" floe-agent "${parts[@]}"
  libraries=$(libraries_of "$tree")
  write_control "$tree" floe-agent "$version" \
    "Depends: $libraries, bash, floe-engine, passwd, util-linux" "Recommends: openssl, xfsprogs" \
    "Description: Floe's agent for a host" \
    " Makes this machine a host of a console: \"floe agent enrol\". It brings its Node; nothing is built" \
    " or fetched on the host. Instances keep running while the agent is upgraded or removed."
  build_deb "$tree" "$epoch" "$output"
}

package_verb() {
  local output=$cache_dir/packages work
  while [ $# -gt 0 ]; do
    case $1 in
      --output)
        output=${2:-}
        shift
        ;;
      --output=*) output=${1#*=} ;;
      --help | -h)
        package_usage
        exit 0
        ;;
      *) usage_error "unknown option \"$1\"" "./floe engine package --help" ;;
    esac
    [ $# -gt 0 ] && shift
  done
  [ -n "$output" ] || usage_error "--output names no directory" "./floe engine package --help"
  if ! command -v dpkg-deb >/dev/null || ! command -v objdump >/dev/null; then
    fail "packages cannot be built here" "They need dpkg-deb and objdump." "Build them on Debian or Ubuntu with binutils."
  fi
  open_cache
  mkdir -p "$output" || fail "could not create \"$output\""
  output=$(cd "$output" && pwd)
  work=$(mktemp -d "$cache_dir/work/package.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  package_engine "$work" "$output"
  package_agent "$work" "$output"
  step "done"
}
