#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A git repository lives in the volume: clone, fsck, branches, commits, gc, and all of it again
# after a new mount.
. "$(dirname "$0")/../support/mount_harness.sh"

command -v git >/dev/null || skip "there is no git"
export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_NOSYSTEM=1
git config --global user.name Test
git config --global user.email test@example.org
git config --global init.defaultBranch main
git config --global safe.directory '*'
git config --global gc.auto 0

origin=$work/origin
python3 "$source_root/tests/support/make_tree.py" "$origin" 700 7
git -C "$origin" init -q
git -C "$origin" add -A
git -C "$origin" commit -q -m first
for round in $(seq 12); do
  find "$origin" -name "f*$round.c" -type f -exec sh -c 'chmod u+w "$1"; echo more >>"$1"' _ {} \;
  git -C "$origin" commit -q -a -m "round $round"
done

make_volume
mount_volume
git clone -q --no-local "$origin" "$mnt/clone"
git -C "$mnt/clone" fsck --strict --no-progress --no-dangling || fail "git fsck after the clone"
same_content() {
  [ "$(git -C "$mnt/clone" rev-parse "$1")" = "$(git -C "$origin" rev-parse "$2")" ] ||
    fail "$1 is not $2 of the origin"
}
same_content HEAD main
[ -z "$(git -C "$mnt/clone" status --porcelain)" ] || fail "a fresh clone has changes"

git -C "$mnt/clone" checkout -q -b side HEAD~10
echo change >"$mnt/clone/new file"
git -C "$mnt/clone" add -A
git -C "$mnt/clone" commit -q -m side
git -C "$mnt/clone" rebase -q main
git -C "$mnt/clone" repack -q -a -d -f --depth=50
git -C "$mnt/clone" gc -q --prune=now
remount
git -C "$mnt/clone" fsck --strict --no-progress --no-dangling || fail "git fsck after a new mount"
[ -z "$(git -C "$mnt/clone" status --porcelain)" ] || fail "changes after a new mount"
same_content side~1 main
git -C "$mnt/clone" push -q origin side
git -C "$origin" fsck --no-progress --no-dangling ||
  fail "git fsck of what was pushed from the volume"
git clone -q "$mnt/clone" "$mnt/local" # hard links
git -C "$mnt/local" fsck --no-progress --no-dangling ||
  fail "git fsck of a clone inside the volume"
finish
