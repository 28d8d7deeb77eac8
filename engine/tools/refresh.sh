# shellcheck shell=bash disable=SC2154,SC2034
# Moves the pin to another release: the patches are carried over as commits, so conflicts are git's.

refresh_usage() {
  cat <<'HELP'
usage: ./floe engine refresh <release> <sha256> [--tree DIR]
       ./floe engine refresh --continue [--tree DIR]
       ./floe engine refresh --abort [--tree DIR]

Fetches the release, imports the patches on the pinned one and rebases them. Without conflicts it
exports them and moves the pin in engine/upstream.json. With conflicts it names the files and stops:
resolve them in the tree (git add, git rebase --continue), then run it with --continue, or --abort.
Until it has finished, neither the pin nor the patches change.
HELP
}

# finish_refresh <tree>: moves the pin and writes the patches.
finish_refresh() {
  local tree=$1 old release sha256
  old=$(upstream release)
  read -r release sha256 <"$tree/.git/refresh"
  sed -i -e "s/$old/$release/g" -e "s/\"sha256\": *\"[0-9a-f]*\"/\"sha256\": \"$sha256\"/" "$engine_dir/upstream.json"
  rm "$tree/.git/refresh"
  patch_export "$tree" >/dev/null
  echo "PostgreSQL $old -> $(upstream release), $(series | wc -l) patches carried over"
  echo "Next: './floe engine test', then commit engine/upstream.json and engine/patches alone."
}

# stop_at_conflict <tree>
stop_at_conflict() {
  fail "patches conflict with the new release" \
    "In $(tree_git "$1" diff --name-only --diff-filter=U | paste -sd' ' -)." \
    "Resolve in \"$1\" (git add, git rebase --continue), then run './floe engine refresh --continue', or '--abort'."
}

refresh_verb() {
  local words=() tree=$work_tree release sha256 old tarball
  while [ $# -gt 0 ]; do
    case $1 in
      --tree)
        tree=$(readlink -m "${2:?}")
        shift
        ;;
      --help | -h)
        refresh_usage
        exit 0
        ;;
      *) words+=("$1") ;;
    esac
    shift
  done
  open_cache
  case "${words[*]:-}" in
    --continue | --abort)
      [ -e "$tree/.git/refresh" ] || fail "no refresh is under way in \"$tree\""
      if [ "${words[0]}" = --abort ]; then
        rm -rf "$tree"
        return 0
      fi
      if [ -d "$tree/.git/rebase-merge" ] || [ -d "$tree/.git/rebase-apply" ]; then stop_at_conflict "$tree"; fi
      finish_refresh "$tree"
      return 0
      ;;
  esac
  [ ${#words[@]} -eq 2 ] || usage_error "\"refresh\" needs a release and its sha256" "./floe engine refresh --help"
  release=${words[0]} sha256=${words[1]} old=$(upstream release)
  [[ $release =~ ^[0-9]+\.[0-9]+$ ]] || usage_error "\"$release\" is not a release" "./floe engine refresh --help"
  [[ $sha256 =~ ^[0-9a-f]{64}$ ]] || usage_error "\"$sha256\" is not a sha256" "./floe engine refresh --help"

  tarball=$(fetch_release "$release" "$sha256" "$(upstream file | sed "s/$old/$release/g")" "$(upstream url | sed "s/$old/$release/g")")
  patch_import "$tree" >/dev/null
  step "put PostgreSQL $release under the patches"
  tree_git "$tree" checkout -q --detach upstream
  find "$tree" -mindepth 1 -maxdepth 1 -not -name .git -exec rm -rf {} +
  unpack "$tarball" "$tree"
  tree_git "$tree" add -f -A
  tree_git "$tree" commit -q --allow-empty -m "PostgreSQL $release"
  tree_git "$tree" tag -f upstream >/dev/null
  echo "$release $sha256" >"$tree/.git/refresh"
  step "rebase $(series | wc -l) patches"
  if ! tree_git "$tree" rebase -q --onto upstream upstream~1 main >"$tree/.git/rebase.log" 2>&1; then stop_at_conflict "$tree"; fi
  finish_refresh "$tree"
}
