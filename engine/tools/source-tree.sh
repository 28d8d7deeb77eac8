# shellcheck shell=bash disable=SC2154,SC2034
# Unpacks the pinned release and applies the series to it.

# unpack <tarball> <directory>: the release's files directly in the directory.
unpack() {
  mkdir -p "$2"
  tar -xf "$1" -C "$2" --strip-components=1 --no-same-owner || fail "could not unpack \"$1\""
}

# apply_series <directory>: every patch must apply without fuzz.
apply_series() {
  local name
  for name in $(series); do
    [ -f "$patches_dir/$name" ] || fail "patch \"$name\" of the series does not exist"
    # Inside a checkout git would look for the patch's files in the outer repository.
    (cd "$1" && GIT_DIR=/dev/null git apply --whitespace=nowarn "$patches_dir/$name") ||
      fail "patch \"$name\" does not apply to PostgreSQL $(upstream release)" "" \
        "Run './floe engine patch import', resolve, then './floe engine patch export'."
  done
}

# write_preload_list <directory>: compiles in which modules every instance loads.
write_preload_list() {
  local table=$1/src/backend/utils/misc/guc_tables.c list
  list=$(preload_list)
  sed -i "s|^#define BUILTIN_PRELOAD_LIBRARIES .*|#define BUILTIN_PRELOAD_LIBRARIES \"$list\"|" "$table"
}

# prepare_source <variant> <directory>
prepare_source() {
  local tarball
  tarball=$(fetch_release)
  rm -rf "$2"
  step "unpack $(basename "$tarball")"
  unpack "$tarball" "$2"
  if [ "$1" != stock ]; then
    step "apply $(series | wc -l) patches"
    apply_series "$2"
    write_preload_list "$2"
  fi
}
