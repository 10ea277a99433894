#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random reads of 4 KiB from a set ten times as large as all caches, of several filesystems, as root.

    large_set.py --bin DIR [--bin DIR …] [--peers native gocryptfs securefs] [--chunk-size N …]
                 [--rounds N] [--seconds N] [--mib N] [--work DIR]

Files that do not compress are written and mounted anew, the kernel's caches are dropped, and four
readers of fio ask for blocks at random. The daemon, fio and the page cache that they fill share one
memory cgroup of a tenth of the files' size; Nacre gets a tenth of that for clean chunks. The limit
is set once everything is mounted, because a mount's key derivation alone takes more. All take turns
within a round. Prints reads a second, medians of the rounds, and their ratio to the best peer's.
Several folders of programs are versions to compare. WORK must not be in a RAM disk.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

PASSWORD = "large set"
V1 = pathlib.Path("/sys/fs/cgroup/memory")
V2 = pathlib.Path("/sys/fs/cgroup")


def run(*words, **more):
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.DEVNULL, **more)


class Group:
    """A memory cgroup; commands run by it are its members, and so are their daemons."""

    def __init__(self):
        self.is_v1 = V1.is_dir()
        self.folder = (V1 if self.is_v1 else V2) / f"nacre-large-set-{os.getpid()}"
        self.folder.mkdir()

    def join(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, size):
        name = "memory.limit_in_bytes" if self.is_v1 else "memory.max"
        (self.folder / name).write_text(str(size))

    def close(self):
        for _ in range(100):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)


class Nacre:
    def __init__(self, programs, chunk_size, name):
        self.programs, self.chunk_size, self.name = programs, chunk_size, name

    def make(self, back, work):
        self.secret = work / "passphrase"
        self.secret.write_text(PASSWORD)
        size = ["--chunk-size", self.chunk_size] if self.chunk_size else []
        run(self.programs / "mkfs.nacre", "--passphrase-file", self.secret, *size, back)

    def mount(self, back, folder, cache_mib, group):
        run(self.programs / "mount.nacre", "--passphrase-file", self.secret, "-o",
            f"cache={cache_mib}M", back, folder, preexec_fn=group and group.join)


class Peer:
    MAKE = {"native": "true", "gocryptfs": "gocryptfs -init -q -extpass 'echo {password}' {back}",
            "securefs": "securefs create --pass '{password}' {back}"}
    MOUNT = {"native": "mount --bind {back} {folder}",
             "gocryptfs": "gocryptfs -q -extpass 'echo {password}' {back} {folder}",
             "securefs": "securefs mount -b --pass '{password}' {back} {folder}"}

    def __init__(self, name):
        self.name = name

    def run(self, command, group=None, **words):
        run("sh", "-c", command.format(password=PASSWORD, **words),
            preexec_fn=group and group.join)

    def make(self, back, work):
        self.run(self.MAKE[self.name], back=back)

    def mount(self, back, folder, cache_mib, group):
        self.run(self.MOUNT[self.name], group, back=back, folder=folder)


def wait_for(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise SystemExit("large_set.py: waited for 30 s in vain")


def is_mounted(folder):
    # os.path.ismount() does not see a bind mount within one filesystem.
    return any(line.split()[1] == str(folder)
               for line in pathlib.Path("/proc/mounts").read_bytes().decode(errors="surrogateescape").splitlines())


def unmount(folder, back):
    run("umount", folder)
    # Its daemon may still be writing what it holds.
    wait_for(lambda: subprocess.run(["pgrep", "-f", f"(nacre|gocryptfs|securefs).*{back}"],
                                    stdout=subprocess.DEVNULL, check=False).returncode != 0)


def fio(folder, rw, mib, *more, **how):
    command = ["fio", "--name=j", f"--directory={folder}", "--filename_format=f.$jobnum",
               "--numjobs=4", f"--size={mib // 4}M", f"--rw={rw}", "--ioengine=psync",
               "--refill_buffers", "--group_reporting", "--output-format=json", *more]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **how).stdout
    return json.loads(text[text.index("{"):])["jobs"][0]


def one(system, arguments, work):
    back, folder = work / "back", work / "mnt"
    shutil.rmtree(back, ignore_errors=True)
    back.mkdir()
    folder.mkdir(exist_ok=True)
    limit_mib = arguments.mib // 10
    cache_mib = max(1, limit_mib // 10)
    group = Group()
    try:
        system.make(back, work)
        system.mount(back, folder, cache_mib, None)
        wait_for(lambda: is_mounted(folder))
        fio(folder, "write", arguments.mib, "--bs=1M", "--end_fsync=1")
        unmount(folder, back)
        run("sync")
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        system.mount(back, folder, cache_mib, group)
        wait_for(lambda: is_mounted(folder))
        group.limit(limit_mib << 20)
        result = fio(folder, "randread", arguments.mib, "--bs=4k", "--norandommap", "--time_based",
                     f"--runtime={arguments.seconds}", preexec_fn=group.join)
        return result["read"]["iops"]
    finally:
        if is_mounted(folder):
            unmount(folder, back)
        group.close()
        shutil.rmtree(back, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", action="append", required=True, type=pathlib.Path)
    parser.add_argument("--peers", nargs="*", default=["native", "gocryptfs", "securefs"],
                        choices=list(Peer.MAKE))
    parser.add_argument("--chunk-size", nargs="*", default=[""])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=1600)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/var/tmp/nacre-large-set"))
    arguments = parser.parse_args()
    arguments.work.mkdir(exist_ok=True)
    systems = [Peer(name) for name in arguments.peers]
    for i, programs in enumerate(arguments.bin):
        for size in arguments.chunk_size:
            name = f"nacre{i + 1 if len(arguments.bin) > 1 else ''} {size}".strip()
            systems.append(Nacre(programs.resolve(), size, name))
    rates = {system.name: [] for system in systems}
    for turn in range(arguments.rounds):
        for system in systems[turn % len(systems):] + systems[:turn % len(systems)]:
            rates[system.name].append(one(system, arguments, arguments.work))
            print(f"round {turn + 1}: {system.name} {rates[system.name][-1]:,.0f} /s", flush=True)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    best = max([medians[name] for name in arguments.peers if name != "native"], default=0)
    for name, values in rates.items():
        share = f", {medians[name] / best:.2f} of the best peer" if best else ""
        spread = (max(values) - min(values)) / medians[name]
        print(f"{name:16} {medians[name]:10,.0f} /s{share}, spread {spread:.0%}")
    shutil.rmtree(arguments.work, ignore_errors=True)


if __name__ == "__main__":
    main()
