#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of a 4 KiB write with its fsync: on a file system as it is, on a Nacre volume in it, and
on gocryptfs in it where that is installed.

    fsync_latency.py --bin DIR [--work DIR] [--rounds N] [--count N] [--mib N]
                     [--transports device ring]

--work lies on the disk to measure. Each round measures all of them in turn, each with fresh files
and, but for the file system itself, a fresh mount: --count writes that append to a file, then as
many at random places of a file of --mib MiB. Prints a Markdown table: p50 and p99 in µs, medians of
the rounds, and how many times the file system's own p50 the others take. Nothing else should run on
the machine. The script unmounts what it mounted, also when it fails or gets a signal.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time

SWITCH = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
TRANSPORTS = {"device": ("io_uring=off", "`/dev/fuse`"), "ring": ("io_uring=on", "io_uring")}
PIECE = 4096
MIB = 1 << 20
LIMIT_S = 60  # of a mount that comes or goes
told = []  # the signal that asked for the end


def say(text):
    print(f"fsync_latency.py: {text}", file=sys.stderr, flush=True)


def check_end():
    if told:
        raise SystemExit(128 + told[0])


class Plain:
    """The file system that all others store in."""

    def __init__(self, work):
        self.name = file_system_of(work)
        self.folder = work / "plain"

    def __enter__(self):
        self.folder.mkdir()
        return self.folder

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class Mount:
    """A volume that is made and mounted for one round: make and serve are command lines, of which
    the second one stays until it is unmounted."""

    def __init__(self, work, name, make, serve, environment=None):
        self.name, self.make, self.serve = name, make, serve
        self.environment = environment
        self.volume, self.folder, self.log = work / "volume", work / "mnt", work / "log"
        self.daemon = None

    def __enter__(self):
        try:
            for folder in (self.volume, self.folder):
                folder.mkdir()
            with open(self.log, "wb") as log:
                subprocess.run(self.make, check=True, stdout=log, stderr=log,
                               env=self.environment)
                self.daemon = subprocess.Popen(self.serve, stdout=log, stderr=log,
                                               env=self.environment)
            end = time.monotonic() + LIMIT_S
            while not os.path.ismount(self.folder):
                if self.daemon.poll() is not None or time.monotonic() > end:
                    raise OSError(f"{self.serve[0]} has not mounted it")
                check_end()
                time.sleep(0.02)
        except (OSError, subprocess.CalledProcessError) as error:
            self.end()
            said = self.log.read_text(errors="replace") if self.log.exists() else ""
            raise SystemExit(f"fsync_latency.py: {self.name}: {error}\n{said}".rstrip()) from None
        except BaseException:
            self.end()
            raise
        return self.folder

    def __exit__(self, *_):
        self.end()

    def end(self):
        unmount, detach = ((["umount"], ["umount", "-l"]) if os.geteuid() == 0 else
                           (["fusermount3", "-u"], ["fusermount3", "-uz"]))
        if not os.path.ismount(self.folder):
            if self.daemon is not None:
                self.daemon.terminate()
        elif subprocess.run([*unmount, self.folder], check=False).returncode != 0:
            subprocess.run([*detach, self.folder], check=False)
        if self.daemon is not None:
            try:
                self.daemon.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
            self.daemon = None
        shutil.rmtree(self.volume, ignore_errors=True)
        if self.folder.is_dir() and not os.path.ismount(self.folder):
            self.folder.rmdir()


def file_system_of(folder):
    """The name of its type."""
    best, name = -1, "file system"
    path = os.path.realpath(folder)
    for line in pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        _, place, kind = line.split()[:3]
        place = place.replace("\\040", " ")
        if os.path.commonpath([path, place]) == place and len(place) >= best:
            best, name = len(place), kind
    return name


