#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Years of use of an almost full disk, in minutes: files are made, overwritten, cut, punched,
renamed, linked and deleted on a 256 MiB ext4 disk of their own, with new mounts, trims and kill -9
in between, and somebody else who fills the disk now and then.

    soak.py [--seconds S] [--seed N]

After each mount the tree is what soak_model.py says that it may be; fsck.nacre --deep finds
nothing; what is stored stays within 1.25 times what is live after a trim; the daemon's memory stays
within its budgets and 250 MiB; and in the end nothing is left of what was deleted.
The seed is printed; the same seed makes the same choices, though not the same moments.
"""
import argparse
import ctypes
import errno
import json
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import check_memory  # noqa: E402
from loop_disk import LoopDisk  # noqa: E402
from soak_model import CELL, File, Tree  # noqa: E402
from volume import DAEMON_GONE, PATIENCE, Failure, Volume, full_counts  # noqa: E402

DISK_BYTES = 256 << 20
SIZES = [CELL, 4096, 20 * CELL, 65_536, 300 * CELL, 1 << 20, 3 << 20]
# Beside 1.25 times what is live: the headers of the segments that are being filled.
STORED_OVERHEAD_BYTES = 1 << 20
# Beside the segments and the ballast: tables, their log, what ext4 keeps for itself.
DISK_OVERHEAD_BYTES = 32 << 20

# It moves nearly all that the disk holds, a few times if there is little room: on a machine with
# other work this may take minutes, and is no hang.
TRIM_LIMIT_S = 900

libc = ctypes.CDLL(None, use_errno=True)
PUNCH_HOLE_KEEP_SIZE = 3


def punch(fd, offset, length):
    if libc.fallocate(fd, PUNCH_HOLE_KEEP_SIZE, ctypes.c_long(offset), ctypes.c_long(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def says_full(text):
    """Whether a command failed because the disk was full: in Nacre's words, or the system's."""
    return "space" in text or "disk is full" in text


class Soak:
    def __init__(self, volume, disk, chance):
        self.volume, self.disk, self.chance = volume, disk, chance
        self.counts = {}
        self.tree = None
        self.is_growing = True
        self.next_name = 0
        self.budget_bytes = 0
        self.foreign = os.path.join(disk.path, "foreign")  # beside the volume, on its disk

    def count(self, what, more=1):
        self.counts[what] = self.counts.get(what, 0) + more

    # --- Paths and choices.

    def path(self, key):
        parent, name = key
        parts = [name]
        while parent != self.tree.root:
            parent, name = next(k for k, inode in self.tree.names.items() if inode == parent)
            parts.append(name)
        return os.path.join(self.volume.mnt, *reversed(parts))

    def file_keys(self):
        return sorted(k for k, inode in self.tree.names.items() if inode in self.tree.files)

    def folder_keys(self):
        return sorted(k for k, inode in self.tree.names.items() if inode in self.tree.folders)

    def fresh_key(self):
        folders = [self.tree.root] + [self.tree.names[k] for k in self.folder_keys()]
        self.next_name += 1
        return (self.chance.choice(folders), f"n{self.next_name}")

    def data(self, size):
        if self.chance.random() < 0.5:
            return self.chance.randbytes(size)
        return (self.chance.randbytes(48) + b"compressible 123") * (size // 64)

    # --- Changes of content. A change is noted before it is made: a kill may come in between.

    def change(self, key, what, make):
        """what notes the change in the model; make carries it out. ENOSPC leaves the file open."""
        file = self.tree.files[self.tree.names[key]]
        flags = os.O_WRONLY
        sync = self.chance.choice(["", "", "", "", "fsync", "fdatasync"])
        try:
            fd = os.open(self.path(key), flags)
            try:
                what(file)
                make(fd)
                if sync:
                    getattr(os, sync)(fd)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self.count("no space")
            file.is_doubtful = True
            self.is_growing = False
            return
        if sync:
            file.settle()
            self.tree.settle_names()

    def write(self, key, offset, data):
        def make(fd):
            at, rest = offset, data
            while rest:
                done = os.pwrite(fd, rest, at)
                at, rest = at + done, rest[done:]
        self.change(key, lambda file: file.write(offset, data), make)

    def some_file(self):
        keys = self.file_keys()
        return self.chance.choice(keys) if keys else None

    def some_place(self, key):
        size = len(self.tree.files[self.tree.names[key]].current)
        return self.chance.randrange(size // CELL + 1) * CELL

    def overwrite(self):
        key = self.some_file()
        if key:
            for _ in range(self.chance.choice([1, 1, 8])):
                self.write(key, self.some_place(key), self.data(self.chance.choice(SIZES[:5])))

    def append(self):
        key = self.some_file()
        if key:
            file = self.tree.files[self.tree.names[key]]
            if len(file.current) < 6 << 20:
                self.write(key, len(file.current), self.data(self.chance.choice(SIZES[:5])))

    def truncate(self):
        key = self.some_file()
        if not key:
            return
        file = self.tree.files[self.tree.names[key]]
        old = len(file.current)
        size = self.some_place(key) if self.chance.random() < 0.8 else old + 100 * CELL
        doubtful = file.is_doubtful
        self.change(key, lambda f: f.truncate(size), lambda fd: os.ftruncate(fd, size))
        if size <= old and file.is_doubtful and not doubtful:
            raise Failure(f"{self.path(key)}: cut from {old} to {size} bytes: no space")

    def punch(self):
        key = self.some_file()
        if key:
            at, length = self.some_place(key), self.chance.choice(SIZES)
            self.change(key, lambda file: file.punch(at, at + length),
                        lambda fd: punch(fd, at, length))

    # --- Changes of names.

    def step(self, make, *changes):
        """False when the disk is full, which must change nothing."""
        try:
            make()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self.count("no space")
            self.is_growing = False
            return False
        self.tree.step(*changes)
        return True

    def create(self):
        key = self.fresh_key()
        try:
            fd = os.open(self.path(key), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self.count("no space")
            self.is_growing = False
            return
        inode = os.fstat(fd).st_ino
        os.close(fd)
        if inode in self.tree.files or inode in self.tree.folders:
            raise Failure(f"{self.path(key)}: inode number {inode} is in use")
        self.tree.files[inode] = File(inode)
        self.tree.step((key, inode))
        self.write(key, 0, self.data(self.chance.choice(SIZES)))

    def make_folder(self):
        key = self.fresh_key()
        if len(self.folder_keys()) < 20 and self.step(lambda: os.mkdir(self.path(key))):
            inode = os.stat(self.path(key)).st_ino
            self.tree.folders.add(inode)
            self.tree.step((key, inode))

    def step_always(self, make, *changes):
        """A step that needs no space."""
        if not self.step(make, *changes):
            raise Failure(f"{self.path(changes[0][0])} cannot be deleted or renamed: no space")

    def unlink(self, key):
        self.step_always(lambda: os.unlink(self.path(key)), (key, None))

    def delete(self):
        key = self.some_file()
        if key:
            self.unlink(key)

    def remove_folder(self):
        used = {parent for parent, _ in self.tree.names}
        empty = [k for k in self.folder_keys() if self.tree.names[k] not in used]
        if empty:
            key = self.chance.choice(empty)
            self.step_always(lambda: os.rmdir(self.path(key)), (key, None))

    def rename(self):
        keys = self.file_keys()
        if len(keys) < 2:
            return
        one, two = self.chance.sample(keys, 2)
        inode = self.tree.names[one]
        if self.chance.random() < 0.5:
            two = self.fresh_key()
        elif inode == self.tree.names[two]:
            return  # two names of one file: rename does nothing
        # Names wait for the data that they move: on a full disk a file may keep its name for that.
        file = self.tree.files[inode]
        step = self.step if file.changes or file.is_doubtful else self.step_always
        step(lambda: os.rename(self.path(one), self.path(two)), (one, None), (two, inode))

    def rename_folder(self):
        keys = self.folder_keys()
        if keys:
            one, two = self.chance.choice(keys), (self.tree.root, self.fresh_key()[1])
            self.step_always(lambda: os.rename(self.path(one), self.path(two)),
                             (one, None), (two, self.tree.names[one]))

    def link(self):
        one, two = self.some_file(), self.fresh_key()
        if one:
            self.step(lambda: os.link(self.path(one), self.path(two)),
                      (two, self.tree.names[one]))

    # --- The course of things.

    def one_step(self):
        free = os.statvfs(self.volume.mnt)
        free_bytes = free.f_bavail * free.f_frsize
        if free_bytes < 2 << 20:
            self.is_growing = False
        elif free_bytes > DISK_BYTES // 10:
            self.is_growing = True
        steps = [self.overwrite] * 8 + [self.truncate, self.punch, self.rename, self.rename_folder,
                                        self.link, self.make_folder, self.remove_folder,
                                        self.delete, self.append]
        steps += [self.create] * 12 if self.is_growing else [self.delete] * 6
        step = self.chance.choice(steps)
        self.count(step.__name__)
        step()

    def change_foreign(self):
        """Somebody else fills the disk, to the last block or nearly, or makes room again."""
        if os.path.exists(self.foreign):
            os.unlink(self.foreign)
            return
        self.count("disk filled by others")
        with open(self.foreign, "wb") as f:
            info = os.statvfs(self.disk.path)
            size = max(info.f_bavail - self.chance.choice([0, 0, 1000]), 1) * info.f_frsize
            try:
                os.posix_fallocate(f.fileno(), 0, size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def sync_all(self):
        status, text = self.volume.run("nacre", "sync", self.volume.mnt, expect=(0, 8))
        if status == 0:
            self.tree.settle()
        elif not says_full(text):
            raise Failure(f"nacre sync: {text}")
        return status == 0

    def mount(self):
        cache, dirty = self.chance.choice([(16, 8), (64, 32)])
        self.budget_bytes = (cache + dirty) << 20
        self.volume.mount("-o", f"commit={self.chance.choice([1, 5])},cache={cache}M,"
                                f"dirty={dirty}M,space_ratio={self.chance.choice([1.1, 1.25])}")

    def verify(self):
        """All that is there, against the model; it is what counts from now on."""
        found, kinds = {}, {}
        todo = [(self.tree.root, self.volume.mnt)]
        while todo:
            parent, path = todo.pop()
            with os.scandir(path) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    found[(parent, entry.name)] = info.st_ino
                    kinds[info.st_ino] = (entry.path, info)
                    if entry.is_dir():
                        todo.append((info.st_ino, entry.path))
        self.tree.verify_names(found)
        for inode, (path, info) in kinds.items():
            file = self.tree.files.get(inode)
            if file is None:
                continue
            if info.st_nlink != self.tree.link_count(inode):
                raise Failure(f"{path}: {info.st_nlink} links, {self.tree.link_count(inode)} names")
            with open(path, "rb") as f:
                file.verify(f.read(), path)
            self.count("files read and compared")

    def explain(self):
        """After a failure: what the disk and the volume say of themselves."""
        info = os.statvfs(self.disk.path)
        print(f"disk: {info.f_bavail * info.f_frsize} of {info.f_blocks * info.f_frsize} bytes free")
        subprocess.run(["du", "-a", "-b", self.volume.path], check=False)
        if os.path.ismount(self.volume.mnt):
            print(self.stats())

    def stats(self):
        text = self.volume.run("nacre", "stats", "--json", self.volume.mnt)[1]
        return json.loads(text)["stats"]

    def check_space(self, has_room=False):
        """After a trim what is stored is what is live, or little more. Judges nothing where the
        disk is too full for a trim, unless it has_room."""
        if not self.sync_all():
            if has_room:
                raise Failure("no space to sync, on a disk with room")
            return
        status, text = self.volume.run("nacre", "trim", self.volume.mnt, limit_s=TRIM_LIMIT_S,
                                       expect=(0, 8))
        if status != 0:
            if says_full(text) and not has_room:
                self.count("trims without space")
                return
            raise Failure(f"nacre trim: {text}")
        self.count("trims")
        stats = self.stats()
        segments = stats["segments"]
        if segments["stored_bytes"] > 1.25 * segments["live_bytes"] + STORED_OVERHEAD_BYTES:
            raise Failure(f"after a trim {segments['stored_bytes']} bytes are stored for "
                          f"{segments['live_bytes']} live ones")
        files = len(os.listdir(os.path.join(self.volume.path, "segments")))
        if files != segments["segment_count"]:
            raise Failure(f"{files} files in segments/, {segments['segment_count']} are known")
        ballast = os.path.join(self.volume.path, "ballast")
        used = self.disk.used_bytes() - (os.path.getsize(ballast) if os.path.exists(ballast) else 0)
        tables = stats["database"]["table_file_bytes"] + stats["database"]["wal_bytes"]
        if used > segments["stored_bytes"] + tables + DISK_OVERHEAD_BYTES:
            raise Failure(f"{used} bytes of the disk are used for {segments['stored_bytes']} in "
                          f"segments and {tables} in tables")

    def end_round(self, how):
        volume = self.volume
        for pid in volume.daemons():
            check_memory(pid, self.budget_bytes)
        if how == "unmount":
            status, text = volume.unmount(expect=(0, 8))
            if status == 0:
                self.tree.settle()
                volume.wait_for_daemons(60)
                return
            if not says_full(text):
                raise Failure(f"nacre umount: {text}")
        elif how == "sync, then kill":
            self.sync_all()
        elif how in ("trim", "umount"):
            command = subprocess.Popen([os.path.join(volume.bin, "nacre"), how, volume.mnt],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       env=volume.environment)
            time.sleep(self.chance.random() * 0.5)
            volume.kill()
            command.wait(60 * PATIENCE)
        elif how == "kill within a write":
            timer = threading.Timer(0.3 * self.chance.random(), volume.kill)
            timer.start()
            try:
                while True:
                    self.chance.choice([self.overwrite, self.append, self.punch])()
            except OSError as error:
                if error.errno not in DAEMON_GONE:
                    raise
            timer.join()
        volume.kill()
        volume.detach()

    def one_round(self, number, seconds):
        self.mount()
        self.verify()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.one_step()
            if self.chance.random() < 0.003:
                self.sync_all()
            if self.chance.random() < 0.002:
                self.change_foreign()
        if os.path.exists(self.foreign) and self.chance.random() < 0.7:
            self.change_foreign()
        if number % 3 == 0 and not os.path.exists(self.foreign):
            self.check_space()
        how = self.chance.choice(["unmount", "kill", "kill", "sync, then kill", "trim", "umount",
                                  "kill within a write"])
        self.count(f"ended by: {how}")
        self.end_round(how)
        self.volume.fsck("--deep")

    def run(self, seconds):
        self.volume.make()
        self.mount()
        used = self.disk.used_bytes()
        self.tree = Tree(os.stat(self.volume.mnt).st_ino)
        self.volume.unmount()
        end = time.monotonic() + seconds
        number = 0
        while time.monotonic() < end:
            number += 1
            self.one_round(number, min(5, seconds / 4))
        if os.path.exists(self.foreign):
            self.change_foreign()
        if number >= 20 and not self.counts.get("trims"):
            raise Failure("no trim ever had the room to work: what is stored was never judged")
        self.mount()
        self.verify()
        # However short the run was and however full the disk: judged once with room.
        inodes = sorted({self.tree.names[key] for key in self.file_keys()})
        going = set(self.chance.sample(inodes, len(inodes) // 2))
        for key in self.file_keys():
            if self.tree.names[key] in going:
                self.unlink(key)
        self.check_space(has_room=True)
        self.verify()
        for key in self.file_keys():
            self.unlink(key)
        if not self.sync_all():
            raise Failure("an empty volume cannot be synced")
        # The last two checkpoints of the tables are kept, and count as live: let both be of an empty
        # volume.
        for _ in range(2):
            with open(os.path.join(self.volume.mnt, "last"), "w", encoding="utf-8"):
                pass
            os.unlink(os.path.join(self.volume.mnt, "last"))
            self.volume.unmount()
            self.mount()
        self.volume.run("nacre", "trim", self.volume.mnt, limit_s=TRIM_LIMIT_S)
        segments = self.stats()["segments"]
        if segments["stored_bytes"] > STORED_OVERHEAD_BYTES:
            raise Failure(f"all files are deleted, and this is left: {segments}")
        self.volume.unmount()
        self.mount()
        if self.disk.used_bytes() > used + DISK_OVERHEAD_BYTES:
            raise Failure(f"an empty volume takes {self.disk.used_bytes()} bytes, a new one {used}")
        self.volume.unmount()
        self.volume.wait_for_daemons(60)
        self.volume.fsck("--deep")
        print(f"{number} rounds: " +
              ", ".join(f"{what} {n}" for what, n in sorted(self.counts.items())))


def main():
    parser = argparse.ArgumentParser()
    default = os.environ.get("NACRE_SOAK_SECONDS") or (3600 if full_counts() else 25)
    parser.add_argument("--seconds", type=float, default=float(default))
    parser.add_argument("--seed", type=int,
                        default=int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}, {arguments.seconds:.0f} s", flush=True)
    with LoopDisk("soak", DISK_BYTES) as disk, Volume("soak") as volume:
        volume.path = os.path.join(disk.path, "volume")
        soak = Soak(volume, disk, random.Random(arguments.seed))
        try:
            soak.run(arguments.seconds)
        except Failure as failure:
            print(f"FAILED (seed {arguments.seed}): {failure}\n{soak.counts}")
            soak.explain()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
