# shellcheck shell=bash disable=SC2154,SC2034
# Patches are edited as commits: import makes a git tree of them, export writes them back.

patch_usage() {
  cat <<'HELP'
usage: ./floe engine patch import [--tree DIR]
       ./floe engine patch export [--tree DIR]
       ./floe engine patch check

import  makes a git work tree (default engine/src): one commit for the upstream release, tagged
        "upstream", and one for each patch of the series. Refuses to replace work not yet exported.
export  writes every commit above the tag as a patch file and the series. A new commit's file is named
        after its trailer "Patch: <name>" or its subject. Patches that others changed in the meantime
        are kept; one that both sides changed is an error and nothing is written.
check   proves that the series applies to the pinned release without fuzz, that every patch carries
        its fields, that they are true, that the ledger knows it, and that import and export return
        the same bytes.
HELP
}

# tree_git <tree> <arguments…>: git without the user's configuration, so that bytes do not depend on it.
tree_git() {
  local tree=$1
  shift
  GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
    GIT_AUTHOR_NAME=floe GIT_AUTHOR_EMAIL=floe@localhost GIT_COMMITTER_NAME=floe GIT_COMMITTER_EMAIL=floe@localhost \
    git -C "$tree" -c core.autocrlf=false -c core.quotepath=off -c gc.auto=0 -c core.hooksPath=/dev/null "$@"
}

patch_file() { GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 perl "$tools_dir/patch-file.pl" "$@"; }

# start_tree <tree> <release>: commits what lies there as the upstream release.
start_tree() {
  tree_git "$1" init -q -b main
  tree_git "$1" add -f -A
  tree_git "$1" commit -q -m "PostgreSQL $2"
  tree_git "$1" tag upstream
}

# commit_patches <tree> <name…>: one commit a patch.
commit_patches() {
  local tree=$1 name
  shift
  for name in "$@"; do
    tree_git "$tree" apply --index --whitespace=nowarn "$patches_dir/$name" ||
      fail "patch \"$name\" does not apply to PostgreSQL $(upstream release)"
    {
      patch_file message "$patches_dir/$name"
      printf 'Patch: %s\n' "${name%.patch}"
    } | tree_git "$tree" commit -q --cleanup=verbatim -F -
  done
  mkdir -p "$tree/.git/imported"
  cp "$patches_dir/series" "$tree/.git/imported/series"
  for name in "$@"; do cp "$patches_dir/$name" "$tree/.git/imported/$name"; done
}

# commit_name <tree> <commit>: the patch file's name.
commit_name() {
  local name
  name=$(tree_git "$1" log -1 --format=%B "$2" | sed -n 's/^Patch: *//p' | tail -n 1)
  [ -n "$name" ] || name=$(tree_git "$1" log -1 --format=%s "$2" | tr '[:upper:]' '[:lower:]' | sed -e 's/[^a-z0-9]\{1,\}/-/g' -e 's/^-//' -e 's/-$//' | cut -c1-60)
  echo "$name.patch"
}

# write_patches <tree> <directory>: every commit as a file, and their order in "series".
write_patches() {
  local tree=$1 to=$2 commit name
  : >"$to/series"
  for commit in $(tree_git "$tree" rev-list --reverse upstream..HEAD); do
    name=$(commit_name "$tree" "$commit")
    [ ! -e "$to/$name" ] || fail "two commits would be written to \"$name\"" "" "Give one of them the trailer \"Patch: <other name>\"."
    patch_file from-commit "$tree" "$commit" >"$to/$name"
    echo "$name" >>"$to/series"
  done
}

# unexported <tree>: prints why the tree must not be thrown away; nothing when it may be.
unexported() {
  local written
  if [ -n "$(tree_git "$1" status --porcelain)" ]; then
    echo "it has changes that are not committed"
    return 0
  fi
  written=$(mktemp -d)
  write_patches "$1" "$written"
  rm -rf "$written/compare"
  if ! diff -rq "$written" "$1/.git/imported" >/dev/null 2>&1; then
    # Exported commits are as good as imported ones.
    local name
    while read -r name; do
      if ! cmp -s "$written/$name" "$patches_dir/$name"; then
        echo "commit \"${name%.patch}\" is not exported"
        break
      fi
    done <"$written/series"
  fi
  rm -rf "$written"
}

patch_import() {
  local tree=$1 tarball reason names
  tarball=$(fetch_release)
  if [ -e "$tree/.git" ]; then
    reason=$(unexported "$tree")
    [ -z "$reason" ] || fail "will not replace \"$tree\": $reason" "" "Run './floe engine patch export', or remove the directory."
    rm -rf "$tree"
  elif [ -d "$tree" ] && [ -n "$(ls -A "$tree")" ]; then
    fail "will not replace \"$tree\": it is not an imported tree" "" "Remove it or choose another directory with --tree."
  fi
  step "unpack $(basename "$tarball")"
  unpack "$tarball" "$tree"
  mapfile -t names < <(series)
  step "commit ${#names[@]} patches"
  start_tree "$tree" "$(upstream release)"
  commit_patches "$tree" "${names[@]}"
  echo "$tree"
}

