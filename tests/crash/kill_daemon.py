#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon in the middle of work, at random moments, again and again on one volume.

    kill_daemon.py [--kills N] [--seed S]

After each kill: fsck.nacre finds nothing, the volume mounts, and what was promised holds: all that
was fsynced is there; what replaced a file by rename is the old or the new file, whole; names are as
they were after some step since the last durable one; nothing holds bytes that nobody wrote.
The seed is printed; the same seed makes the same work, though not the same moments.
"""
import argparse
import hashlib
import os
import random
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import DAEMON_GONE, PATIENCE, Failure, Volume, full_counts  # noqa: E402


def fsync_path(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


class Log:
    """Grows at its end. What was synced stays; other bytes are those of the stream, or zeros."""

    def __init__(self, folder, chance):
        self.path = os.path.join(folder, "log")
        self.chance = chance
        self.durable = None  # None: the file may be missing
        self.tail = b""      # written since
        self.islands = []    # what O_DSYNC promised of the tail: (start, end) in the file

    def settle(self):
        if self.durable is None and not self.tail:
            return  # no step was made yet, so there is no file
        self.durable = (self.durable or b"") + self.tail
        self.tail, self.islands = b"", []

    def step(self):
        sync = self.chance.choice(["", "", "fsync", "fdatasync", "dsync"])
        piece = self.chance.randbytes(self.chance.choice([1, 100, 4096, 5000, 70_000, 300_000]))
        flags = os.O_DSYNC if sync == "dsync" else 0
        fd = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | flags, 0o644)
        try:
            start = len(self.durable or b"") + len(self.tail)
            self.tail += piece
            write_all(fd, piece)
            if sync == "fsync":
                os.fsync(fd)
            elif sync == "fdatasync":
                os.fdatasync(fd)
            if sync in ("fsync", "fdatasync"):
                self.settle()
            elif sync == "dsync":  # says nothing about what was written before it
                self.islands.append((start, start + len(piece)))
        finally:
            os.close(fd)

    def verify(self):
        durable = self.durable or b""
        written = durable + self.tail
        try:
            with open(self.path, "rb") as f:
                found = f.read()
        except FileNotFoundError:
            if self.durable is not None or self.islands:
                raise Failure(f"{self.path}: synced, and gone") from None
            self.tail = b""
            return
        if len(found) < len(durable):
            raise Failure(f"{self.path}: {len(durable)} bytes were synced, {len(found)} are left")
        if len(found) > len(written):
            raise Failure(f"{self.path}: {len(found)} bytes, {len(written)} were written")
        if found[:len(durable)] != durable:
            raise Failure(f"{self.path}: synced bytes changed")
        for start, end in self.islands:
            if found[start:end] != written[start:end]:
                raise Failure(f"{self.path}: a synchronous write of {end - start} bytes at {start} "
                              f"is lost; the file has {len(found)} bytes")
        for at in range(len(durable), len(found), 512):
            piece, wanted = found[at:at + 512], written[at:at + min(512, len(found) - at)]
            if piece != wanted and any(a not in (b, 0) for a, b in zip(piece, wanted)):
                raise Failure(f"{self.path}: bytes near {at} were never written")
        self.durable, self.tail, self.islands = found, b"", []
        if len(found) > 3_000_000:
            os.truncate(self.path, 0)
            fsync_path(self.path)
            self.durable = b""


class Replaced:
    """Replaced as a whole by rename, with and without fsync: old or new, never a mixture."""
    HEAD = struct.Struct("<QI32s")

    def __init__(self, folder, chance):
        self.path = os.path.join(folder, "replaced")
        self.chance = chance
        self.durable = 0  # version; 0: the file may be missing
        self.attempted = 0

    def settle(self):
        self.durable = self.attempted

    def step(self):
        self.attempted += 1
        body = self.chance.randbytes(self.chance.choice([0, 10, 4000, 65_536, 200_000, 700_000]))
        digest = hashlib.sha256(body).digest()
        temporary = self.path + ".new"
        fd = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o644)
        try:
            write_all(fd, self.HEAD.pack(self.attempted, len(body), digest) + body)
            if self.chance.random() < 0.4:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, self.path)
        sync = self.chance.choice(["", "", "folder", "file"])
        if sync:
            fsync_path(self.path if sync == "file" else os.path.dirname(self.path))
            self.durable = self.attempted

    def verify(self):
        try:
            with open(self.path, "rb") as f:
                found = f.read()
        except FileNotFoundError:
            if self.durable:
                raise Failure(f"{self.path}: version {self.durable} was synced, it is gone") \
                    from None
            self.attempted = 0
            return
        if len(found) < self.HEAD.size:
            raise Failure(f"{self.path}: {len(found)} bytes are neither the old file nor the new")
        version, size, digest = self.HEAD.unpack(found[:self.HEAD.size])
        body = found[self.HEAD.size:]
        if len(body) != size or hashlib.sha256(body).digest() != digest:
            raise Failure(f"{self.path}: version {version} is not whole: {len(body)} bytes of "
                          f"{size}")
        if not self.durable <= version <= self.attempted:
            raise Failure(f"{self.path}: version {version}, expected {self.durable} to "
                          f"{self.attempted}")
        # What was attempted and did not come through is over: a later settle() must not claim it.
        self.durable = self.attempted = version


class Blocks:
    """Blocks overwritten in place: each one is the synced one or one written since."""
    COUNT, SIZE = 200, 4096

    def __init__(self, folder, chance):
        self.path = os.path.join(folder, "blocks")
        self.chance = chance
        self.allowed = [{0} for _ in range(self.COUNT)]  # versions; 0: zeros, or past the end
        self.version = 0

    def settle(self):
        self.allowed = [{max(each)} for each in self.allowed]

    def block(self, index, version):
        stamp = struct.pack("<QQ", index, version)
        return (stamp + hashlib.sha256(stamp).digest() * 128)[:self.SIZE]

    def step(self):
        fd = os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o644)
        try:
            for _ in range(self.chance.choice([1, 1, 5, 30])):
                index = self.chance.randrange(self.COUNT)
                run = min(self.chance.choice([1, 1, 1, 16, 40]), self.COUNT - index)
                self.version += 1
                for each in range(index, index + run):
                    self.allowed[each].add(self.version)
                os.pwrite(fd, b"".join(self.block(each, self.version)
                                       for each in range(index, index + run)),
                          index * self.SIZE)
            if self.chance.random() < 0.6:
                (os.fsync if self.chance.random() < 0.5 else os.fdatasync)(fd)
                self.settle()
        finally:
            os.close(fd)

    def verify(self):
        try:
            with open(self.path, "rb") as f:
                found = f.read()
        except FileNotFoundError:
            found = b""
        for index in range(self.COUNT):
            piece = found[index * self.SIZE:(index + 1) * self.SIZE]
            version = 0
            if piece.strip(b"\0"):
                version = struct.unpack("<QQ", piece[:16])[1]
                if piece != self.block(index, version):
                    raise Failure(f"{self.path}: block {index} is no block that was written")
            if version not in self.allowed[index]:
                raise Failure(f"{self.path}: block {index} has version {version}, expected one of "
                              f"{sorted(self.allowed[index])}")
            self.allowed[index] = {version}


class Names:
    """Names come and go; after a crash they are as after some step since the last durable one."""

    def __init__(self, folder, chance):
        self.folder = os.path.join(folder, "names")
        self.chance = chance
        self.states = [None]  # since the last durable one; None: the folder itself is missing
        self.next_id = 0

    def state(self):
        return self.states[-1]

    def push(self, change):
        state = dict(self.state())
        change(state)
        self.states.append(state)

    def settle(self):
        self.states = self.states[-1:]

    def at(self, name):
        return os.path.join(self.folder, name)

    def step(self):
        if self.state() is None:
            self.states.append({})
            os.mkdir(self.folder)
            return
        files = sorted(n for n, i in self.state().items() if i != "folder")
        folders = sorted(n for n, i in self.state().items() if i == "folder")
        fresh = f"n{self.chance.randrange(10_000)}"
        while fresh in self.state():
            fresh += "x"
        kind = self.chance.choice(["create"] * 4 + ["sync-create"] * 2 + ["unlink"] * 3 +
                                  ["rename", "over", "link", "mkdir", "rmdir", "sync"])
        if kind in ("create", "sync-create") and len(files) < 300:
            self.next_id += 1
            mine = self.next_id
            self.push(lambda s: s.update({fresh: mine}))
            # The number is the content where the content is promised, else nothing is written.
            fd = os.open(self.at(fresh), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            try:
                if kind == "sync-create":
                    write_all(fd, str(mine).encode())
                    os.fsync(fd)
                    self.settle()
            finally:
                os.close(fd)
        elif kind == "unlink" and files:
            name = self.chance.choice(files)
            self.push(lambda s: s.pop(name))
            os.unlink(self.at(name))
        elif kind == "rename" and files:
            name = self.chance.choice(files + folders)
            self.push(lambda s: s.update({fresh: s.pop(name)}))
            os.rename(self.at(name), self.at(fresh))
        elif kind == "over" and len(files) > 1:
            one, two = self.chance.sample(files, 2)
            if self.state()[one] == self.state()[two]:
                return  # two names of one file: rename does nothing
            self.push(lambda s: s.update({two: s.pop(one)}))
            os.rename(self.at(one), self.at(two))
        elif kind == "link" and files:
            name = self.chance.choice(files)
            self.push(lambda s: s.update({fresh: s[name]}))
            os.link(self.at(name), self.at(fresh))
        elif kind == "mkdir":
            self.push(lambda s: s.update({fresh: "folder"}))
            os.mkdir(self.at(fresh))
        elif kind == "rmdir" and folders:
            name = self.chance.choice(folders)
            self.push(lambda s: s.pop(name))
            os.rmdir(self.at(name))
        elif kind == "sync":
            fsync_path(self.folder)
            self.settle()

    def verify(self):
        if not os.path.isdir(self.folder):
            if None not in self.states:
                raise Failure(f"{self.folder}: synced, and gone")
            self.states = [None]
            return
        kinds, links, contents, inodes = {}, {}, {}, {}
        for name in os.listdir(self.folder):
            info = os.lstat(self.at(name))
            kinds[name] = os.path.isdir(self.at(name))
            links[name], inodes[name] = info.st_nlink, info.st_ino
            if not kinds[name]:
                with open(self.at(name), "rb") as f:
                    contents[name] = f.read().decode(errors="replace")

        def fits(state):
            if state is None or set(state) != set(kinds):
                return False
            for name, mine in state.items():
                if (mine == "folder") != kinds[name]:
                    return False
                if mine != "folder":
                    mates = [n for n in state if state[n] == mine]
                    if contents[name] not in ("", str(mine)) or links[name] != len(mates) or \
                            any(inodes[n] != inodes[name] for n in mates):
                        return False
            return True

        for state in reversed(self.states):
            if fits(state):
                self.states = [state]
                return
        last = self.states[-1] or {}
        raise Failure(f"{self.folder}: the names fit no step of {len(self.states)}: "
                      f"missing {sorted(set(last) - set(kinds))[:8]}, "
                      f"more {sorted(set(kinds) - set(last))[:8]}")


class Worker(threading.Thread):
    """Works on things of its own until the daemon is gone."""

    def __init__(self, things, chance):
        super().__init__(daemon=True)
        self.things, self.chance, self.error, self.steps = things, chance, None, 0
        self.stopping = False

    def run(self):
        try:
            while not self.stopping:
                self.chance.choice(self.things).step()
                self.steps += 1
        except OSError as error:
            if error.errno not in DAEMON_GONE:
                self.error = error
        except Exception as error:  # pylint: disable=broad-except
            self.error = error


def finish(workers):
    for worker in workers:
        worker.stopping = True
    for worker in workers:
        worker.join(60 * PATIENCE)
        if worker.is_alive():
            raise Failure("a system call hangs")
        if worker.error is not None:
            raise Failure(f"before the kill: {worker.error!r}")


def one_round(volume, workers_things, chance, number):
    moment = chance.choice(["work"] * 7 + ["mount", "unmount", "after sync"])
    options = chance.choice([[], ["-o", "commit=1"]])
    volume.mount(*options)
    if moment != "mount":
        workers = [Worker(things, random.Random(chance.random())) for things in workers_things]
        for worker in workers:
            worker.start()
        time.sleep(chance.choice([0.02, 0.1, 0.4, 1.0, 2.0]) * (0.5 + chance.random()))
        if not all(worker.is_alive() for worker in workers):
            raise Failure(f"work failed before the kill: {[w.error for w in workers]}")
        if moment == "unmount":
            # The daemon dies while it finishes.
            finish(workers)
            command = subprocess.Popen([os.path.join(volume.bin, "nacre"), "umount", volume.mnt],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=volume.environment)
            time.sleep(chance.random() * 0.2)
            volume.kill()
            command.wait(60 * PATIENCE)
        elif moment == "after sync":
            finish(workers)
            volume.run("nacre", "sync", volume.mnt)
            for things in workers_things:
                for thing in things:
                    thing.settle()
            volume.kill()
        else:
            volume.kill()
            finish(workers)
    else:
        workers = []
        volume.kill()
    volume.detach()
    volume.fsck()
    volume.mount()
    for things in workers_things:
        for thing in things:
            thing.verify()
    if chance.random() < 0.3:
        # Verified is not yet durable again: a second crash right after must keep it.
        volume.kill()
        volume.detach()
        volume.mount()
        for things in workers_things:
            for thing in things:
                thing.verify()
    volume.unmount()
    volume.wait_for_daemons(60)
    volume.fsck("--deep")
    print(f"kill {number}: {moment}, {sum(w.steps for w in workers)} steps before it", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50 if full_counts() else 7)
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.kills} kills (NACRE_SEED repeats it)", flush=True)
    chance = random.Random(options.seed)
    with Volume("kill") as volume:
        volume.make()
        volume.mount()
        workers_things = []
        for number in range(3):
            folder = os.path.join(volume.mnt, f"worker{number}")
            os.mkdir(folder)
            fsync_path(folder)
            workers_things.append([kind(folder, random.Random(chance.random()))
                                   for kind in (Log, Replaced, Blocks, Names)])
        volume.unmount()
        volume.wait_for_daemons(60)
        try:
            for number in range(options.kills):
                one_round(volume, workers_things, chance, number)
        except Failure as failure:
            print(f"FAILED: seed {options.seed}, kill {number}: {failure}")
            raise
        print(f"{options.kills} kills survived")


if __name__ == "__main__":
    main()
