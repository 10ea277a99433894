#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon's peak resident size in each step of everyday work, with the budgets that a mount has
by default: each must stay below the bound. More bytes go through than the budgets hold, and nothing
is given back between steps but what the daemon gives back by itself.

    resident_size.py [--bound-mib N]
"""
import argparse
import contextlib
import os
import random
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import is_instrumented, peak_bytes, reset_peak  # noqa: E402
from volume import PATIENCE, Failure, Volume, skip_part  # noqa: E402

BOUND_MIB = 600
MIB = 1 << 20
# More than the budgets of clean chunks and of dirty bytes together.
LARGE_MIB = 640
SMALL_FILES = 3000
ENTRIES = 20_000
RANDOM_OPERATIONS = 3000
RANDOM_SIZES = [4096, 65_536]


class Steps:
    def __init__(self, volume, bound_mib):
        self.volume, self.bound_mib = volume, bound_mib
        self.peaks = {}

    @contextlib.contextmanager
    def step(self, name):
        """One daemon serves all of it."""
        pid = self.volume.daemons()[0]
        reset_peak(pid)
        yield
        self.volume.run("nacre", "sync", self.volume.mnt)
        if self.volume.daemons() != [pid]:
            raise Failure(f"{name}: it was another daemon that served the end of it")
        self.peaks[name] = peak_bytes(pid) // MIB
        print(f"{name}: {self.peaks[name]} MiB", flush=True)
        if self.peaks[name] > self.bound_mib and not is_instrumented(pid):
            raise Failure(f"{name}: the daemon took {self.peaks[name]} MiB, "
                          f"{self.bound_mib} are allowed")

    def mount_anew(self):
        self.volume.unmount()
        self.volume.wait_for_daemons(60)
        self.volume.mount()


def piece_of(number, noise):
    """A MiB, a third of it noise; each is another one."""
    text = number.to_bytes(8, "little") * (MIB // 12)
    return text + noise[number % 7:][:MIB - len(text)]


def write_large(path, noise):
    with open(path, "wb", buffering=0) as f:
        for number in range(LARGE_MIB):
            f.write(piece_of(number, noise))


def read_large(path, noise):
    with open(path, "rb", buffering=0) as f:
        for number in range(LARGE_MIB):
            if f.read(MIB) != piece_of(number, noise):
                raise Failure(f"MiB {number} of the large file was read as another one")


def make_archive(folder, noise):
    """Small files in folders of 50; the path of the archive."""
    tree = os.path.join(folder, "tree")
    sizes = random.Random(1)
    for i in range(SMALL_FILES):
        place = os.path.join(tree, str(i // 50))
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, f"file {i}"), "wb") as f:
            f.write(noise[i:][:sizes.randrange(40_000)])
    archive = os.path.join(folder, "tree.tar")
    subprocess.run(["tar", "-c", "-f", archive, "-C", folder, "tree"], check=True)
    return archive


def list_all(folder):
    count = 0
    for place, _, names in os.walk(folder):
        for name in names:
            count += os.lstat(os.path.join(place, name)).st_nlink
    return count


def forget_names():
    """So that the daemon is asked again; its own memory stays as it is."""
    if os.getuid() == 0:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("2")
    else:
        skip_part("resident_size, names that the kernel forgot", "only root makes it forget")


RANDOM_CLIENT = """
import os, random, sys
path, seed, count, size_bytes, *sizes = sys.argv[1], *map(int, sys.argv[2:])
chance = random.Random(seed)
fd = os.open(path, os.O_RDWR)
for i in range(count):
    size = chance.choice(sizes)
    at = chance.randrange(size_bytes // size) * size
    if chance.random() < 0.5:
        assert len(os.pread(fd, size, at)) == size
    else:
        os.pwrite(fd, os.urandom(size), at)
    if i % 500 == 499:
        os.fsync(fd)
os.close(fd)
"""


def random_access(path):
    clients = [subprocess.Popen([sys.executable, "-c", RANDOM_CLIENT, path, str(seed),
                                 str(RANDOM_OPERATIONS // 2), str(LARGE_MIB * MIB),
                                 *map(str, RANDOM_SIZES)]) for seed in range(2)]
    if any([client.wait(120 * PATIENCE) != 0 for client in clients]):
        raise Failure("random reads and writes failed")


def work(volume, steps):
    noise = os.urandom(MIB + 64)
    archive = make_archive(volume.work, noise)
    large = os.path.join(volume.mnt, "large")
    tree = os.path.join(volume.mnt, "tree")
    many = os.path.join(volume.mnt, "many")
    volume.mount()
    with steps.step("write a large file"):
        write_large(large, noise)
    steps.mount_anew()
    with steps.step("read it cold"):
        read_large(large, noise)
    with steps.step("unpack small files"):
        subprocess.run(["tar", "-x", "-f", archive, "-C", volume.mnt], check=True)
    with steps.step("make many entries"):
        os.mkdir(many)
        for i in range(ENTRIES):
            os.mknod(os.path.join(many, f"entry {i}"), 0o100600)
    forget_names()
    with steps.step("list all"):
        count = list_all(volume.mnt)
    if count != 1 + SMALL_FILES + ENTRIES:
        raise Failure(f"{count} files are listed")
    with steps.step("read and write at random"):
        random_access(large)
    with steps.step("remove all"):
        for path in (tree, many):
            shutil.rmtree(path)
        os.unlink(large)
    if os.listdir(volume.mnt):
        raise Failure(f"{os.listdir(volume.mnt)} are left")
    volume.unmount()
    volume.wait_for_daemons(60)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bound-mib", type=int, default=BOUND_MIB)
    arguments = parser.parse_args()
    with Volume("resident-size") as volume:
        volume.make()
        try:
            work(volume, Steps(volume, arguments.bound_mib))
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
