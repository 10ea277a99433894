#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mount under everything at once: programs that write, read, cut, punch, rename, link, list and
sync, while the volume is compacted, scrubbed, backed up, trimmed and given new keys; then what is
there is compared with what was written, of the mount, of the next mount and of the last backup.

    stress.py [--seconds S] [--seed N] [--options O,…]

It is made for address and thread sanitizers (tools/test.sh --asan, --tsan): a report of any program
fails it. Options of the mount may be added, as io_uring=on where root has switched that on. The
seed is printed; the same seed makes the same choices, not the same moments.
"""
import argparse
import ctypes
import glob
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import Failure, Volume, full_counts, wait_for  # noqa: E402

SIZES = (1, 700, 4096, 65_537, 300_000)
FILE_SIZE_MAX = 2 << 20
FILES_MAX = 24
SHARED_SLICE = 10_007  # no multiple of a chunk or a page: neighbours meet within one
PUNCH_HOLE_KEEP_SIZE = 3
SUPPRESSIONS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support/tsan.supp")
WORKERS = 5
READERS = 2

AT_FDCWD = -100
AT_STATX_FORCE_SYNC = 0x2000
STATX_NLINK = 0x4
STATX_SIZE = 256
STATX_NLINK_AT = 16

libc = ctypes.CDLL(None, use_errno=True)


def links_asked_for(path):
    """The number of links, which the kernel has to ask for."""
    found = ctypes.create_string_buffer(STATX_SIZE)
    if libc.statx(AT_FDCWD, os.fsencode(path), AT_STATX_FORCE_SYNC, STATX_NLINK, found):
        raise Failure(f"statx {path}: {os.strerror(ctypes.get_errno())}")
    return int.from_bytes(found[STATX_NLINK_AT:STATX_NLINK_AT + 4], sys.byteorder)


class Worker:
    """Owns a folder and a slice of the shared file, and knows what both must hold."""

    def __init__(self, number, mnt, seed):
        self.number, self.mnt = number, mnt
        self.chance = random.Random(f"{seed} worker {number}")
        self.folder = os.path.join(mnt, f"worker{number}")
        self.files = {}  # name -> bytearray
        self.attributes = {}  # name -> {xattr: value}
        self.shared = bytearray(SHARED_SLICE)
        self.next_name = 0
        self.counts = {}

    def path(self, name):
        return os.path.join(self.folder, name)

    def some(self):
        return self.chance.choice(sorted(self.files))

    def data(self):
        size = self.chance.choice(SIZES)
        if self.chance.random() < 0.5:
            return self.chance.randbytes(size)
        return (self.chance.randbytes(30) + b"compressible") * (size // 42 + 1)

    def create(self):
        if len(self.files) >= FILES_MAX:
            return self.unlink()
        self.next_name += 1
        name, data = f"f{self.next_name}", self.data()
        with open(self.path(name), "wb") as f:
            f.write(data)
        self.files[name], self.attributes[name] = bytearray(data), {}

    def write(self):
        name = self.some()
        content, data = self.files[name], self.data()
        at = self.chance.randrange(len(content) + 5000)
        if at + len(data) > FILE_SIZE_MAX:
            return
        with open(self.path(name), "r+b", buffering=0) as f:
            if os.pwrite(f.fileno(), data, at) != len(data):
                raise Failure(f"{name}: a short write")
            if self.chance.random() < 0.3:
                getattr(os, self.chance.choice(["fsync", "fdatasync"]))(f.fileno())
        content.extend(bytes(max(0, at + len(data) - len(content))))
        content[at:at + len(data)] = data

    def truncate(self):
        name = self.some()
        content = self.files[name]
        size = self.chance.randrange(min(FILE_SIZE_MAX, len(content) * 2 + 1) + 1)
        os.truncate(self.path(name), size)
        del content[size:]
        content.extend(bytes(size - len(content)))

    def punch(self):
        name = self.some()
        content = self.files[name]
        at, size = self.chance.randrange(len(content) + 1), self.chance.choice(SIZES)
        fd = os.open(self.path(name), os.O_WRONLY)
        try:
            if libc.fallocate(fd, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(at), ctypes.c_long(size)):
                raise Failure(f"fallocate: {os.strerror(ctypes.get_errno())}")
        finally:
            os.close(fd)
        size = min(size, len(content) - at)
        content[at:at + size] = bytes(size)

    def rename(self):
        """Over another file half of the time, which may be open for reading elsewhere."""
        one = self.some()
        self.next_name += 1
        two = self.some() if self.chance.random() < 0.5 else f"f{self.next_name}"
        os.rename(self.path(one), self.path(two))
        if one != two:
            self.files[two] = self.files.pop(one)
            self.attributes[two] = self.attributes.pop(one)

    def unlink(self):
        if len(self.files) > 2:
            name = self.some()
            os.unlink(self.path(name))
            del self.files[name], self.attributes[name]

    def set_attribute(self):
        name, key = self.some(), f"user.{self.chance.randrange(4)}"
        known = self.attributes[name]
        if key in known and self.chance.random() < 0.3:
            os.removexattr(self.path(name), key)
            del known[key]
        else:
            known[key] = self.chance.randbytes(self.chance.choice([0, 3, 3000]))
            os.setxattr(self.path(name), key, known[key])

    def names(self):
        """A folder, a link in it, a symbolic link, new rights and times; then none of it."""
        name = self.some()
        folder = self.path("folder")
        os.mkdir(folder)
        self.link(name, os.path.join(folder, "link"))
        os.symlink(name, os.path.join(folder, "symlink"))
        os.chmod(self.path(name), self.chance.choice([0o600, 0o644]))
        os.utime(self.path(name), (1, self.chance.randrange(1 << 31)))
        if sorted(os.listdir(folder)) != ["link", "symlink"]:
            raise Failure(f"{folder} holds {os.listdir(folder)}")
        for entry in ("link", "symlink"):
            os.unlink(os.path.join(folder, entry))
        os.rmdir(folder)

    def link(self, name, to):
        try:
            os.link(self.path(name), to)
        except FileNotFoundError:
            # A listing that somebody else asked for can leave the kernel with one link too few
            # (docs/KERNEL.md): of one it believes that there is none, until it asks again.
            if links_asked_for(self.path(name)) != 1:
                raise
            os.link(self.path(name), to)
            self.count("links that the kernel forgot")

    def count(self, what):
        self.counts[what] = 1 + self.counts.get(what, 0)

    def write_shared(self):
        """Its own bytes of a file in which all workers write."""
        data = self.chance.randbytes(self.chance.randrange(1, 3000))
        at = self.chance.randrange(SHARED_SLICE - len(data))
        fd = os.open(os.path.join(self.mnt, "shared"), os.O_WRONLY)
        try:
            os.pwrite(fd, data, self.number * SHARED_SLICE + at)
            if self.chance.random() < 0.2:
                os.fsync(fd)
        finally:
            os.close(fd)
        self.shared[at:at + len(data)] = data

    def read(self):
        name = self.some()
        content = self.files[name]
        at, size = self.chance.randrange(len(content) + 1), self.chance.choice(SIZES)
        with open(self.path(name), "rb", buffering=0) as f:
            if os.pread(f.fileno(), size, at) != content[at:at + size]:
                raise Failure(f"{name} at {at}: not what was written")

    def list(self):
        if self.listing() == sorted(self.files):
            return
        again = self.listing()
        raise Failure(f"{self.folder} listed something else than {sorted(self.files)}, then {again}")

    def listing(self):
        return sorted(os.listdir(self.folder))

    STEPS = {create: 4, write: 8, truncate: 3, punch: 2, rename: 3, unlink: 1, set_attribute: 3,
             names: 1, write_shared: 3, read: 5, list: 2}

    def begin(self):
        os.mkdir(self.folder)
        for _ in range(4):
            self.create()

    def step(self):
        step = self.chance.choices(list(self.STEPS), list(self.STEPS.values()))[0]
        self.count(step.__name__)
        step(self)

    def check(self, mnt):
        folder = os.path.join(mnt, f"worker{self.number}")
        if sorted(os.listdir(folder)) != sorted(self.files):
            raise Failure(f"{folder} holds {sorted(os.listdir(folder))}, "
                          f"not {sorted(self.files)}")
        for name, content in self.files.items():
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                if f.read() != content:
                    raise Failure(f"{path}: not what was written")
            found = {key: os.getxattr(path, key) for key in os.listxattr(path)
                     if key.startswith("user.")}
            if found != self.attributes[name]:
                raise Failure(f"{path}: not the attributes that were set")
        with open(os.path.join(mnt, "shared"), "rb") as f:
            f.seek(self.number * SHARED_SLICE)
            if f.read(SHARED_SLICE) != self.shared:
                raise Failure(f"shared: not what worker {self.number} wrote")


class Reader:
    """Reads what others are changing: what it finds is somebody's, and nothing but gone."""

    def __init__(self, number, mnt, seed):
        self.mnt, self.chance = mnt, random.Random(f"{seed} reader {number}")
        self.counts = {}

    def step(self):
        folder = os.path.join(self.mnt, f"worker{self.chance.randrange(WORKERS)}")
        try:
            with os.scandir(folder) as entries:
                paths = [entry.path for entry in entries]
            os.statvfs(folder)
            path = self.chance.choice(paths)
            os.stat(path)
            os.listxattr(path)
            with open(path, "rb") as f:
                f.read()
            self.counts["files read"] = self.counts.get("files read", 0) + 1
        except (FileNotFoundError, IndexError, IsADirectoryError):
            pass


