#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 20,000 entries in one directory (NACRE_LONG: 100,000): all listed once, found by name, over a new
# mount, and while others delete; and paths as deep and names as long as the kernel takes.
. "$(dirname "$0")/../support/mount_harness.sh"

make_volume
mount_volume
cat >"$work/many.py" <<'CODE'
import os, sys
folder, command = sys.argv[1:3]
COUNT = 100_000 if os.environ.get("NACRE_LONG") else 20_000
names = {f"entry number {i}" for i in range(COUNT)}
if command == "make":
    os.mkdir(folder)
    for name in names:
        os.close(os.open(f"{folder}/{name}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
listed = os.listdir(folder)
assert len(listed) == COUNT, f"{len(listed)} are listed, {len(set(listed))} of them different"
assert set(listed) == names
for i in range(0, COUNT, 997):
    os.stat(f"{folder}/entry number {i}")
    assert not os.path.exists(f"{folder}/entry number {i}x")
if command == "delete":
    # A reader that goes on while entries vanish sees each survivor exactly once.
    seen = []
    with os.scandir(folder) as entries:
        for position, entry in enumerate(entries):
            seen.append(entry.name)
            if position == 500:
                gone = {f"entry number {i}" for i in range(0, COUNT, 2)}
                for name in gone:
                    os.unlink(f"{folder}/{name}")
    assert len(seen) == len(set(seen)), "an entry was listed twice"
    assert set(seen) >= names - gone, "an entry that stayed was not listed"
    assert set(os.listdir(folder)) == names - gone
CODE
python3 "$work/many.py" "$mnt/many" make || fail "at once"
remount
python3 "$work/many.py" "$mnt/many" delete || fail "after a new mount"
rm -rf "$mnt/many"
[ ! -e "$mnt/many" ] || fail "rm -rf left the directory"

cat >"$work/deep.py" <<'CODE'
import errno, os, sys
top = sys.argv[1]
LEVELS, NAME = 300, "n" * 255
if sys.argv[2] == "make":
    os.chdir(top)
    for level in range(LEVELS):
        os.mkdir(NAME)
        os.chdir(NAME)
    with open("bottom", "w") as f:
        f.write("reached")
    for bad, code in (("x" * 256, errno.ENAMETOOLONG), ("", errno.ENOENT)):
        try:
            os.mkdir(bad)
            raise AssertionError(f"mkdir of a name of {len(bad)} bytes went well")
        except OSError as error:
            assert error.errno == code, error
os.chdir(top)
for level in range(LEVELS):
    os.chdir(NAME)
assert open("bottom").read() == "reached"
assert len(os.getcwd().encode()) > 4096 if level == 0 else True
# A path of just under PATH_MAX in one call.
os.chdir(top)
path = "/".join([NAME] * 15)
assert os.stat(path).st_mode & 0o40000
CODE
mkdir "$mnt/deep"
python3 "$work/deep.py" "$mnt/deep" make || fail "deep paths"
remount
python3 "$work/deep.py" "$mnt/deep" read || fail "deep paths after a new mount"
rm -rf "$mnt/deep"
finish