def subjects_of(arguments):
    work, secret = arguments.work, arguments.work / "passphrase"
    secret.write_text("fsync latency\n", encoding="utf-8")
    subjects = [Plain(work)]
    if shutil.which("gocryptfs"):
        words = ["gocryptfs", "-q", "-passfile", secret]
        subjects.append(Mount(work, "gocryptfs", [*words, "-init", work / "volume"],
                              [*words, "-fg", work / "volume", work / "mnt"]))
    else:
        say("gocryptfs is not installed: left out")
    programs = arguments.bin.resolve()
    # The programs keep the fingerprints of volumes there; they are removed with the folder.
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("XDG_") or name == "XDG_RUNTIME_DIR"}
    environment["HOME"] = str(work)
    for transport in arguments.transports:
        option, name = TRANSPORTS[transport]
        words = ["--passphrase-file", secret, work / "volume"]
        subjects.append(
            Mount(work, f"Nacre, {name}", [programs / "mkfs.nacre", *words],
                  [programs / "mount.nacre", "--foreground", *words, work / "mnt", "-o", option],
                  environment))
    return subjects


def timed_writes(path, offsets, content):
    """Seconds that each took. The file is there."""
    times = []
    fd = os.open(path, os.O_WRONLY)
    try:
        for index, offset in enumerate(offsets):
            check_end()
            at = index * PIECE % len(content)
            piece = content[at:at + PIECE]
            begin = time.perf_counter()
            os.pwrite(fd, piece, offset)
            os.fsync(fd)
            times.append(time.perf_counter() - begin)
    finally:
        os.close(fd)
    return times


def write_file(path, size, content):
    with open(path, "wb") as file:
        for _ in range(0, size, MIB):
            check_end()
            file.write(content)
        file.flush()
        os.fsync(file.fileno())


def one_round(folder, arguments, places):
    content = os.urandom(MIB)
    appended, overwritten = folder / "appended", folder / "overwritten"
    write_file(appended, 0, content)
    yield timed_writes(appended, range(0, arguments.count * PIECE, PIECE), content)
    write_file(overwritten, arguments.mib * MIB, content)
    os.sync()
    yield timed_writes(overwritten, places, os.urandom(MIB))


def at(times, share):
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1e6


def table_of(subjects, steps, times):
    def figures(name, step):
        return [statistics.median(at(one, share) for one in times[name, step])
                for share in (0.5, 0.99)]

    lines = ["| µs, p50 and p99 | " + " | ".join(each.name for each in subjects) + " |",
             "|---|" + "---|" * len(subjects)]
    own = subjects[0].name
    for step in steps:
        cells = [step]
        for subject in subjects:
            half, most = figures(subject.name, step)
            cell = f"{half:.0f}, {most:.0f}"
            if subject.name != own:
                cell += f": {half / figures(own, step)[0]:.2f} ×"
            cells.append(cell)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure(arguments):
    subjects = subjects_of(arguments)
    steps = ["appending", f"overwriting {arguments.mib} MiB at random"]
    times = {}
    for turn in range(arguments.rounds):
        # The same places for all of a round.
        places = [random.randrange(arguments.mib * MIB // PIECE) * PIECE
                  for _ in range(arguments.count)]
        first = turn % len(subjects)
        for subject in subjects[first:] + subjects[:first]:
            os.sync()
            with subject as folder:
                for step, taken in zip(steps, one_round(folder, arguments, places)):
                    times.setdefault((subject.name, step), []).append(taken)
    print(table_of(subjects, steps, times))


def positive(word):
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("/tmp/nacre-fsync"))
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--count", type=positive, default=1000)
    parser.add_argument("--mib", type=positive, default=64)
    parser.add_argument("--transports", nargs="+", choices=list(TRANSPORTS))
    arguments = parser.parse_args()
    arguments.work = arguments.work.resolve()
    may_switch = os.geteuid() == 0 and SWITCH.exists()
    if arguments.transports is None:
        arguments.transports = list(TRANSPORTS) if may_switch else ["device"]
        if not may_switch:
            say("io_uring can be switched on by root alone, where the kernel has it: left out")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda which, _: told.append(which))
    switched = SWITCH.read_text(encoding="ascii") if may_switch else None
    # A folder of its own, so that nothing is removed that was there before.
    try:
        arguments.work.mkdir(parents=True)
    except FileExistsError:
        raise SystemExit(f"fsync_latency.py: {arguments.work} is there already: name another "
                         "folder by --work") from None
    try:
        measure(arguments)
    finally:
        if switched is not None:
            SWITCH.write_text(switched, encoding="ascii")
        shutil.rmtree(arguments.work, ignore_errors=True)


if __name__ == "__main__":
    main()