class Stress:
    def __init__(self, volume, seed):
        self.volume = volume
        self.chance = random.Random(f"{seed} commands")
        self.workers = [Worker(number, volume.mnt, seed) for number in range(WORKERS)]
        self.readers = [Reader(number, volume.mnt, seed) for number in range(READERS)]
        self.stopping = False
        self.failure = None
        self.threads = []
        self.counts = {}
        self.backup_path = os.path.join(volume.work, "backup")

    def run(self, member):
        try:
            while not self.stopping:
                member.step()
        except (Failure, OSError) as failure:
            self.failure = self.failure or Failure(f"{type(member).__name__}: {failure}")

    def start(self):
        self.stopping = False
        self.threads = [threading.Thread(target=self.run, args=(member,))
                        for member in self.workers + self.readers]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join(300)
            if thread.is_alive():
                raise Failure("a system call hangs")
        if self.failure:
            raise self.failure

    # --- Commands beside the work. What is under way already is refused: that is counted apart.

    def nacre(self, name, *arguments, expect=(0, 8)):
        status, text = self.volume.run("nacre", *arguments, limit_s=600, expect=expect)
        name = name if status == 0 else f"{name} (refused)"
        self.counts[name] = self.counts.get(name, 0) + 1
        return status, text

    def state(self, *arguments):
        return json.loads(self.volume.run("nacre", *arguments, "--json", self.volume.mnt,
                                          limit_s=600)[1])

    def rate(self):
        """One lane in small pieces, which is there to be paused; or several side by side."""
        return self.chance.choice(["4M", "1G"])

    def scrub(self):
        self.nacre("scrub", "scrub", "--background", "--rate", self.rate(), self.volume.mnt)

    def pause_scrub(self):
        self.nacre("scrub --pause", "scrub", "--pause", self.volume.mnt)
        self.nacre("scrub --resume", "scrub", "--resume", "--rate", "1G", self.volume.mnt)

    def rotate(self):
        self.nacre("rotate", "key", "rotate", "--rate", self.rate(), "--no-wait", self.volume.mnt,
                   expect=(0, 8, 32))

    def pause_rotation(self):
        self.nacre("rotate --pause", "key", "rotate", "--pause", self.volume.mnt)
        self.nacre("rotate --resume", "key", "rotate", "--resume", "--rate", "1G", self.volume.mnt)

    def backup(self):
        """Onto the last one, unless the keys were rotated in between."""
        status, text = self.nacre("backup", "backup", self.volume.mnt, self.backup_path)
        if status == 8 and "rotated" in text:
            self.backup_path += "+"
            self.nacre("backup", "backup", self.volume.mnt, self.backup_path, expect=(0,))
        elif status != 0:
            raise Failure(f"backup: {text}")

    def trim(self):
        self.nacre("trim", "trim", self.volume.mnt, expect=(0,))

    def sync(self):
        self.nacre("sync", "sync", self.volume.mnt, expect=(0,))

    def stats(self):
        self.state("stats")
        self.nacre("stats", "stats", self.volume.mnt, expect=(0,))

    COMMANDS = (rotate, scrub, pause_scrub, trim, pause_rotation, backup, sync, stats)

    def round(self, seconds):
        """All commands at least once, in random order, while everybody works."""
        end = time.monotonic() + seconds
        self.start()
        try:
            first = True
            while (first or time.monotonic() < end) and not self.failure:
                for command in self.chance.sample(self.COMMANDS, len(self.COMMANDS)):
                    if self.failure or (not first and time.monotonic() >= end):
                        break
                    command(self)
                    time.sleep(self.chance.uniform(0, 0.3))
                first = False
        finally:
            self.stop()

    def check(self, mnt):
        for worker in self.workers:
            worker.check(mnt)

    def settle(self):
        """The rotation and the scrub that go on come to their ends."""
        self.pause_rotation()
        self.pause_scrub()
        wait_for(lambda: self.state("key", "status")["rotation"] != "running", 600,
                 "the rotation does not end")
        wait_for(lambda: self.state("scrub", "--status")["state"] != "running", 600,
                 "the scrub does not end")
        if self.state("stats")["stats"]["health"] != "ok":
            raise Failure(f"health: {self.state('stats')['stats']['health']}")


