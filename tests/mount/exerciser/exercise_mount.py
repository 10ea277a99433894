#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random calls on the files of a mount, in every way that bytes take through the kernel, with chunks
of 4 KiB, 64 KiB and 1 MiB: what is read is what was written, also after the volume has put itself in
order, was mounted anew, or was left alone until it merged what it had in pieces.

    exercise_mount.py FILE_EXERCISER [--transport device|io_uring] [--seed N] [--operations N]
                      [--runs N]

Each day has a seed of its own, and each size of chunks three of the nine ways: another three the next
day. A failure comes with its seed and with a history of few calls (file_exerciser --replay).
NACRE_LONG: 33 runs of 400,000 operations over each transport.
"""
import argparse
import ctypes
import fcntl
import functools
import json
import os
import shlex
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../support"))
from volume import Failure, Volume, bin_folder, full_counts, skip, skip_part, wait_for  # noqa: E402

CHUNK_SIZES = ("4K", "64K", "1M")
LIMITS = ["-o", "128000", "-l", "600000"]
DIRECT = ["-Z", "-r", "4096", "-w", "4096", "-t", "4096"]
# Of an O_DIRECT read by AIO or io_uring, what the daemon answers counts, though the kernel may know of
# a larger size: it must have told the daemon.
WAYS = (
    ("plain", []),
    ("O_DIRECT", DIRECT + ["-R", "-W"]),
    ("O_DIRECT and mappings", DIRECT),
    ("AIO", ["-A"] + DIRECT + ["--sync-first"]),
    ("io_uring", ["-U"]),
    ("io_uring, O_DIRECT", ["-U"] + DIRECT + ["--sync-first"]),
    ("opened anew", ["-c", "10"]),
    ("all ways, three files", ["-M", "-f", "3", "-k", "200", "--sync-first"]),
    ("states", ["--state", "-f", "3"]),
)
SWITCH = "/sys/module/fuse/parameters/enable_uring"
RUN_LIMIT_S = 7200

CLONE_NEWNS = 0x20000
MS_REC_PRIVATE = 0x4000 | 0x40000
MNT_DETACH = 2


def enter_own_mounts():
    """A mount namespace that others make of the machine's, as some tests do, would hold the volumes
    here when they are to be unmounted. So they are mounted where nobody copies them; and what other
    tests have mounted is let go of."""
    if os.getuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC_PRIVATE, None):
        return  # it is not allowed here, to others neither
    here = os.fsencode(os.path.realpath(tempfile.gettempdir())) + b"/"
    with open("/proc/self/mountinfo", "rb") as f:
        mounts = [line.split() for line in f]
    for words in reversed(mounts):
        point, kind = words[4], words[words.index(b"-") + 1]
        if point.startswith(here) or kind == b"fuse.nacre":
            libc.umount2(point, MNT_DETACH)


class Switch:
    """FUSE over io_uring is on within it, where root may switch it on."""

    def __init__(self, transport):
        self.transport, self.before = transport, None

    def turn(self, value):
        """Not while a test relies on it as it is (fuse_uring_test.cpp)."""
        with open(SWITCH, encoding="ascii") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            with open(SWITCH, "w", encoding="ascii") as f:
                f.write(value)

    def __enter__(self):
        if self.transport != "io_uring":
            return
        if not os.path.exists(SWITCH):
            skip("files of a mount over io_uring", "this kernel has no FUSE over io_uring")
        with open(SWITCH, encoding="ascii") as f:
            before = f.read().strip()
        if before == "Y":
            return
        try:
            self.turn("Y")
        except PermissionError:
            skip("files of a mount over io_uring", "it is off and only root can switch it on")
        self.before = before

    def __exit__(self, *_):
        if self.before is not None:
            self.turn(self.before)


class Exercised:
    """A mounted volume, and the runs on it."""

    def __init__(self, volume, arguments, chunk_size):
        self.volume, self.arguments = volume, arguments
        switched = "on" if arguments.transport == "io_uring" else "off"
        # Small caches: what is asked for again comes from the disk now and then.
        self.options = ["-o", f"io_uring={switched},cache=8M,dirty=8M"]
        volume.make("--chunk-size", chunk_size)
        volume.mount(*self.options)
        transport = self.stats()["transport"]
        if transport != {"device": "/dev/fuse", "io_uring": "io_uring"}[arguments.transport]:
            raise Failure(f"the mount is served over {transport}")

    def stats(self):
        return json.loads(self.volume.run("nacre", "stats", "--json", self.volume.mnt)[1])["stats"]

    def appended(self):
        return self.stats()["segments"]["appended_record_count"]

    def upkeep(self, mounts_anew):
        """The shell's command that merges and compacts, and mounts the volume anew if asked."""
        volume = self.volume
        nacre = os.path.join(volume.bin, "nacre")
        commands = [[nacre, "trim", volume.mnt]]
        if mounts_anew:
            commands += [[nacre, "umount", volume.mnt],
                         [os.path.join(volume.bin, "mount.nacre"), "--passphrase-file",
                          volume.passphrase, *self.options, volume.path, volume.mnt]]
        return " && ".join(shlex.join(command) + " >/dev/null" for command in commands)

    def run(self, what, *options):
        status, text = self.volume.run(self.arguments.file_exerciser, *options,
                                       os.path.join(self.volume.mnt, "file"), limit_s=RUN_LIMIT_S,
                                       expect=(0, 1, 77))
        if status == 77:
            skip_part(f"files of a mount, {what}", text.rpartition(": ")[2].strip())
        elif status != 0:
            raise Failure(f"{what}: {text}")

    def end(self):
        self.volume.unmount()
        self.volume.wait_for_daemons(120)
        self.volume.fsck("--deep")


