#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read latency of a mounted volume, without and during a rotation of its keys at the default rate.

    rotation_latency.py --bin DIR --volume DIR --passphrase-file F [--seconds N] [--rounds N]

The volume must hold files of a few hundred MB at least; else the daemon's cache answers. Each round reads
64 KiB at random places, past the kernel's cache, one after the other: N seconds before a rotation
begins, then N seconds while it runs. Every other round has the other order, and the rotation is
paused in between. Prints the percentiles of all rounds together, the p99 of each, and the ratio of their
medians, so that one bad round of a shared machine does not decide.
"""
import argparse
import json
import mmap
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

PIECE = 65536


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--volume", required=True)
    parser.add_argument("--passphrase-file", required=True)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    mnt = tempfile.mkdtemp(prefix="nacre-latency.")

    def run(program, *words):
        return subprocess.run([os.path.join(arguments.bin, program), *words], check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    run("mount.nacre", "--passphrase-file", arguments.passphrase_file, arguments.volume, mnt)
    try:
        places = []
        for folder, _, names in os.walk(mnt):
            for name in names:
                path = os.path.join(folder, name)
                size = os.path.getsize(path)
                if size >= PIECE:
                    places.append((os.open(path, os.O_RDONLY | os.O_DIRECT), size // PIECE))
        buffer = mmap.mmap(-1, PIECE)
        weights = [count for _, count in places]

        def status():
            return json.loads(run("nacre", "key", "status", "--json", mnt))["rotation"]

        def read_for(seconds, goes_on=lambda: True):
            times = []
            end = time.monotonic() + seconds
            look = 0
            while time.monotonic() < end:
                if time.monotonic() > look:
                    if not goes_on():
                        break
                    look = time.monotonic() + 1
                fd, count = random.choices(places, weights)[0]
                begin = time.perf_counter()
                os.preadv(fd, [buffer], random.randrange(count) * PIECE)
                times.append(time.perf_counter() - begin)
            return times

        before, during = [], []

        def rotate():
            verb = ["--no-wait"] if status() == "none" else ["--resume"]
            run("nacre", "key", "rotate", *verb, mnt)
            during.append(read_for(arguments.seconds, lambda: status() == "running"))
            if status() == "running":
                run("nacre", "key", "rotate", "--pause", mnt)

        for turn in range(arguments.rounds):
            if turn % 2:
                rotate()
            before.append(read_for(arguments.seconds))
            if turn % 2 == 0:
                rotate()
        for fd, _ in places:
            os.close(fd)

        def at(times, share):
            return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1e3

        print(f"{'':8} {'reads':>8} {'p50 ms':>8} {'p95 ms':>8} {'p99 ms':>8}")
        medians = []
        for name, rounds in (("without", before), ("during", during)):
            times = [each for one in rounds for each in one]
            print(f"{name:8} {len(times):8} {at(times, 0.5):8.2f} {at(times, 0.95):8.2f} "
                  f"{at(times, 0.99):8.2f}   p99 of each round: "
                  + ", ".join(f"{at(one, 0.99):.2f}" for one in rounds if one))
            medians.append(statistics.median(at(one, 0.99) for one in rounds if one))
        print(f"median p99 during / without: {medians[1] / medians[0]:.2f}")
    finally:
        run("nacre", "umount", mnt)
        os.rmdir(mnt)


if __name__ == "__main__":
    sys.exit(main())