def stress(volume, seconds, seed, more_options):
    volume.make()
    options = ("-o", ",".join(["cache=4M,dirty=4M,commit=1,space_ratio=1.05"] + more_options))
    volume.mount(*options)
    with open(os.path.join(volume.mnt, "shared"), "wb") as f:
        f.truncate(WORKERS * SHARED_SLICE)
    this = Stress(volume, seed)
    for worker in this.workers:
        worker.begin()
    for number in range(2):
        this.round(seconds / 2)
        this.check(volume.mnt)
        if number == 1:
            this.settle()
            this.backup()
        volume.unmount()
        volume.wait_for_daemons(120)
        volume.fsck("--deep", limit_s=600)
        volume.mount(*options)
        this.check(volume.mnt)
    volume.unmount()
    volume.wait_for_daemons(120)
    for name in ("rotate", "scrub", "backup", "trim"):
        if name not in this.counts:
            raise Failure(f"{name} never ran: {this.counts}")
    # The backup was made after the last change: it holds the same.
    volume.path = this.backup_path
    volume.fsck("--deep", limit_s=600)
    volume.mount("-o", "ro")
    this.check(volume.mnt)
    volume.unmount()
    volume.wait_for_daemons(120)
    steps = {}
    for member in this.workers + this.readers:
        for name, count in member.counts.items():
            steps[name] = steps.get(name, 0) + count
    return ", ".join(f"{name} {count}" for name, count in (steps | this.counts).items())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600.0 if full_counts() else 8.0)
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9))
    parser.add_argument("--options", type=lambda text: text.split(","), default=[])
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.seconds:.0f} s", flush=True)
    with Volume("stress") as volume:
        reports = os.path.join(volume.work, "sanitizer")
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
            words = [word for word in volume.environment.get(name, "").split(":")
                     if word and not word.startswith("log_path=")]
            if name == "TSAN_OPTIONS" and not words:
                words = [f"suppressions={SUPPRESSIONS}", "history_size=7"]
            volume.environment[name] = ":".join(words + [f"log_path={reports}"])
        try:
            done = stress(volume, arguments.seconds, arguments.seed, arguments.options)
        finally:
            found = sorted(glob.glob(reports + ".*"))
            for report in found:
                with open(report, encoding="utf-8", errors="replace") as f:
                    print(f"--- {report}\n{f.read()[:20_000]}")
        if found:
            raise Failure(f"{len(found)} sanitizer reports")
        print(done)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