def random_runs(arguments, chunk_size, first_way, first_seed):
    with Volume(f"exerciser-{chunk_size}") as volume:
        exercised = Exercised(volume, arguments, chunk_size)
        for i in range(arguments.runs):
            name, way = WAYS[(first_way + i) % len(WAYS)]
            seed = first_seed + i
            one_upkeep_in = max(1, arguments.operations // 2)
            exercised.run(f"chunks of {chunk_size}, {name}", "-N", str(arguments.operations), "-S",
                          str(seed), *LIMITS, *way, "--upkeep", exercised.upkeep(i % 3 == 0),
                          "--one-upkeep-in", str(one_upkeep_in))
        exercised.end()


def states_left_alone(arguments):
    """A small file is rewritten in place, each time with fsync, and read back; then nothing happens
    until the daemon has merged by itself what it had kept in pieces."""
    with Volume("exerciser-states") as volume:
        exercised = Exercised(volume, arguments, "64K")
        for size, states in ((4096, 100), (30_000, 70), (700, 90)):
            history = os.path.join(volume.work, "history")
            with open(history, "w", encoding="ascii") as f:
                for state in range(states):
                    f.write(f"write file=0 at=0 size={size} via=plain fill=text stamp={state}\n"
                            "fsync file=0\ncheck file=0 via=direct\n")
                f.write("upkeep\ncheck file=0 via=direct\n")
            # What an fsync hands over is a row of a table; it becomes a record when it is merged.
            until_merged = [sys.executable, os.path.realpath(__file__), "--until-appended",
                            str(exercised.appended() + 1), volume.mnt]
            exercised.run(f"states of {size} bytes, left alone", "--replay", history, "--replays",
                          "8", "--upkeep", shlex.join(until_merged))
        exercised.end()


def appended_record_count(nacre, mnt):
    stats = subprocess.run([nacre, "stats", "--json", mnt], stdout=subprocess.PIPE, check=True)
    return json.loads(stats.stdout)["stats"]["segments"]["appended_record_count"]


def wait_until_appended(count, mnt):
    def is_appended():
        time.sleep(1)  # the daemon waits for a pause
        return appended_record_count(os.path.join(bin_folder(), "nacre"), mnt) >= count

    wait_for(is_appended, 120, "the daemon has merged nothing")


def in_parallel(tasks):
    failures = []

    def guarded(task):
        try:
            task()
        except (Failure, OSError) as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Failure("\n".join(str(failure) for failure in failures))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file_exerciser", nargs="?")
    parser.add_argument("--transport", choices=("device", "io_uring"), default="device")
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or time.time() // 86400))
    # Of each volume; there is one for each size of chunks.
    parser.add_argument("--runs", type=int,
                        default=11 if full_counts() else len(WAYS) // len(CHUNK_SIZES))
    parser.add_argument("--operations", type=int, default=400_000 if full_counts() else 2000)
    parser.add_argument("--until-appended", nargs=2, metavar=("COUNT", "MOUNT"))
    arguments = parser.parse_args()
    if arguments.until_appended:
        wait_until_appended(int(arguments.until_appended[0]), arguments.until_appended[1])
        return
    if not arguments.file_exerciser:
        parser.error("FILE_EXERCISER is missing")
    print(f"seed {arguments.seed}", flush=True)
    enter_own_mounts()
    tasks = [functools.partial(random_runs, arguments, chunk_size,
                               arguments.runs * (arguments.seed + i),
                               1000 * arguments.seed + 100 * i)
             for i, chunk_size in enumerate(CHUNK_SIZES)]
    if arguments.transport == "device":
        tasks.append(functools.partial(states_left_alone, arguments))
    with Switch(arguments.transport):
        in_parallel(tasks)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
