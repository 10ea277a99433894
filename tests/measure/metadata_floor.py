#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metadata work on a volume and on a volume in memory that does nothing, over both transports, as root.

    metadata_floor.py --bin DIR [--bin DIR …] [--rounds N] [--files N] [--work DIR]
                      [--transports device ring] [--apart]

Unpacks small files of this machine, lists, reads and removes them; what is cold is mounted anew (a
volume in memory is not) with the kernel's caches dropped. All take turns within a round. Prints
medians in seconds, the processor time of the daemon in brackets, and how near the volume is to the
memory_mount of its transport; several folders of programs are versions to compare (the first
one's memory_mount is the floor). --apart starts each daemon in a session of its own, which the
scheduler takes for another group than the programs that use it.
"""
import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time

SWITCH = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
STEPS = ["untar", "ls", "read", "rm"]
OPTIONS = {"device": "io_uring=off", "ring": "io_uring=on"}


def make_tar(path, count):
    if path.exists():
        return
    files = subprocess.run("find /usr/include /usr/share /usr/lib -xdev -type f -size -64k | sort",
                           shell=True, check=True, stdout=subprocess.PIPE,
                           env={**os.environ, "LC_ALL": "C"}).stdout.split(b"\n")[:-1]
    step = max(1.0, len(files) / count)
    chosen = [files[int(i * step)][1:] for i in range(min(count, len(files)))]
    subprocess.run(["tar", "-c", "-f", path, "--no-recursion", "-C", "/", "-T", "-"], check=True,
                   input=b"\n".join(chosen) + b"\n")


class Mount:
    """One volume behind one transport; fresh with every object."""

    def __init__(self, programs, kind, transport, work, apart):
        self.programs, self.kind, self.option = programs, kind, OPTIONS[transport]
        self.apart = apart
        self.folder = work / "mnt"
        self.volume = work / "volume"
        self.secret = work / "passphrase"
        self.folder.mkdir(exist_ok=True)
        if kind == "nacre":
            shutil.rmtree(self.volume, ignore_errors=True)
            self.volume.mkdir()
            self.secret.write_text("floor")
            self.run("mkfs.nacre", "--passphrase-file", self.secret, self.volume)
        self.mount()

    def run(self, program, *words):
        subprocess.run([self.programs / program, *words], check=True, stdout=subprocess.DEVNULL)

    def mount(self):
        if self.kind == "nacre":
            words = ["mount.nacre", "--foreground", "--passphrase-file", self.secret, self.volume]
        else:
            words = ["memory_mount"]
        words += [self.folder]
        words += ["-o", self.option] if self.kind == "nacre" else [self.option]
        self.daemon = subprocess.Popen([self.programs / words[0], *words[1:]],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=self.apart)
        while not os.path.ismount(self.folder):
            if self.daemon.poll() is not None:
                raise SystemExit(f"{words[0]} ended")
            time.sleep(0.02)
        os.stat(self.folder)

    def unmount(self):
        subprocess.run(["umount", self.folder], check=True)
        self.daemon.wait()

    def cold(self):
        os.sync()
        if self.kind == "nacre":
            self.unmount()
            os.sync()
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
        if self.kind == "nacre":
            self.mount()

    def processor_s(self):
        fields = pathlib.Path(f"/proc/{self.daemon.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def timed(self, command):
        busy, start = self.processor_s(), time.monotonic()
        subprocess.run(["sh", "-c", command], check=True, stdout=subprocess.DEVNULL,
                       cwd=self.folder)
        return time.monotonic() - start, self.processor_s() - busy


def one_round(mount, tar):
    tar.read_bytes()
    yield mount.timed(f"mkdir t && tar -x -f {tar} -C t && sync -f .")
    mount.cold()
    yield mount.timed("ls -lR t")
    mount.cold()
    yield mount.timed("find t -type f -print0 | xargs -0 cat")
    yield mount.timed("rm -rf t")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", action="append", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=8000)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/nacre-floor"))
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--transports", nargs="+", default=list(OPTIONS), choices=list(OPTIONS))
    arguments = parser.parse_args()
    arguments.work.mkdir(exist_ok=True)
    tar = arguments.work / "tree.tar"
    make_tar(tar, arguments.files)
    subjects = [("memory", arguments.bin[0])] + [("nacre", folder) for folder in arguments.bin]
    switched = SWITCH.read_text()
    times = {}
    try:
        for index in range(arguments.rounds):
            first = index % len(subjects)
            for kind, programs in subjects[first:] + subjects[:first]:
                for transport in arguments.transports:
                    mount = Mount(programs, kind, transport, arguments.work, arguments.apart)
                    for step, figures in zip(STEPS, one_round(mount, tar)):
                        times.setdefault((kind, programs, transport, step), []).append(figures)
                    mount.unmount()
                    SWITCH.write_text(switched)
    finally:
        SWITCH.write_text(switched)
        if os.path.ismount(arguments.work / "mnt"):
            subprocess.run(["umount", "-l", arguments.work / "mnt"])
        shutil.rmtree(arguments.work / "volume", ignore_errors=True)

    def medians(*key):
        return [statistics.median(column) for column in zip(*times[key])]

    print(f"{'':36}" + "".join(f"{step:>16}" for step in STEPS))
    for kind, programs in subjects:
        for transport in arguments.transports:
            figures = [medians(kind, programs, transport, step) for step in STEPS]
            print(f"{kind} {str(programs)[-18:]} {transport}".ljust(36) +
                  "".join(f"{wall:>9.2f} ({busy:.2f})" for wall, busy in figures))
            if kind == "memory":
                continue
            floor = [medians("memory", subjects[0][1], transport, step)[0] for step in STEPS]
            print(f"{'  of the floor':36}" +
                  "".join(f"{low / wall:>16.2f}" for low, (wall, _) in zip(floor, figures)))


if __name__ == "__main__":
    main()
