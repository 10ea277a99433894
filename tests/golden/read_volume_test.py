#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""read_volume.py can fail, and reads a volume of more than 1,000 files that was made just now.

    read_volume_test.py [--files N] [--seed S]

First on a golden volume: with any text of its table of derivations changed it opens none, with another
passphrase neither, and of a volume in which one byte of any file was changed it never gives other bytes.
Then on a mount of this build: each file compared byte for byte, while the daemon was killed and
again after the volume was closed.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile

from golden_test import GOLDEN, PASSPHRASE, unpack
from needs import need_reader

sys.path.insert(0, os.path.join(GOLDEN, "../support"))
# pylint: disable=wrong-import-position
need_reader("read_volume_test")
from reader.binary import Damage
from reader.derivations import DERIVATIONS
from reader.volume import Volume as ReadVolume
from volume import PATIENCE, Failure, Volume, skip_part

CLOSED = os.path.join(GOLDEN, "gcm256_lz77_closed.tar.xz")
IN_ROTATION = os.path.join(GOLDEN, "cbc192_zstd_in_rotation.tar.xz")  # has a previous volume key


def run_reader(folder, passphrase, volume):
    return subprocess.run([sys.executable, os.path.join(folder, "read_volume.py"), "list",
                           "--passphrase-file", passphrase, volume], capture_output=True, text=True,
                          timeout=300 * PATIENCE, check=False)


def copy_reader(folder):
    shutil.copy(os.path.join(GOLDEN, "read_volume.py"), folder)
    shutil.copytree(os.path.join(GOLDEN, "reader"), os.path.join(folder, "reader"),
                    ignore=shutil.ignore_patterns("__pycache__"))


def check_changed_texts(closed, in_rotation, work):
    """A copy of the reader, in which one text differs in its last letter."""
    copy_reader(work)
    table = os.path.join(work, "reader", "derivations.py")
    with open(table, encoding="utf-8") as file:
        text = file.read()
    for name, info in DERIVATIONS.items():
        volume = in_rotation if name == "previous volume key" else closed
        right = f"b\"{info.decode()}\""
        wrong = f"b\"{info.decode()[:-1]}?\""
        if text.count(right) != 1:
            raise Failure(f"{name}: the table of derivations does not have it once")
        with open(table, "w", encoding="utf-8") as file:
            file.write(text.replace(right, wrong))
        done = run_reader(work, PASSPHRASE, volume)
        if done.returncode != 1 or not done.stderr.startswith("read_volume.py: "):
            raise Failure(f"with another text for {name} the reader ends with {done.returncode}: "
                          f"{done.stdout[:200]}{done.stderr[-500:]}")
        print(f"ok      another text for {name}: {done.stderr.strip()}")
    with open(table, "w", encoding="utf-8") as file:
        file.write(text)
    for volume in (closed, in_rotation):
        if run_reader(work, PASSPHRASE, volume).returncode != 0:
            raise Failure("the copy of the reader does not read the volume")


def check_other_passphrase(volume, work):
    other = os.path.join(work, "other")
    with open(other, "w", encoding="utf-8") as file:
        file.write("another passphrase\n")
    done = run_reader(GOLDEN, other, volume)
    if done.returncode != 1 or "the passphrase does not open this volume" not in done.stderr:
        raise Failure(f"another passphrase: {done.stdout[:200]}{done.stderr[-500:]}")


def content_of(path):
    volume = ReadVolume(path, open_passphrase())
    return [volume.describe(name, inode) for name, inode in volume.walk()]


def open_passphrase():
    with open(PASSPHRASE, "rb") as file:
        return file.read().rstrip(b"\n")


