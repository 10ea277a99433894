#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Repositories of borg and of restic in the mount: every byte is checked, snapshots are pruned, what
# is restored is what was saved, and a repository outlives its program's death.
. "$(dirname "$0")/app_harness.sh"
command -v borg >/dev/null || command -v restic >/dev/null || skip "there is neither borg nor restic"
start_volume
tree=$work/tree
python3 "$source_root/tests/support/make_tree.py" "$tree" "$(counts 600 6000)" 31
head -c "$(counts 20 400)M" /dev/urandom >"$tree/large"
change() {
  echo more >>"$tree/large"
  find "$tree" -name "f*$1.c" -type f | sed -n 1,40p | while read -r file; do chmod u+w "$file" && echo "round $1" >>"$file"; done
}
# interrupted COMMAND…: it is killed in the middle, when it has written something.
interrupted() {
  local repository=$1 before program
  shift
  before=$(find "$repository" -type f | wc -l)
  "$@" >"$work/interrupted.log" 2>&1 &
  program=$!
  until_true eval "[ \"\$(find '$repository' -type f | wc -l)\" != $before ] || ! kill -0 $program"
  kill -9 $program 2>/dev/null || :
  wait $program 2>/dev/null || :
}

if command -v borg >/dev/null; then
  tell borgbackup
  export BORG_BASE_DIR=$work/borg BORG_PASSPHRASE=secret BORG_REPO=$app/borg BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
  mkdir "$BORG_BASE_DIR"
  borg init -e repokey
  for round in 1 2 3; do
    (cd "$work" && borg create "::round$round" tree) 2>&1 | grep -v '^$' || :
    [ $round = 3 ] || change $round
  done
  borg check --verify-data || fail "borg check"
  (cd "$work" && interrupted "$BORG_REPO" borg create --checkpoint-interval 1 ::killed tree)
  borg break-lock
  borg prune --keep-last 2 && borg compact || fail "borg prune"
  remount
  borg check --verify-data || fail "borg check after a new mount"
  mkdir "$work/out" && (cd "$work/out" && borg extract ::round3)
  same_tree "$tree" "$work/out/tree"
  rm -rf "$work/out"
else
  skip_part borg "there is none"
fi

if command -v restic >/dev/null; then
  tell restic
  export RESTIC_PASSWORD=secret RESTIC_CACHE_DIR=$app/restic-cache RESTIC_REPOSITORY=$app/restic
  restic init -q
  for round in 4 5 6; do
    (cd "$work" && restic backup -q tree)
    [ $round = 6 ] || change $round
  done
  restic check -q --read-data || fail "restic check"
  head -c 60M /dev/urandom >"$work/more"
  (cd "$work" && interrupted "$RESTIC_REPOSITORY" restic backup -q tree more)
  restic unlock -q
  restic forget -q --keep-last 2 --path "$tree" --prune || fail "restic forget"
  remount
  restic check -q --read-data || fail "restic check after a new mount"
  restic restore -q latest --path "$tree" --target "$work/out" || fail "restic restore"
  restored=$(find "$work/out" -type d -name tree -path '*tree' | head -n 1)
  same_tree "$tree" "$restored"
else
  skip_part restic "there is none"
fi
finish
