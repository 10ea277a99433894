#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One random byte of any file of a volume is changed, again and again, each time in a fresh copy.

    flip_bytes.py [--flips N] [--seed S] [--only FILE:OFFSET:XOR:VARIANT]

Half of the copies were unmounted, half lost their daemon to kill -9. Each time: fsck.nacre --deep
names the damage and ends with 4; the volume is refused with a clear error or mounts, and then each
read gives the right bytes or EIO. Never wrong bytes, a crash or a hang. The seed is printed.

A byte may be without meaning: zeros that were written ahead of a log's end, and the lock. There
fsck.nacre may find nothing; the reads are judged alike.
A file under db/ may be one that nothing depends on (an older OPTIONS). There fsck.nacre says so in a
note and ends with 0; then the volume must mount and each read give the right bytes.
Nothing witnesses the last frame of a live log: damage there looks like a commit that never came to
its end. So the killed volume ends with one commit more, of the file LAST, which may be missing.
"""
import argparse
import collections
import errno
import hashlib
import os
import random
import re
import shutil
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import Failure, Volume, full_counts  # noqa: E402

FSCK_CLEAN, FSCK_DAMAGE = 0, 4
# What a refusal may end with: usage is not one of them.
REFUSED = (4, 8, 16)
LAST = "committed last"
# Files under db/: docs/FORMAT.md.
FILE_HEADER_SIZE = 64
FRAME_OVERHEAD = 32 + 16


def fill(top, chance):
    """Files of many kinds, so that each structure of a volume is there."""
    for number in range(60):
        folder = os.path.join(top, f"folder{number % 7}")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"file{number}")
        size = chance.choice([0, 10, 1000, 4096, 65_536, 65_537, 200_000])
        with open(path, "wb") as f:
            f.write(chance.randbytes(size) if number % 2 else (b"line %d\n" % number) * (size // 8))
        if number % 5 == 0:
            with open(path, "r+b") as f:  # a patch over a chunk that is stored already
                f.flush()
                os.fsync(f.fileno())
                f.seek(size // 2)
                f.write(b"patched")
                f.flush()
                os.fsync(f.fileno())
        if number % 9 == 0:
            os.symlink(f"file{number}", path + ".link")
            os.link(path, path + ".hard")
            os.setxattr(path, "user.note", b"noted %d" % number)
    with open(os.path.join(top, "sparse"), "wb") as f:
        f.truncate(3_000_000)
        f.seek(1_500_000)
        f.write(b"island")


def picture(top):
    """path -> what it is. Everything that a reader can see."""
    seen = {}
    for folder, folders, files in os.walk(top, onerror=raise_it):
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            seen[os.path.relpath(path, top)] = describe(path)
    return seen


def raise_it(error):
    raise error


def describe(path):
    info = os.lstat(path)
    said = [oct(info.st_mode), info.st_uid, info.st_gid, info.st_mtime_ns]
    if os.path.islink(path):
        return (*said, info.st_size, os.readlink(path))
    if os.path.isdir(path):
        return (*said,)
    said += [info.st_size, info.st_nlink]
    names = sorted(n for n in os.listxattr(path) if n.startswith("user."))
    said += [(n, os.getxattr(path, n)) for n in names]
    with open(path, "rb") as f:
        said.append(hashlib.sha256(f.read()).hexdigest())
    return tuple(said)


def judge_reads(top, expected):
    """The number of EIO. Wrong data, or a name that is not there without an error, is a failure."""
    refused = 0
    listed = set()

    def walk_error(error):
        nonlocal refused
        if error.errno != errno.EIO:
            raise Failure(f"reading a folder: {error}")
        refused += 1

    unread = []
    for folder, folders, files in os.walk(top, onerror=lambda e: (walk_error(e),
                                                                  unread.append(e.filename))):
        for name in folders + files:
            path = os.path.join(folder, name)
            short = os.path.relpath(path, top)
            listed.add(short)
            if short == LAST:
                continue
            if short not in expected:
                raise Failure(f"{short} was never made")
            try:
                found = describe(path)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise Failure(f"{short}: {error}, expected the right data or EIO") from None
                refused += 1
                continue
            if found != expected[short]:
                raise Failure(f"{short}: WRONG DATA: {found} instead of {expected[short]}")
    for short in set(expected) - listed:
        above = [os.path.relpath(u, top) for u in unread]
        if not any(short.startswith("" if a == "." else a + "/") for a in above):
            raise Failure(f"{short} is missing, and nothing said so")
    return refused


def files_of(volume):
    """(path, size) of every file, larger ones no likelier than their share allows small ones."""
    found = []
    for folder, _, files in os.walk(volume):
        for name in sorted(files):
            path = os.path.join(folder, name)
            size = os.path.getsize(path)
            if size and name not in ("lock", "ballast"):  # neither says anything
                found.append((os.path.relpath(path, volume), size))
    return sorted(found)


def choose(files, chance):
    """By file or by byte, so that a superblock of 500 bytes is hit as often as a segment."""
    if chance.random() < 0.5:
        name, size = chance.choice(files)
        return name, chance.randrange(size)
    at = chance.randrange(sum(size for _, size in files))
    for name, size in files:
        if at < size:
            return name, at
        at -= size
    raise AssertionError


def without_meaning(path, offset):
    """Zeros written ahead of a log's end, or a log's frame that no later one says was synced.

    docs/FORMAT.md: damage there cannot be told from a tail torn by a crash.
    """
    with open(path, "rb") as f:
        content = f.read()
    if not content[offset:].strip(b"\0"):
        return True
    if not os.path.basename(path).endswith(".log") and "MANIFEST-" not in path:
        return False
    position, number, mine, synced = FILE_HEADER_SIZE, 0, None, 0
    while content[position:position + 4] == b"NFRM":
        size, _, synced_up_to = struct.unpack_from("<IQQ", content, position + 4)
        end = position + FRAME_OVERHEAD + size
        if position <= offset < end:
            mine = number
        synced = max(synced, synced_up_to)
        position, number = end, number + 1
    return mine is not None and mine >= synced


def flip(path, offset, xor):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ xor]))


def one_flip(volume, source, expected, name, offset, xor):
    volume.forget_states()
    shutil.rmtree(volume.path, ignore_errors=True)
    shutil.copytree(source, volume.path, ignore=shutil.ignore_patterns("ballast", "*.sock"))
    target = os.path.join(volume.path, name)
    idle = without_meaning(target, offset)
    flip(target, offset, xor)
    status, text = volume.fsck("--deep", expect=None)
    if status not in (FSCK_CLEAN, FSCK_DAMAGE) + REFUSED:
        raise Failure(f"fsck.nacre --deep ended with {status}: {text[-1500:]}")
    note = rf"^note: {re.escape(name)}\b.*nothing depends on it"
    unneeded = status == FSCK_CLEAN and re.search(note, text, re.MULTILINE) is not None
    if status == FSCK_CLEAN and not idle and not unneeded:
        raise Failure(f"fsck.nacre --deep finds nothing: {text[-1500:]}")
    if status != FSCK_CLEAN and not text.strip():
        raise Failure(f"fsck.nacre --deep ended with {status} without a word")
    verdict = ("noted" if unneeded else
               "nothing found" if status == FSCK_CLEAN else f"fsck {status}")
    # The check must not have changed the volume; mounting it now meets the same flipped byte.
    status, text = volume.mount(expect=None)
    if status != 0:
        if status not in REFUSED or not text.strip():
            raise Failure(f"mount.nacre ended with {status}: {text[-1500:]}")
        if os.path.ismount(volume.mnt):
            raise Failure("mount.nacre failed, and yet something is mounted")
        if unneeded:
            raise Failure(f"nothing depends on it, and yet mount.nacre refuses: {text[-1500:]}")
        return verdict, "refused"
    refused = judge_reads(volume.mnt, expected)
    if refused and unneeded:
        raise Failure(f"nothing depends on it, and yet {refused} reads gave EIO")
    if not volume.daemons():
        raise Failure("the daemon is gone after reading")
    # Unmounting may say that something is wrong, but it must come to an end.
    volume.unmount(expect=None)
    volume.detach()
    volume.wait_for_daemons(60)
    return verdict, f"EIO {'some' if refused else 'none'}"


def prepare(volume, seed, folder):
    """Two volumes of the same content, stopped in two ways, and what a reader must see."""
    volume.make()
    volume.mount()
    fill(volume.mnt, random.Random(seed))
    volume.unmount()
    volume.wait_for_daemons(60)
    volume.mount()
    fill(os.path.join(volume.mnt, "folder1"), random.Random(seed + 1))  # a second write session
    volume.run("nacre", "sync", volume.mnt)
    expected = picture(volume.mnt)
    with open(os.path.join(volume.mnt, LAST), "wb") as f:
        f.flush()
        os.fsync(f.fileno())
    volume.kill()
    volume.detach()
    killed = os.path.join(folder, "killed")
    shutil.copytree(volume.path, killed, ignore=shutil.ignore_patterns("ballast", "*.sock"))
    volume.mount()
    os.unlink(os.path.join(volume.mnt, LAST))
    if picture(volume.mnt) != expected:
        raise Failure("after kill -9 the volume holds something else than was synced")
    volume.unmount()
    volume.wait_for_daemons(60)
    clean = os.path.join(folder, "clean")
    shutil.copytree(volume.path, clean, ignore=shutil.ignore_patterns("ballast", "*.sock"))
    volume.fsck("--deep")
    return clean, killed, expected


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flips", type=int, default=500 if full_counts() else 40)
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9))
    parser.add_argument("--only", help="FILE:OFFSET:XOR:clean or killed, from a failure's line")
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.flips} flips (NACRE_SEED repeats it)", flush=True)
    chance = random.Random(options.seed)
    outcomes, failures = collections.Counter(), []
    with Volume("flip") as volume:
        clean, killed, expected = prepare(volume, options.seed, volume.work)
        turns = options.flips
        if options.only:
            turns = 1
        for number in range(turns):
            variant = chance.choice(["clean", "killed"])
            source = clean if variant == "clean" else killed
            name, offset = choose(files_of(source), chance)
            xor = chance.choice([1, 128, 255, chance.randrange(1, 256)])
            if options.only:
                name, offset, xor, variant = options.only.split(":")
                offset, xor = int(offset), int(xor)
                source = clean if variant == "clean" else killed
            try:
                verdict = one_flip(volume, source, expected, name, offset, xor)
                kind = name.split("/")[0] if "/" in name else name
                outcomes[(variant, kind, *verdict)] += 1
            except Failure as failure:
                failures.append(failure)
                print(f"FAILED: {name}:{offset}:{xor}:{variant}: {failure}", flush=True)
                volume.detach()
                volume.kill()
    for outcome, count in sorted(outcomes.items()):
        print(f"{count:5} {' | '.join(outcome)}")
    if failures:
        sys.exit(f"FAILED: {len(failures)} of {turns} flips, seed {options.seed}")
    print(f"{turns} flips: right data, EIO or refused each time")


if __name__ == "__main__":
    main()
