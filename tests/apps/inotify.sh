#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who watches a tree with inotify is told the same things in the same order as in a plain directory.
. "$(dirname "$0")/app_harness.sh"
needs inotifywait python3

work_in_tree() {
  mkdir d
  echo new >d/a
  echo more >>d/a
  python3 - <<'END'
import mmap, os
fd = os.open("d/a", os.O_RDWR)
with mmap.mmap(fd, 0) as memory:
    memory[0:1] = b"N"
os.close(fd)
END
  cat d/a >/dev/null
  ln d/a d/b
  mv d/b d/c && mv d/c other
  echo x >d/x && mv -f d/x other
  chmod 600 other
  touch -d 2020-01-01 other
  setfattr -n user.x -v y other
  truncate -s 100 other
  ln -s other link
  cp other d/copy
  rm link other
  rm -r d
}
watched() {
  inotifywait -q -m -r --format '%w %e %f' . >"$work/events" 2>"$work/inotify.log" &
  local watcher=$! step
  trap "kill $watcher 2>/dev/null || :" EXIT
  # It says nothing when its watches are there: until it sees a file.
  for _ in $(seq 3000); do
    touch ready && [ -s "$work/events" ] && break
    sleep 0.1
  done
  touch begin
  work_in_tree
  touch end
  for _ in $(seq 3000); do
    grep -q 'CREATE end' "$work/events" && break
    sleep 0.1
  done
  rm ready begin end
  kill $watcher && wait $watcher 2>/dev/null || :
  # Not the directory that came and went: inotifywait adds its watch after the fact. Nor its own look
  # at what is there.
  sed -n '/CREATE begin/,/CREATE end/p' "$work/events" | grep '^\./ ' | grep -v ',ISDIR $' | uniq
}
# A watch on a directory that is there all the time has no race.
deep() {
  mkdir -p d
  inotifywait -q -m --format '%e %f' d >"$work/deep" 2>/dev/null &
  local watcher=$!
  trap "kill $watcher 2>/dev/null || :" EXIT
  for _ in $(seq 3000); do
    touch d/ready && [ -s "$work/deep" ] && break
    sleep 0.1
  done
  touch d/begin && echo x >d/f && mv d/f d/g && cat d/g >/dev/null && rm d/g && ls d >/dev/null && touch d/end
  for _ in $(seq 3000); do grep -q 'CREATE end' "$work/deep" && break; sleep 0.1; done
  kill $watcher && wait $watcher 2>/dev/null || :
  # Two events alike are one if nobody read the first before the second.
  sed -n '/CREATE begin/,/CREATE end/p' "$work/deep" | uniq
  rm -r d
}
start_volume
tell inotify-tools
both watched
both deep
again watched
finish
