#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys are rotated on a mounted volume in use, and the daemon is killed at random moments of it.

    rotate_daemon.py [--kills N] [--seed S] [--move]

A writer makes and fsyncs files, a renamer replaces some by rename, a reader reads all of them; each
file says what it must hold. After each kill the volume mounts, all that was fsynced is there, and
the rotation goes on by itself; when it is done another one begins. In the end nothing is left under
an older epoch, fsck.nacre --deep finds nothing, and a keyring from before is refused. With --move
the first rotation moves a padded volume of format 1 to format 2.
"""
import argparse
import json
import os
import random
import shutil
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import check_memory  # noqa: E402
from volume import DAEMON_GONE, PATIENCE, Failure, Volume, full_counts  # noqa: E402

PIECE = 200_000
# Read and written by the rotation: one lane in small pieces, or several side by side.
RATES = ("8M", "16M", "1G")
# Small, so that what the rotation takes beside them shows.
CACHE_MIB, DIRTY_MIB = 16, 8


def content(generation):
    return struct.pack("<Q", generation) + random.Random(generation).randbytes(PIECE)


def generation_of(data, path):
    """Of a whole file; anything else is a failure."""
    if len(data) == PIECE + 8:
        generation = struct.unpack_from("<Q", data)[0]
        if data == content(generation):
            return generation
    raise Failure(f"{path} holds what nobody wrote ({len(data)} bytes)")


class Work:
    """Threads over one mount. What is in durable was fsynced under that name."""

    def __init__(self, mnt, seed):
        self.mnt = mnt
        self.chance = random.Random(seed)
        self.durable = {}
        self.begun = {}  # newer ones that may be there
        self.next = 1
        self.lock = threading.Lock()
        self.failure = None
        self.stopping = False
        self.threads = []
        self.reads = self.writes = self.replaced = 0

    def start(self):
        self.stopping = False
        self.threads = [threading.Thread(target=self.run, args=(step,))
                        for step in (self.write_one, self.replace_one, self.read_one)]
        for thread in self.threads:
            thread.start()

    def run(self, step):
        try:
            while not self.stopping:
                step()
        except OSError as error:
            if error.errno not in DAEMON_GONE:
                self.failure = self.failure or Failure(f"{step.__name__}: {error}")
        except Failure as failure:
            self.failure = self.failure or failure

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(60 * PATIENCE)
            if thread.is_alive():
                raise Failure("a worker hangs")
        if self.failure:
            raise self.failure

    def put(self, name, via):
        with self.lock:
            generation, self.next = self.next, self.next + 1
            self.begun.setdefault(name, []).append(generation)
        path = os.path.join(self.mnt, name)
        with open(path + via, "wb") as f:
            f.write(content(generation))
            f.flush()
            os.fsync(f.fileno())
        if via:
            os.rename(path + via, path)
            fd = os.open(self.mnt, os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)
        with self.lock:
            self.durable[name] = generation
            self.begun[name] = [g for g in self.begun[name] if g > generation]

    def write_one(self):
        self.put(f"w{self.chance.randrange(10_000)}.{self.next}", "")
        self.writes += 1
        with self.lock:
            old = sorted(n for n in self.durable if n.startswith("w"))[:-30]
            for name in old:
                del self.durable[name]
        for name in old:
            os.unlink(os.path.join(self.mnt, name))

    def replace_one(self):
        self.put(f"r{self.chance.randrange(8)}", ".new")
        self.replaced += 1

    def read_one(self):
        with self.lock:
            names = sorted(self.durable)
        if not names:
            return time.sleep(0.01)
        name = random.choice(names)
        try:
            with open(os.path.join(self.mnt, name), "rb") as f:
                generation_of(f.read(), name)
            self.reads += 1
        except FileNotFoundError:
            if name.startswith("r"):
                raise Failure(f"{name} is gone") from None

    def check(self):
        for name, generation in self.durable.items():
            path = os.path.join(self.mnt, name)
            try:
                with open(path, "rb") as f:
                    found = generation_of(f.read(), name)
            except FileNotFoundError:
                raise Failure(f"{name} was fsynced and is gone") from None
            if found != generation and found not in self.begun.get(name, []):
                raise Failure(f"{name} is of generation {found}, {generation} was fsynced")


# So slow that a kill hits what follows the survey, too.
SURVEY_RATE = "1M"


def status(volume):
    return json.loads(volume.run("nacre", "key", "status", "--json", volume.mnt)[1])


def mount(volume):
    volume.mount("-o", f"cache={CACHE_MIB}M,dirty={DIRTY_MIB}M")


def check_daemons(volume):
    for pid in volume.daemons():
        check_memory(pid, (CACHE_MIB + DIRTY_MIB) << 20)


def rotate(volume, rate, moves, is_past_survey=False):
    """is_past_survey: waits until all records were read, which precedes a rotation in format 2."""
    volume.run("nacre", "key", "rotate", "--rate", SURVEY_RATE if is_past_survey else rate, "--no-wait",
               *(("--format", "2") if moves else ()), volume.mnt)
    if not is_past_survey:
        return
    while status(volume).get("stage") == "survey":
        time.sleep(0.01)


def check_format_2(volume):
    folder = os.path.join(volume.path, "db")
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            head = file.read(7)
        if head and (head[4], head[6]) != (2, 1):
            raise Failure(f"db/{name} is not a padded file of format 2: {head!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=200 if full_counts() else 10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--move", action="store_true")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    chance = random.Random(arguments.seed)
    with Volume("rotate-daemon") as volume:
        volume.make(*(("--format", "1", "--padding", "padme") if arguments.move else ()))
        old_keyring = os.path.join(volume.work, "keyring.old")
        shutil.copy(os.path.join(volume.path, "keyring"), old_keyring)
        mount(volume)
        work = Work(volume.mnt, arguments.seed)
        for _ in range(25):
            work.write_one()
        rotations = within = 0
        for _ in range(arguments.kills):
            if status(volume)["rotation"] == "none":
                rotate(volume, chance.choice(RATES), arguments.move,
                       arguments.move and chance.random() < 0.7)
                rotations += 1
            work.start()
            time.sleep(chance.uniform(0.01, 0.45))
            check_daemons(volume)
            volume.kill()
            work.stop()
            volume.detach()
            mount(volume)
            within += status(volume)["rotation"] != "none"
            work.check()
        if arguments.kills >= 20 and within == 0:
            raise Failure("no kill fell within a rotation")
        if status(volume)["rotation"] == "none":
            rotate(volume, "1M", arguments.move)
            rotations += 1
        volume.run("nacre", "key", "rotate", "--pause", volume.mnt, expect=(0, 8))
        paused = status(volume)
        volume.run("nacre", "key", "rotate", "--resume", "--rate", "1G", volume.mnt, expect=(0, 8))
        before = (work.writes, work.replaced, work.reads)
        work.start()
        end = time.monotonic() + 120 * PATIENCE
        while status(volume)["rotation"] != "none" or any(
                now <= then for now, then in zip((work.writes, work.replaced, work.reads), before)):
            if time.monotonic() > end:
                raise Failure(f"the rotation does not end, or nothing goes on beside it: "
                              f"{status(volume)}, {before}")
            check_daemons(volume)
            time.sleep(0.1)
        work.stop()
        work.check()
        check_daemons(volume)
        volume.run("nacre", "key", "status", "--verify", volume.mnt)
        volume.unmount()
        volume.run("nacre", "key", "status", "--verify", volume.path)
        volume.fsck("--deep")
        if arguments.move:
            check_format_2(volume)
        for name in ("keyring", "keyring.copy"):
            shutil.copy(old_keyring, os.path.join(volume.path, name))
        refused = volume.mount(expect=None)
        if refused[0] in (0, -9):
            raise Failure("a keyring from before the rotations was taken")
        print(f"{rotations} rotations, {arguments.kills} kills, {within} of them within one, "
              f"{work.writes} files written, {work.replaced} replaced and {work.reads} read beside; "
              f"paused: {paused['rotation']}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