def check_changed_bytes(volume, chance):
    """One byte of each file: damage is said, or nothing that counts has changed."""
    right, said, silent = content_of(volume), 0, []
    for folder, _, names in os.walk(volume):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "r+b") as file:
                content = file.read()
                if not content:
                    continue
                for at in (chance.randrange(len(content)), len(content) - 1):
                    file.seek(at)
                    file.write(bytes([content[at] ^ 1 << chance.randrange(8)]))
                    file.flush()
                    try:
                        if content_of(volume) != right:
                            raise Failure(f"{path}, byte {at}: other content is given out")
                        silent.append(f"{os.path.relpath(path, volume)}:{at}")
                    except Damage:
                        said += 1
                    file.seek(at)
                    file.write(content[at:at + 1])
                    file.flush()
    if said < 20:
        raise Failure(f"only {said} changed bytes were noticed")
    print(f"ok      changed bytes: {said} said, {len(silent)} in what does not count: {' '.join(silent)}")


def make_files(folder, count, chance):
    """Their content by path: some compress, some do not, some have holes, sizes around a chunk's."""
    made = {}
    for number in range(count):
        place = os.path.join(folder, f"d{number % 17}", f"e{number % 5}")
        os.makedirs(place, exist_ok=True)
        path = os.path.join(place, f"file {number}")
        size = chance.choice([0, 1, 100, 1000, 4096, 10_000, 65_535, 65_536, 65_537, 150_000]) \
            if number % 20 == 0 else chance.randrange(3000)
        content = chance.randbytes(size) if number % 3 == 0 else (b"%d, " % number * size)[:size]
        hole = chance.randrange(200_000) if number % 50 == 0 else 0
        with open(path, "wb") as file:
            file.seek(hole)
            file.write(content)
        made[os.path.relpath(path, folder)] = (bytes(hole) if content else b"") + content
    return made


def change_files(folder, made, chance):
    for path in chance.sample(sorted(made), len(made) // 5):
        content = bytearray(made[path])
        if not content:
            continue
        at = chance.randrange(len(content))
        patch = chance.randbytes(min(50, len(content) - at))
        with open(os.path.join(folder, path), "r+b") as file:
            file.seek(at)
            file.write(patch)
        content[at:at + len(patch)] = patch
        made[path] = bytes(content)
    for path in chance.sample(sorted(made), len(made) // 20):
        os.remove(os.path.join(folder, path))
        del made[path]


def compare_files(volume, made, when):
    with open(volume.passphrase, "rb") as file:
        read = ReadVolume(volume.path, file.read().rstrip(b"\n"))
    files = {os.fsdecode(path): inode for path, inode in read.walk() if not path.endswith(b"/")}
    if sorted(files) != sorted(made):
        raise Failure(f"{when}: read_volume.py finds {len(files)} files, not {len(made)}")
    for path, content in made.items():
        if read.read(files[path]) != content:
            raise Failure(f"{when}: {path} has other bytes")
    print(f"ok      {len(made)} files, {sum(map(len, made.values()))} bytes, {when}")


def check_many_files(count, chance):
    with Volume("read-volume") as volume:
        volume.make()
        volume.mount()
        made = make_files(volume.mnt, count, chance)
        volume.run("nacre", "sync", volume.mnt)
        change_files(volume.mnt, made, chance)
        volume.run("nacre", "sync", volume.mnt)
        volume.kill()
        volume.detach()
        compare_files(volume, made, "the daemon was killed")
        volume.mount()
        change_files(volume.mnt, made, chance)
        volume.unmount()
        compare_files(volume, made, "the volume was closed")
        volume.fsck("--deep")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    try:
        with tempfile.TemporaryDirectory(prefix="nacre-golden.") as work:
            closed, in_rotation = os.path.join(work, "closed"), os.path.join(work, "in_rotation")
            for archive, volume in ((CLOSED, closed), (IN_ROTATION, in_rotation)):
                os.mkdir(volume)
                unpack(archive, volume)
            check_changed_texts(closed, in_rotation, work)
            check_other_passphrase(closed, work)
            check_changed_bytes(closed, chance)
        if os.path.exists("/dev/fuse"):
            check_many_files(options.files, chance)
        else:
            skip_part("read_volume_test, a volume made just now", "there is no /dev/fuse")
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
