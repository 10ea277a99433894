#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory and threads of the daemon beside those of gocryptfs and securefs, on the same work: a large
file copied in, small ones unpacked, all of it read by a fresh mount. Prints a table; those
that are not installed are left out with a word.

    peer_memory.py [--copies N]     how often the corpus file is in the large one (default 8)
                   [--files N]      how many small files there are (default 4,000)

Each with its defaults. Resident memory is looked at every 20 ms; the peak is the kernel's.
"""
import argparse
import contextlib
import hashlib
import io
import os
import random
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import check_memory, peak_bytes, resident_bytes, status_of  # noqa: E402
from volume import PATIENCE, Failure, Volume, skip_part, wait_for  # noqa: E402

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../.."))
CORPUS_FILE = os.path.join(ROOT, "../shared/corpus/dickens.zip")
BUDGET_BYTES = 512 << 20  # the defaults for clean and for dirty chunks
STEPS = ["mounted", "large file in", "small files in", "all read, fresh mount"]


class Peer:
    """Another file system: how it is made and mounted. Its daemon is found by its mount point."""

    def __init__(self, work, name, make, mount):
        self.name, self.make_command, self.mount_command = name, make, mount
        self.back, self.mnt = os.path.join(work, name), os.path.join(work, name + "-mnt")
        os.mkdir(self.back)
        os.mkdir(self.mnt)

    def command(self, words):
        words = [word.format(back=self.back, mnt=self.mnt) for word in words]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120 * PATIENCE, check=False)
        if done.returncode != 0:
            raise Failure(f"{' '.join(words)}: {done.stdout.decode(errors='replace')[-500:]}")

    def make(self):
        self.command(self.make_command)

    def mount(self):
        self.command(self.mount_command)
        wait_for(lambda: os.path.ismount(self.mnt), 60, f"{self.name} is not mounted")

    def daemons(self):
        found = []
        for number in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{number}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
                if self.mnt.encode() in words and self.name.encode() in os.path.basename(words[0]):
                    found.append(int(number))
        return found

    def unmount(self):
        subprocess.run(["fusermount3", "-u", self.mnt], check=True, timeout=120 * PATIENCE)
        wait_for(lambda: not self.daemons(), 120, f"the daemon of {self.name} is still there")

    def detach(self):
        if os.path.ismount(self.mnt):
            subprocess.run(["fusermount3", "-uz", self.mnt], check=False)


class Watch:
    """The most of what is looked at while it is entered."""

    def __init__(self, pid):
        self.pid, self.resident, self.threads = pid, 0, 0
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while True:
            self.resident = max(self.resident, resident_bytes(self.pid))
            self.threads = max(self.threads, int(status_of(self.pid)["Threads"]))
            if self.is_over.wait(0.02):
                return

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def __str__(self):
        return f"{self.resident >> 20}, {self.threads}"


def make_sources(work, copies, file_count):
    plain = os.path.join(work, "large")
    if os.path.exists(CORPUS_FILE):
        with zipfile.ZipFile(CORPUS_FILE) as archive:
            content = archive.read(archive.namelist()[0])
    else:
        skip_part("peer_memory, the corpus file", f"there is no {CORPUS_FILE}; made text instead")
        content = b"".join(b"%x words and words\n" % (i * i) for i in range(500_000))
    with open(plain, "wb") as f:
        for _ in range(copies):
            f.write(content)
    chance = random.Random(1)
    tree = os.path.join(work, "tree.tar")
    with tarfile.open(tree, "w") as archive:
        for i in range(file_count):
            info = tarfile.TarInfo(f"tree/{i % 40}/{i}")
            start, info.size = chance.randrange(len(content) - 40_000), chance.randrange(20_000)
            archive.addfile(info, fileobj=io.BytesIO(content[start:start + info.size]))
    return plain, tree



def digest(folder):
    total = hashlib.sha256()
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            with open(os.path.join(parent, name), "rb") as f:
                total.update(name.encode() + hashlib.sha256(f.read()).digest())
    return total.hexdigest()


def copy_synced(source, to):
    with open(source, "rb") as f, open(to, "wb") as out:
        shutil.copyfileobj(f, out, 1 << 20)
        out.flush()
        os.fsync(out.fileno())


def measure(system, plain, tree):
    cells = []

    def step(work):
        with Watch(pid) as watch:
            result = work()
        cells.append(str(watch))
        return result

    system.make()
    system.mount()
    pid = system.daemons()[0]
    step(lambda: None)
    step(lambda: copy_synced(plain, os.path.join(system.mnt, "large")))

    def unpack():
        with tarfile.open(tree) as archive:
            archive.extractall(system.mnt)  # made by this very script
    step(unpack)
    peaks = [peak_bytes(pid)]
    written = digest(system.mnt)
    system.unmount()
    if os.getuid() == 0:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
            f.write("3")
    system.mount()
    pid = system.daemons()[0]
    if step(lambda: digest(system.mnt)) != written:
        raise Failure("a fresh mount reads something else")
    peaks.append(peak_bytes(pid))
    if isinstance(system, Volume):
        check_memory(pid, BUDGET_BYTES)
    system.unmount()
    return cells + [f"{max(peaks) >> 20}"], written


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--copies", type=int, default=8)
    parser.add_argument("--files", type=int, default=4000)
    arguments = parser.parse_args()
    table, digests = {}, set()
    with Volume("peer-memory") as volume:
        plain, tree = make_sources(volume.work, arguments.copies, arguments.files)
        systems = {"Nacre": volume}
        for name, make, mount in [
                ("gocryptfs", ["gocryptfs", "-init", "-q", "-extpass", "echo secret", "{back}"],
                 ["gocryptfs", "-q", "-extpass", "echo secret", "{back}", "{mnt}"]),
                ("securefs", ["securefs", "create", "--pass", "secret", "{back}"],
                 ["securefs", "mount", "-b", "--pass", "secret", "{back}", "{mnt}"])]:
            if shutil.which(name):
                systems[name] = Peer(volume.work, name, make, mount)
            else:
                skip_part(f"peer_memory, {name}", "it is not installed")
        try:
            for name, system in systems.items():
                table[name], found = measure(system, plain, tree)
                print(f"{name}: {'; '.join(table[name])}", flush=True)
                digests.add(found)
            if len(digests) != 1:
                raise Failure("what was written differs from one file system to the other")
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
        finally:
            for system in systems.values():
                system.detach()
        print(f"| MiB resident, threads | {' | '.join(table)} |")
        print("|---" * (len(table) + 1) + "|")
        for i, what in enumerate(STEPS + ["peak, MiB"]):
            print(f"| {what} | {' | '.join(cells[i] for cells in table.values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
