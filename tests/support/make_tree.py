#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a folder that looks like a source tree: the same one for the same seed and count.

    make_tree.py FOLDER FILES [SEED]

Small text files for the most part, some binary, empty or large ones; symbolic and hard links, odd
modes, nanosecond times, odd names.
"""
import os
import random
import sys

WORDS = ("static inline struct const return unsigned value offset length buffer include define if "
         "else while for index error context record segment chunk 0 1 -1 NULL { } ( ) ; = == + ->"
         ).split()


def content(chance):
    kind = chance.random()
    if kind < 0.02:
        return b""
    if kind < 0.05:
        return chance.randbytes(chance.randrange(1, 20_000))
    size = int(chance.paretovariate(1.2) * 700)
    if kind > 0.998:
        size = chance.randrange(100_000, 900_000)
    line = " ".join(chance.choices(WORDS, k=200)).encode() + b"\n"
    start = chance.randrange(len(line))
    size = min(size, 900_000)
    return (line[start:] + line * (size // len(line) + 1))[:size]


def main():
    top, count = sys.argv[1], int(sys.argv[2])
    chance = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    os.makedirs(top)
    folders, files, links = [top], [], 0
    while len(files) < count:
        if chance.random() < 0.08:
            parent = chance.choice(folders[-400:])
            if parent.count("/") - top.count("/") < 12:
                folder = os.path.join(parent, f"d{len(folders)}")
                os.mkdir(folder, 0o755 if chance.random() < 0.95 else 0o700)
                folders.append(folder)
        name = os.path.join(chance.choice(folders[-200:]), f"f{len(files) + links}.c")
        kind = chance.random()
        if kind < 0.002:
            name += chance.choice([" with space", "ümlaut", "\ttab", "'quote", "-" * 180, "\\b"])
        if kind > 0.99 and files:
            os.link(chance.choice(files[-50:]), name)
        elif kind > 0.98 and files:
            os.symlink(os.path.relpath(chance.choice(files), os.path.dirname(name)), name)
            links += 1
            continue
        else:
            with open(name, "wb") as f:
                f.write(content(chance))
            os.chmod(name, chance.choice([0o644] * 12 + [0o755, 0o600, 0o444, 0o4755, 0o640]))
            seconds = chance.randrange(0, 1_700_000_000)
            os.utime(name, ns=(seconds * 10**9, seconds * 10**9 + chance.randrange(10**9)))
        files.append(name)
    os.symlink("nowhere/" + "x" * 3000, os.path.join(top, "dangling"))
    for folder in reversed(folders):
        seconds = chance.randrange(0, 1_700_000_000)
        os.utime(folder, ns=(seconds * 10**9, seconds * 10**9 + chance.randrange(10**9)))


if __name__ == "__main__":
    main()
