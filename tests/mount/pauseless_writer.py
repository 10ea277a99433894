#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody overwrites a nearly full disk (a loop-mounted ext4) at random and never pauses, with
bytes that no codec makes smaller: what is stored for each live byte, what is written for each byte,
and what an fsync beside that waits for.

    pauseless_writer.py [--disk-mib N] [--live-percent N] [--overwrites N] [--space-ratio R]
                        [--buffered] [all | hot]…

all: chunks are all alike; hot: nine of ten writes go to a tenth of them; by default one after the
other, on a new volume each. A ratio of 100 holds nobody back: for comparison, with little live. It
judges counts alone; times are printed for docs/PERFORMANCE.md. Writes are direct, or go through the
kernel's cache, which makes fewer of them.
"""
import argparse
import json
import mmap
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from loop_disk import LoopDisk  # noqa: E402
from volume import Failure, Volume, full_counts, wait_for  # noqa: E402

CHUNK = 64 << 10
MIB = 1 << 20
# See fs/mount/open.cpp: the slack is a tenth of what the bound allows, or four segments.
SEGMENTS_PER_DISK = 128
SEGMENT_BYTES_MAX = 64 * MIB
SEGMENTS_OF_SLACK = 4
SLACK_SHARE = 0.1
# Where a writer gets half of what is cleaned up, dead bytes go no further: twice the slack past the
# bound. Beside it lie what is being filled, moved and committed.
SLACKS_MAX = 2
SEGMENTS_BESIDE = 6
# Through its cache the kernel has so many writes under way, which were taken before they are held.
KERNEL_WRITES_MAX = 512
UNHELD_RATIO = 50


def check(condition, what):
    if not condition:
        raise Failure(what)


def stats_of(volume):
    return json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])["stats"]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


class Repeated(threading.Thread):
    """Calls something again and again while the block runs."""

    def __init__(self, call, pause_s):
        super().__init__()
        self.call, self.pause_s = call, pause_s
        self.ended, self.results, self.error = threading.Event(), [], None

    def run(self):
        try:
            while not self.ended.wait(self.pause_s):
                self.results.append(self.call())
        except (OSError, Failure) as error:
            self.error = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, kind, value, trace):
        self.ended.set()
        self.join()
        if kind is None and self.error:
            raise Failure(f"beside the writer: {self.error}")


def fsync_seconds(path):
    """Of a page appended to a file of its own."""
    began = time.monotonic()
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.write(fd, os.urandom(4096))
    os.fsync(fd)
    os.close(fd)
    return time.monotonic() - began


def words_of(seconds):
    return (f"{len(seconds)} fsyncs: p50 {quantile(seconds, .5) * 1e3:.0f} ms, "
            f"p99 {quantile(seconds, .99) * 1e3:.0f}, max {max(seconds) * 1e3:.0f}")


def write_for_ever(options, path, pick, chunk_count, written_bytes):
    """Writes chunks as fast as it may."""
    piece = mmap.mmap(-1, CHUNK)
    piece.write(os.urandom(CHUNK))
    fd = os.open(path, os.O_RDWR | (0 if options.buffered else os.O_DIRECT))
    number = 0
    while number * CHUNK < written_bytes:
        number += 1
        # A few bytes of each block of 4 KiB: no two chunks are alike.
        for block in range(0, CHUNK, 4096):
            piece[block:block + 8] = number.to_bytes(8, "little")
        os.pwrite(fd, piece, pick(chunk_count) * CHUNK)
    os.fsync(fd)
    os.close(fd)


def overwrite(options, pattern, chance):
    disk_bytes = options.disk_mib * MIB
    live_bytes = disk_bytes * options.live_percent // 100 // CHUNK * CHUNK
    segment = min(max(disk_bytes // SEGMENTS_PER_DISK, MIB), SEGMENT_BYTES_MAX)
    ratio = options.space_ratio
    with LoopDisk("pauseless", disk_bytes) as disk, Volume("pauseless") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make("--codec", "none")
        # No room but what the bound gives; little that waits in memory for its place on the disk.
        volume.mount("-o", f"space_room=0,space_ratio={ratio},dirty=16M")
        path = os.path.join(volume.mnt, "f")
        with open(path, "wb") as f:
            for _ in range(0, live_bytes, CHUNK):
                f.write(chance.randbytes(CHUNK))
            f.flush()
            os.fsync(f.fileno())
        chunk_count = live_bytes // CHUNK
        picks = {"all": lambda count: chance.randrange(count),
                 "hot": lambda count: chance.randrange(
                     count // 10 if chance.random() < 0.9 else count)}
        synced = os.path.join(volume.mnt, "synced")

        def sample():
            now = stats_of(volume)
            return (now["segments"]["stored_bytes"] / now["segments"]["live_bytes"],
                    now["compaction"]["holds_writers"])

        alone = [fsync_seconds(synced) for _ in range(20)]
        half = int(options.overwrites * live_bytes / 2)
        write_for_ever(options, path, picks[pattern], chunk_count, half)
        warm = stats_of(volume)["segments"]
        began = time.monotonic()
        with Repeated(sample, 0.1) as looks, Repeated(lambda: fsync_seconds(synced), 0.1) as syncs:
            write_for_ever(options, path, picks[pattern], chunk_count, half)
            seconds = time.monotonic() - began
        end = stats_of(volume)
        check(looks.results and syncs.results, "the writer was done before anybody looked")
        shares = [share for share, _ in looks.results]
        held_count = end["compaction"]["held_write_count"]
        costs = {name: end["segments"][name] - warm[name]
                 for name in ("appended_bytes", "moved_bytes", "appended_plain_bytes")}
        amplification = ((costs["appended_bytes"] + costs["moved_bytes"])
                         / costs["appended_plain_bytes"])
        live = end["segments"]["live_bytes"]
        slack = max(SLACK_SHARE * (ratio - 1) * live, SEGMENTS_OF_SLACK * segment)
        under_way = KERNEL_WRITES_MAX * CHUNK if options.buffered else CHUNK
        limit = ratio + (SLACKS_MAX * slack + SEGMENTS_BESIDE * segment + under_way) / live
        print(f"{options.disk_mib} MiB with {live >> 20} MiB live, {pattern}: stored for each live "
              f"byte {quantile(shares, .5):.3f} (median), {max(shares):.3f} at most (limit "
              f"{limit:.3f}, slack {slack / live:.3f}); written for each byte {amplification:.2f}; "
              f"{half / seconds / 1e6:.0f} MB/s, writers held in "
              f"{sum(held for _, held in looks.results)} of {len(shares)} looks, {held_count} writes; "
              f"alone {words_of(alone)}; beside the writer {words_of(syncs.results)}", flush=True)
        # Where hardly a byte had to be moved, whole segments died by themselves and nobody waits.
        if ratio < UNHELD_RATIO and costs["moved_bytes"] > slack:
            check(held_count > 0, "no writer was ever held back")
        check(max(shares) <= limit, f"{max(shares):.3f} stored for each live byte")
        # Once nobody writes, the background reaches the bound, and nobody waits any more.
        wait_for(lambda: stats_of(volume)["segments"]["stored_bytes"]
                 <= ratio * live + SEGMENTS_BESIDE * segment, 120, "the bound is not reached")
        wait_for(lambda: not stats_of(volume)["compaction"]["holds_writers"], 120,
                 "writers are held back where nobody writes")
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--disk-mib", type=int, default=1024 if full_counts() else 256)
    parser.add_argument("--live-percent", type=int, default=45)
    parser.add_argument("--overwrites", type=float, default=4 if full_counts() else 1.2)
    parser.add_argument("--space-ratio", type=float, default=1.25)
    parser.add_argument("--buffered", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("patterns", nargs="*", metavar="all | hot")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    try:
        for pattern in options.patterns or ["all", "hot"]:
            overwrite(options, pattern, random.Random(options.seed))
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
