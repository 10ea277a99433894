#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A large git repository is made on the spot, in the mount and next to it: history, worktrees, merges,
# gc and repack give the same objects, and fsck finds nothing, after a new mount either.
. "$(dirname "$0")/app_harness.sh"
needs git python3
export GIT_CONFIG_GLOBAL=$work/gitconfig GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z'
git config --global user.name Test
git config --global user.email test@example.org
git config --global init.defaultBranch main
git config --global safe.directory '*'
git config --global gc.auto 0
git config --global advice.detachedHead false
commits=$(counts 120 20000) files=$(counts 500 20000)

python3 - "$commits" "$files" >"$work/history" <<'END'
import random, sys
commits, files = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(30)
out = sys.stdout.buffer
paths = [f"d{i % 37}/e{i % 11}/f{i}.txt" for i in range(files)]
for n in range(commits):
    out.write(b"commit refs/heads/main\ncommitter Test <t@example.org> %d +0000\ndata 5\nround\n"
              % (1_700_000_000 + n))
    for path in paths if n == 0 else chance.sample(paths, 7):
        text = b"%d %d\n" % (n, chance.randrange(1 << 30)) * chance.randrange(1, 60)
        out.write(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text))
END

state() {
  git -C repo fsck --full --strict --no-progress --no-dangling
  git -C repo rev-parse HEAD 'HEAD^{tree}' side
  git -C repo rev-list --objects --all | LC_ALL=C sort | sha256sum
  git -C repo status --porcelain
  git -C repo worktree list --porcelain | grep -c ^worktree
  git -C tree1 status --porcelain
}
make_history() {
  git init -q repo
  git -C repo fast-import --quiet <"$work/history"
  git -C repo checkout -q main
  git -C repo worktree add -q -b side ../tree1 'main~20'
  git -C repo worktree add -q --detach ../tree2 'main~40'
  echo side >tree1/d1/side && git -C tree1 add -A && git -C tree1 commit -q -m side
  git -C repo merge -q --no-edit side
  git -C repo worktree remove ../tree2
  state
}
collect() {
  git -C repo gc -q --prune=now
  git -C repo repack -q -a -d -f --window=5 --depth=20 --write-bitmap-index
  git -C repo commit-graph write --reachable
  git -C repo multi-pack-index write --no-progress 2>/dev/null
  state
  git clone -q repo copy # hard links
  git -C copy fsck --no-progress --no-dangling
  git -C copy grep -c side | LC_ALL=C sort
}
start_volume
tell git
both make_history
again state
both collect
again state
# The mount's repository serves one outside, and takes from it.
git -C "$plain/repo" fetch -q "$app/repo" side && git -C "$app/repo" fetch -q "$plain/repo" main
finish
