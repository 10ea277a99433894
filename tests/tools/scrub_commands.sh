#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre scrub: what it refuses, what it finds of a volume that is not mounted, with a key and
# without, and how it begins, pauses, survives a kill and ends on one that is mounted.
if [ "$(id -u)" = 0 ]; then
  . "$(dirname "$0")/../support/user_view.sh"
  enter_user_view "$@"
fi
. "$(dirname "$0")/command_harness.sh"
needs_mounts

v=$work/volume m=$work/mnt
mkdir "$m"
make_volume "$v"
mount_it() { expect 0 '^$' mount.nacre "${secret[@]}" "$@" "$v" "$m"; }
unmount_it() { expect 0 '^$' nacre umount "$m"; }
# A byte of a file within the volume, changed in place.
flip() { python3 - "$1" "$2" <<'PYTHON'
import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2]))
    byte = f.read(1)[0]
    f.seek(int(sys.argv[2]))
    f.write(bytes([byte ^ 1]))
PYTHON
}
state() { nacre scrub --status --json "$m" | python3 -c 'import json, sys; print(json.load(sys.stdin)["'"$1"'"])'; }
wait_for_state() {
  local _
  for _ in $(seq 3000); do
    [ "$(state state)" != "$1" ] || return 0
    sleep 0.1
  done
  failed "the scrub is $(state state), not $1"
}
mib=1048576

# --- What it refuses.
expect 2 'VOLUME' nacre scrub
expect 8 'neither a volume nor where one is mounted' nacre scrub "$HOME"
expect 2 'not a size' nacre scrub --rate much "$v"
expect 2 'together' nacre scrub --pause --resume "$v"
expect 2 "$v is not mounted" nacre scrub --pause "$v"
expect 16 'wrong key' nacre scrub --passphrase-file "$work/wrong" "$v"
expect 0 'scrub +never' nacre stats "${secret[@]}" "$v"

# --- Not mounted.
mount_it
mkdir "$m/folder"
for i in 1 2 3 4; do head -c $((4 * mib)) /dev/urandom >"$m/folder/$i"; done
ln "$m/folder/2" "$m/second name"
unmount_it
expect 0 "records: 102[4-9] in [1-9][0-9]* segments.*$v: clean" nacre scrub "$v"
expect 0 'clean' nacre scrub --rate 100M --engine cpu "${secret[@]}" "$v"
expect 0 '"clean": true' nacre scrub --json "$v"
mount_it
expect 2 '[-][-]engine: .*is scrubbed with the engine' nacre scrub --engine cpu "$m"
expect 0 'no scrub has been made yet' nacre scrub --status "$m"
expect 8 'no scrub to pause' nacre scrub --pause "$m"
expect 8 'no scrub to resume' nacre scrub --resume "$m"

# --- Mounted: nothing found.
expect 0 "records: 102[4-9] in .*$m: finished .* no damage" nacre scrub --rate 0 "$m"
expect 0 'scrub +finished .* no damage' nacre stats "$m"
expect 0 '"state": "finished"' nacre scrub --status --json "$v"

# --- Paused over a mount, killed while it runs, and on to the end.
expect 0 'running: .* at 1.0 KiB a second' nacre scrub --background --rate 1K "$m"
expect 0 'paused' nacre scrub --pause "$m"
unmount_it
expect 0 'scrub +paused.*the last one finished .* found no damage' nacre stats "${secret[@]}" "$v"
mount_it
check "a paused scrub goes on by itself" [ "$(state state)" = paused ]
expect 0 'running' nacre scrub --background --rate 1K "$m"
kill -9 $(daemons)
check "the killed daemon stays" wait_for_daemons
umount -l "$m" 2>/dev/null || fusermount3 -uz "$m"
mount_it
check "a scrub that was running does not go on" [ "$(state state)" = running ]
expect 0 'finished .* no damage' nacre scrub --rate 0 "$m"
expect 0 'running' nacre scrub --background --rate 1K "$m"
expect 0 'stopped .*; the last one finished' nacre scrub --stop "$m"

# --- Damage: a record of a file with two names, mounted, then not.
segment=$(find "$v/segments" -name '*.seg' -size +8000k | sort | head -1)
flip "$segment" $((6 * mib))
expect 4 "rot: segments/.*(second name|folder/[1-4]).*1 damaged place.*unmounted: fsck.nacre --repair --dry-run $v" \
  nacre scrub --rate 0 "$m"
nacre scrub --status --json "$m" >"$work/status.json"
check "the paths are those of the file that reads badly" python3 - "$work/status.json" "$m" <<'PYTHON'
import json, os, sys
status, mount = json.load(open(sys.argv[1])), sys.argv[2]
named = {p for place in status["places"] for p in place["paths"]}
bad = set()
for folder, _, names in os.walk(mount):
    for name in names:
        path = os.path.join(folder, name)
        try:
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            while os.read(descriptor, 1 << 20):
                pass
        except OSError:
            bad.add(path[len(mount):])
        finally:
            os.close(descriptor)
print("named", named, "bad", bad)
sys.exit(named != bad or not bad)
PYTHON
expect 0 'scrub +finished .* 1 damaged place' nacre stats "$m"
unmount_it
expect 4 'rot: segments/.* offset.*fsck.nacre --deep' nacre scrub "$v"
expect 4 'rot: segments/.*(second name|folder/[1-4])' nacre scrub "${secret[@]}" "$v"
expect 0 'scrub +finished .* 1 damaged place' nacre stats "${secret[@]}" "$v"

# --- Read-only: it reads, and remembers nothing.
mount_it -o ro
expect 4 '1 damaged place' nacre scrub --rate 0 "$m"
unmount_it

verdict
