#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fsck.nacre --repair of a volume with many files, one in a hundred of whose records is damaged: the
report names exactly those ranges of those files, the volume is clean afterwards, all other bytes of
all files are what was written, and a second repair has nothing to do.

    repair_many_files.py [--files N] [--seed S]      default: 1,000; NACRE_LONG: 20,000
"""
import argparse
import json
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import Failure, Volume, full_counts  # noqa: E402

CHUNK = 65_536
SECTOR = 512
LIMIT_S = 1800
BASE = re.compile(r"^chunks (\d+) chunk (\d+) base (\d+):(\d+)\+(\d+) ")


def content_of(number, seed):
    chance = random.Random(f"{seed} {number}")
    size = chance.randrange(1, 4 * CHUNK if number % 20 == 0 else 8000)
    if chance.random() < 0.5:
        return chance.randbytes(size)
    return (chance.randbytes(40) + b"compressible text") * (size // 57 + 1)


def path_of(number):
    return f"folder{number // 100}/file{number}"


def make_files(volume, count, seed):
    """Inode numbers of the files."""
    volume.mount()
    inodes = {}
    for number in range(count):
        path = os.path.join(volume.mnt, path_of(number))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content_of(number, seed))
            inodes[os.fstat(f.fileno()).st_ino] = number
    volume.unmount()
    volume.wait_for_daemons(120)
    return inodes


def damage(file, offset, size, chance):
    """Something that media and software do to a record, within its bytes."""
    kind = chance.choice(["bit", "sector", "zeros", "whole"])
    at, length = offset, size
    if kind == "bit":
        at, length = offset + chance.randrange(size), 1
    elif kind == "sector" and size > SECTOR:
        at, length = offset + chance.randrange(size - SECTOR), SECTOR
    file.seek(at)
    old = file.read(length)
    new = bytes(length) if kind == "zeros" else chance.randbytes(length)
    if kind == "bit" or new == old:
        new = bytes([old[0] ^ 1 << chance.randrange(8)]) + old[1:]
    file.seek(at)
    file.write(new)


def damage_records(volume, inodes, chance):
    """(inode, chunk) of each record that was hit."""
    text = volume.run("nacre", "dump", "tables", "--table", "chunks", "--passphrase-file",
                      volume.passphrase, volume.path, limit_s=LIMIT_S)[1]
    records = [tuple(map(int, found.groups())) for found in map(BASE.match, text.splitlines())
               if found and int(found[1]) in inodes]
    if len(records) < len(inodes):
        raise Failure(f"{len(records)} records of {len(inodes)} files")
    hit = chance.sample(records, len(records) // 100)
    for _, _, segment, offset, size in hit:
        path = os.path.join(volume.path, "segments", f"{segment:012}.seg")
        with open(path, "r+b") as file:
            damage(file, offset, size, chance)
    print(f"{len(inodes)} files, {len(records)} records, {len(hit)} of them damaged", flush=True)
    return {(inode, chunk) for inode, chunk, *_ in hit}


def check_report(report, hit, inodes, seed):
    if report["left_count"] or not report["changed"]:
        raise Failure(f"left: {report['left']}")
    want = set()
    for inode, chunk in hit:
        number = inodes[inode]
        size = min(CHUNK, len(content_of(number, seed)) - chunk * CHUNK)
        want.add((inode, chunk * CHUNK, size, "/" + path_of(number)))
    found = [(entry["inode"], entry["offset"], entry["size"], *entry["paths"])
             for entry in report["lost"]]
    if len(found) != len(set(found)) or set(found) != want:
        raise Failure(f"the report is wrong about {sorted(set(found) ^ want)[:5]}")
    if any(entry["verdict"] not in ("rot", "tampered") for entry in report["lost"]):
        raise Failure(f"verdicts: {sorted({entry['verdict'] for entry in report['lost']})}")


def read_chunk(fd, offset):
    try:
        return os.pread(fd, CHUNK, offset)
    except OSError:
        return None


def check_files(volume, hit, inodes, seed):
    volume.mount("-o", "ro")
    for inode, number in inodes.items():
        content = content_of(number, seed)
        fd = os.open(os.path.join(volume.mnt, path_of(number)), os.O_RDONLY)
        try:
            if os.fstat(fd).st_size != len(content) or os.fstat(fd).st_ino != inode:
                raise Failure(f"{path_of(number)}: another size or inode")
            for offset in range(0, len(content), CHUNK):
                is_hit = (inode, offset // CHUNK) in hit
                want = None if is_hit else content[offset:offset + CHUNK]
                if read_chunk(fd, offset) != want:
                    raise Failure(f"{path_of(number)} at {offset}: " +
                                  ("damaged, yet read" if is_hit else "not what was written"))
        finally:
            os.close(fd)
    volume.unmount()
    volume.wait_for_daemons(120)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=20_000 if full_counts() else 1000)
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with Volume("repair-many-files") as volume:
        volume.make()
        inodes = make_files(volume, arguments.files, arguments.seed)
        hit = damage_records(volume, inodes, random.Random(arguments.seed))
        volume.fsck("--deep", limit_s=LIMIT_S, expect=(4,))
        began = time.monotonic()
        _, text = volume.fsck("--repair", "--json", limit_s=LIMIT_S, expect=(1,))
        took = time.monotonic() - began
        check_report(json.loads(text), hit, inodes, arguments.seed)
        volume.fsck("--deep", limit_s=LIMIT_S)
        again = json.loads(volume.fsck("--repair", "--json", limit_s=LIMIT_S)[1])
        if again["changed"] or again["steps"]:
            raise Failure(f"a second repair changes something: {again['steps'][:3]}")
        check_files(volume, hit, inodes, arguments.seed)
        print(f"repaired in {took:.1f} s: {len(hit)} ranges lost and reported, all else as written")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
