# shellcheck shell=bash disable=SC2154,SC2034
# Finds the pinned release's tarball. The checksum decides what is taken, wherever it comes from.

tried=()

# matches_pin <file> <sha256>
matches_pin() { [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$2" ]; }

# fetch_from_release_server <url> <target>
fetch_from_release_server() {
  # The whole attempt is bounded, name resolution included: a host without a way out must not hang.
  timeout 120 curl --fail --silent --show-error --location --connect-timeout 4 --speed-time 10 --speed-limit 10000 \
    --output "$2" "$1" 2>"$2.log" && return 0
  tried+=("the PostgreSQL release server: $(tr '\n' ' ' <"$2.log")")
  return 1
}

# source_suites <ID> <codename>: the suites whose source packages are likely to hold a current minor
# release. Debian's testing and Ubuntu's development series follow PostgreSQL within days.
source_suites() {
  case $1 in
    debian) echo "testing" ;;
    ubuntu) echo "devel devel-updates devel-security $2-updates" ;;
  esac
}

# configured_mirror <codename>: the first mirror from which this machine takes its main archive.
configured_mirror() {
  # shellcheck disable=SC2016
  apt-get indextargets 'Created-By: Packages' --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 2>/dev/null |
    awk -v codename="$1" '$3 == "main" && ($2 == codename || $2 == "stable") { print $1; exit }'
}

# fetch_from_distribution <source package> <file> <release> <target>
# Uses an apt configuration of its own: the system's lists, sources and cache are neither read nor changed.
fetch_from_distribution() {
  local package=$1 target=$4 apt_dir id codename mirror suite keyring signed_by='' found=''
  local what="the distribution's source package $package"
  if ! command -v apt-get >/dev/null; then
    tried+=("$what: this system has no apt-get")
    return 1
  fi
  id=$(sed -n 's/^ID=//p' /etc/os-release | tr -d '"')
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release | tr -d '"')
  mirror=$(configured_mirror "$codename")
  if [ -z "$mirror" ]; then
    tried+=("$what: apt has no main archive configured for \"$codename\"")
    return 1
  fi
  keyring=/usr/share/keyrings/$id-archive-keyring.gpg
  if [ -r "$keyring" ]; then signed_by="[signed-by=$keyring] "; fi

  apt_dir=$(mktemp -d)
  mkdir -p "$apt_dir"/{lists/partial,archives/partial,download}
  for suite in $(source_suites "$id" "$codename"); do
    echo "deb-src $signed_by$mirror $suite main" >"$apt_dir/sources.list"
    local options=(
      -o "Dir::State::lists=$apt_dir/lists" -o Dir::State::status=/dev/null
      -o "Dir::Cache=$apt_dir" -o "Dir::Cache::archives=$apt_dir/archives"
      -o "Dir::Etc::sourcelist=$apt_dir/sources.list" -o Dir::Etc::sourceparts=-
      -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=- -o "Dir::Log=$apt_dir"
      -o APT::Update::Post-Invoke::= -o APT::Update::Error-Mode=any -o APT::Sandbox::User=
      -o Acquire::Languages=none -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20
    )
    if ! timeout 180 apt-get "${options[@]}" -q update >"$apt_dir/log" 2>&1 || grep -q '^[EW]: Failed' "$apt_dir/log"; then
      tried+=("$what in $suite: $(grep -m1 '^[EW]:' "$apt_dir/log" || echo 'timed out')")
      continue
    fi
    # Only the upstream tarball is wanted, so its address is taken from the index and the rest left.
    found=$(apt-get "${options[@]}" -qq --print-uris --only-source source "$package" 2>"$apt_dir/log" |
      sed -n "s/^'\([^']*\.orig\.tar\.bz2\)'.*/\1/p" | head -n 1) || true
    case $found in
      '') tried+=("$what in $suite: not there") ;;
      *"_$3.orig.tar.bz2")
        if timeout 600 /usr/lib/apt/apt-helper "${options[@]}" download-file "$found" "$target" >"$apt_dir/log" 2>&1; then
          rm -rf "$apt_dir"
          return 0
        fi
        tried+=("$what in $suite: $(grep -m1 '^[EW]:' "$apt_dir/log" || echo 'timed out')")
        ;;
      *) tried+=("$what in $suite: it holds ${found##*/}, not $3") ;;
    esac
  done
  rm -rf "$apt_dir"
  return 1
}

# fetch_release [release sha256 file url]: prints the path of the verified tarball; without
# arguments the pinned one.
fetch_release() {
  local release=${1:-$(upstream release)} sha256=${2:-$(upstream sha256)}
  local file=${3:-$(upstream file)} url=${4:-$(upstream url)}
  local tarball=$cache_dir/source/$file partial
  if matches_pin "$tarball" "$sha256"; then
    echo "$tarball"
    return 0
  fi
  if [ -e "$tarball" ]; then
    tried+=("the cache: \"$tarball\" has another checksum")
    rm -f "$tarball"
  else
    tried+=("the cache: no \"$tarball\"")
  fi
  local from
  for from in release_server distribution; do
    partial=$(mktemp "$cache_dir/source/partial.XXXXXX")
    case $from in
      release_server)
        step "fetch $file from the PostgreSQL release server"
        fetch_from_release_server "$url" "$partial" || { rm -f "$partial" "$partial.log"; continue; }
        ;;
      distribution)
        step "fetch $file from the distribution's source package"
        fetch_from_distribution "$(upstream distributionSource)" "$file" "$release" "$partial" || { rm -f "$partial"; continue; }
        ;;
    esac
    rm -f "$partial.log"
    if matches_pin "$partial" "$sha256"; then
      chmod 644 "$partial"
      mv "$partial" "$tarball"
      echo "$tarball"
      return 0
    fi
    tried+=("$from: the file has another checksum")
    rm -f "$partial"
  done
  fail "could not find the source of PostgreSQL $release" "$(printf 'Tried %s. ' "${tried[@]}")" \
    "Put $file (sha256 $sha256) into $cache_dir/source and run this again."
}