# patch_export <tree>: merges the tree's patches with what others did to the directory since the import.
patch_export() {
  local tree=$1 base=$1/.git/imported written name
  [ -d "$base" ] || fail "\"$tree\" is not an imported tree" "" "Run './floe engine patch import' first."
  [ -z "$(tree_git "$tree" status --porcelain)" ] || fail "\"$tree\" has changes that are not committed" "" "Commit them, or put them aside with git stash."
  written=$(mktemp -d)
  write_patches "$tree" "$written"
  while read -r name; do
    if [ -e "$patches_dir/$name" ] && ! cmp -s "$written/$name" "$patches_dir/$name" &&
      ! cmp -s "$base/$name" "$patches_dir/$name" && ! cmp -s "$base/$name" "$written/$name"; then
      fail "patch \"$name\" was changed both in \"$tree\" and in engine/patches since the import" "" \
        "Import into another tree and bring the commit over."
    fi
  done <"$written/series"
  while read -r name; do
    if [ ! -e "$base/$name" ] || ! cmp -s "$base/$name" "$written/$name"; then cp "$written/$name" "$patches_dir/$name"; fi
  done <"$written/series"
  {
    grep '^#' "$patches_dir/series" || true
    cat "$written/series"
    # What others added since the import stays, after ours.
    for name in $(series); do
      if ! grep -qxF "$name" "$written/series" && [ ! -e "$base/$name" ]; then echo "$name"; fi
    done
  } >"$written/merged"
  for name in $(grep -v -e '^#' -e '^$' "$base/series" || true); do
    if ! grep -qxF "$name" "$written/series"; then rm -f "${patches_dir:?}/$name"; fi
  done
  cp "$written/merged" "$patches_dir/series"
  rm -rf "$base"
  mkdir -p "$base"
  cp "$patches_dir/series" "$base/series"
  while read -r name; do cp "$written/$name" "$base/$name"; done <"$written/series"
  rm -rf "$written"
  series
}

# patch_check: prints one line a finding; fails when there is one.
patch_check() {
  local tarball room name paths=() bad=0
  tarball=$(fetch_release)
  room=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$room'" EXIT
  for name in "$patches_dir"/*.patch; do
    [ -e "$name" ] || continue
    grep -qxF "$(basename "$name")" "$patches_dir/series" ||
      { echo "$(basename "$name"): not in the series"; bad=1; }
  done
  for name in $(series); do
    [ -f "$patches_dir/$name" ] || { echo "$name: in the series, but there is no such file"; bad=1; continue; }
    patch_file check "$patches_dir/$name" "$(dirname "$engine_dir")" | sed "s/^/$name: /" || bad=1
    grep -q "^#\{2,\} \`\{0,1\}${name%.patch}\`\{0,1\}\$" "$patches_dir/README.md" ||
      { echo "$name: the ledger has no heading \"${name%.patch}\""; bad=1; }
    mapfile -t -O "${#paths[@]}" paths < <(patch_file paths "$patches_dir/$name")
  done
  if [ "$bad" -eq 0 ] && [ ${#paths[@]} -gt 0 ]; then
    # Only the touched files are unpacked: the rest of the release cannot change the answer.
    mkdir -p "$room/tree" "$room/written"
    local top
    top=$(tar -tf "$tarball" 2>/dev/null | head -n 1 | cut -d/ -f1) || true
    printf '%s\n' "${paths[@]}" | LC_ALL=C sort -u | sed "s|^|$top/|" >"$room/paths"
    # Files that a patch creates are not in the tarball: tar says so and goes on.
    tar -xf "$tarball" -C "$room/tree" --strip-components=1 --no-same-owner -T "$room/paths" 2>/dev/null || true
    start_tree "$room/tree" "$(upstream release)"
    # shellcheck disable=SC2046
    commit_patches "$room/tree" $(series)
    write_patches "$room/tree" "$room/written"
    for name in $(series); do
      cmp -s "$room/written/$name" "$patches_dir/$name" ||
        { echo "$name: import and export do not return the same bytes"; bad=1; }
    done
  fi
  rm -rf "$room"
  trap - EXIT
  [ "$bad" -eq 0 ] || fail "the patches are not in order" "" "Edit the commit in the imported tree and run './floe engine patch export'."
  printf '%s patches apply to PostgreSQL %s\n' "$(series | wc -l)" "$(upstream release)"
}

patch_verb() {
  local verb=${1:-} tree=$work_tree
  [ $# -gt 0 ] && shift
  while [ $# -gt 0 ]; do
    case $1 in
      --tree)
        tree=$(readlink -m "${2:?}")
        shift
        ;;
      --help | -h)
        patch_usage
        exit 0
        ;;
      *) usage_error "unknown option \"$1\"" "./floe engine patch --help" ;;
    esac
    shift
  done
  case $verb in
    import | export | check)
      open_cache
      "patch_$verb" "$tree"
      ;;
    --help | -h) patch_usage ;;
    *) usage_error "\"patch\" needs import, export or check" "./floe engine patch --help" ;;
  esac
}
