#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How throughput of a mount grows with the number of writers and readers, on a RAM disk.

    scaling.py --bin DIR --corpus DIR [--folder DIR] [--engines LIST] [--counts LIST] [--mib N]
               [--seconds N] [--option OPTIONS]

DIR of --bin holds mkfs.nacre, mount.nacre, nacre and, for the floor (a volume in memory over the same
transport, which does nothing), memory_mount. Each figure writes or reads --mib MiB in all, of the
files of the corpus one after the other, 1 MiB a call, straight from memory: so making the data is not
measured. Writers end with fsync of their files. Readers find nothing in the kernel's cache
(as root), and nearly nothing in the daemon's. Then what does not compress, writers past the kernel's
cache (O_DIRECT), new empty files a second and stat of files the kernel knows, also of the RAM disk itself.

After --seconds nothing new is begun. Columns: GB/s; seconds of processor of the daemon (user, system),
of the kernel's workers, of the whole machine; the busiest thread of the daemon and the busiest kernel
worker, as a share of the time: near 100 % it is what all others wait for.
Exit status: 0 when all that ran was good.
"""
import argparse
import glob
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
TICK = os.sysconf("SC_CLK_TCK")


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def stat_of(path):
    """Name, seconds of user and of system of a process or thread."""
    text = read_text(path)
    if not text:
        return None
    name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
    return name, int(rest[11]) / TICK, int(rest[12]) / TICK


class Sample:
    """What processors have done so far, for one daemon and for the kernel's own threads."""

    def __init__(self, daemon):
        self.time = time.monotonic()
        whole = stat_of(f"/proc/{daemon}/stat") or ("", 0.0, 0.0)
        self.user, self.system = whole[1:]
        self.threads, self.workers = {}, {}
        for path in glob.glob(f"/proc/{daemon}/task/*/schedstat"):
            text = read_text(path).split()
            if text:
                self.threads[path] = (int(text[0]) / 1e9, int(text[1]) / 1e9)
        for path in glob.glob("/proc/[0-9]*/stat"):
            found = stat_of(path)
            if found and found[0].startswith("kworker"):
                self.workers[path] = found[2]
        cpu = [int(word) / TICK for word in read_text("/proc/stat").split("\n", 1)[0].split()[1:]]
        self.busy = sum(cpu[:3]) + sum(cpu[5:7]) if cpu else 0.0

    def since(self, before):
        wall = self.time - before.time
        run = {path: (spent[0] - before.threads.get(path, (0, 0))[0],
                      spent[1] - before.threads.get(path, (0, 0))[1])
               for path, spent in self.threads.items()}
        busiest, name = 0.0, ""
        groups = {}
        for path, (ran, waited) in run.items():
            comm = read_text(os.path.join(os.path.dirname(path), "comm")).strip()
            sums = groups.setdefault(comm, [0, 0.0, 0.0])
            sums[0] += 1
            sums[1] += ran
            sums[2] += waited
            if ran > busiest:
                busiest, name = ran, comm
        worker = [spent - before.workers.get(path, 0.0) for path, spent in self.workers.items()]
        self.groups = groups
        return (f"{self.user - before.user:5.1f}u {self.system - before.system:5.1f}s"
                f"  kworkers {sum(worker):5.1f}  machine {self.busy - before.busy:6.1f}"
                f"  busiest: {name} {100 * busiest / wall:3.0f} %,"
                f" kworker {100 * max(worker, default=0.0) / wall:3.0f} %")


def groups_text(groups):
    return ", ".join(f"{name} x{count} ran {ran:.1f} waited {waited:.1f}"
                     for name, (count, ran, waited) in sorted(groups.items()) if ran + waited > 0.05)


class Processes:
    """work(number) in a number of processes at once; the seconds from the start of all to the end of the last."""

    def __init__(self):
        self.good = True
        self.spent = 0.0  # seconds of processor of the last ones

    def run(self, count, work):
        gate_read, gate_write = os.pipe()
        ready_read, ready_write = os.pipe()
        children = []
        for number in range(count):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.close(gate_write)
                    os.write(ready_write, b"r")
                    os.read(gate_read, 1)  # its end is what opens the gate
                    work(number)
                    code = 0
                except BaseException as error:  # noqa: B902: a child must never go on as its parent
                    print(f"scaling.py: {error!r}", file=sys.stderr, flush=True)
                os._exit(code)
            children.append(child)
        os.close(gate_read)
        os.close(ready_write)
        left = count
        while left > 0:
            got = os.read(ready_read, left)
            if not got:
                break
            left -= len(got)
        os.close(ready_read)
        begin = time.monotonic()
        os.close(gate_write)
        self.spent = 0.0
        for child in children:
            _, status, usage = os.wait4(child, 0)
            self.spent += usage.ru_utime + usage.ru_stime
            if status != 0:
                self.good = False
        return time.monotonic() - begin


class Data:
    """Memory to write from: page-aligned, whole MiB."""

    def __init__(self, parts):
        size = sum(len(part) for part in parts)
        self.size = size // MIB * MIB
        self.map = mmap.mmap(-1, self.size)
        self.map.write(b"".join(parts)[:self.size])
        self.view = memoryview(self.map)

    def piece(self, at):
        at %= self.size
        return self.view[at:at + MIB]


def drop_caches():
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
    except OSError:
        pass


def set_limit(path, value):
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(value)
        return True
    except OSError:
        return False


class Mount:
    def __init__(self, name, work, programs, options):
        self.name = name
        self.point = os.path.join(work, f"mnt.{name}")
        self.volume = os.path.join(work, f"volume.{name}")
        self.is_floor = name == "floor"
        self.programs = programs
        self.process = None
        os.mkdir(self.point)
        password = os.path.join(work, "pw")
        if self.is_floor:
            # Memory that was written once is kept, because new pages cost time.
            keeps = {"MALLOC_TRIM_THRESHOLD_": str(1 << 40), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
            self.process = subprocess.Popen([self.program("memory_mount"), self.point] + options[:1],
                                            stdout=subprocess.PIPE, env=os.environ | keeps)
            if self.process.stdout.readline() != b"ready\n":
                raise RuntimeError("memory_mount does not mount")
            self.pid = self.process.pid
        else:
            subprocess.run([self.program("mkfs.nacre"), "--passphrase-file", password, "--kdf-memory", "8192",
                            "--kdf-time", "1", self.volume], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([self.program("mount.nacre"), "--passphrase-file", password, "--engine", name]
                           + (["-o", options[0]] if options else []) + [self.volume, self.point], check=True)
            self.pid = self.find_daemon()

    def program(self, name):
        return os.path.join(self.programs, name)

    def find_daemon(self):
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            words = read_text(path).split("\0")
            if words[0].endswith("mount.nacre") and self.volume in words:
                return int(path.split("/")[2])
        raise RuntimeError(f"no daemon of {self.volume}")

    def path(self, *parts):
        return os.path.join(self.point, *parts)

    def limit(self, key):
        device = os.stat(self.point).st_dev
        return f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/{key}"

    def end(self):
        if self.is_floor:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        else:
            subprocess.run([self.program("nacre"), "umount", self.point], check=False)
        if os.path.ismount(self.point):
            subprocess.run(["umount", "-l", self.point], check=False)
        shutil.rmtree(self.volume, ignore_errors=True)


class Measurement:
    def __init__(self, arguments):
        self.arguments = arguments
        self.end = time.monotonic() + arguments.seconds
        self.processes = Processes()
        self.rows = []
        self.skipped = []
        # What is stored at a time is about twelve times as much.
        free = shutil.disk_usage(arguments.folder).free
        self.bytes = min(arguments.mib, free // 12 // MIB // 16 * 16) * MIB
        corpus = []
        for folder, _, names in sorted(os.walk(arguments.corpus)):
            for name in sorted(names):
                with open(os.path.join(folder, name), "rb") as file:
                    corpus.append(file.read())
        self.corpus = Data(corpus)
        self.random = Data([random.Random(1).randbytes(64 * MIB)])

    def wants(self, what):
        if time.monotonic() < self.end:
            return True
        self.skipped.append(what)
        return False

    def note(self, what, figure, detail=""):
        self.rows.append((what, figure, detail))
        print(f"{what:44s} {figure:>16s}  {detail}", flush=True)

    def timed(self, mount, what, size, count, work):
        before = Sample(mount.pid)
        seconds = self.processes.run(count, work)
        after = Sample(mount.pid)
        detail = after.since(before)
        detail = f"callers {self.processes.spent:5.1f}  {detail}"
        self.note(f"{mount.name}: {what}", f"{size / seconds / 1e9:.2f} GB/s", detail)
        print(f"      {groups_text(after.groups)}", flush=True)

    def write(self, mount, count, data, what, flags=0):
        title = f"{count} writer{'s' if count > 1 else ''}{what}"
        if not self.wants(f"{mount.name}: {title}"):
            return
        share = self.bytes // count // MIB * MIB

        def work(number):
            fd = os.open(mount.path(f"w{number}"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600)
            at = number * (data.size // 16 // MIB * MIB)
            for done in range(0, share, MIB):
                if os.write(fd, data.piece(at + done)) != MIB:
                    raise RuntimeError("a short write")
            os.fsync(fd)
            os.close(fd)

        self.timed(mount, title, share * count, count, work)
        for number in range(count):
            os.unlink(mount.path(f"w{number}"))

    def fill(self, mount, prefix="r"):
        """What is read: sixteen files."""
        share = self.bytes // 16 // MIB * MIB

        def work(number):
            with open(mount.path(f"{prefix}{number}"), "wb", buffering=0) as file:
                for done in range(0, share, MIB):
                    file.write(self.corpus.piece(number * MIB + done))
                os.fsync(file.fileno())

        self.processes.run(16, work)

    def read(self, mount, count):
        title = f"{count} cold reader{'s' if count > 1 else ''}"
        if not self.wants(f"{mount.name}: {title}"):
            return
        drop_caches()
        share = self.bytes // 16 // MIB * MIB

        def work(number):
            buffer = bytearray(MIB)
            for name in range(number, 16, count):
                with open(mount.path(f"r{name}"), "rb", buffering=0) as file:
                    done = 0
                    while True:
                        got = file.readinto(buffer)
                        if not got:
                            break
                        done += got
                    if done != share:
                        raise RuntimeError("a file of another size")

        self.timed(mount, title, share * 16, count, work)

    def names(self, place, title, daemon, count):
        """Makes files and looks at them again; the RAM disk has no daemon."""
        if not self.wants(f"{title}: creates"):
            return
        each = 20000 if count == 1 else 5000
        folder = os.path.join(place, f"names{count}")
        os.mkdir(folder)
        for number in range(count):
            os.mkdir(os.path.join(folder, str(number)))

        def create(number):
            fd = os.open(os.path.join(folder, str(number)), os.O_RDONLY)
            for index in range(each):
                os.close(os.open(f"f{index}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=fd))

        def look(number):
            fd = os.open(os.path.join(folder, str(number)), os.O_RDONLY)
            for _ in range(20):
                for index in range(1000):
                    os.stat(f"f{index}", dir_fd=fd)

        who = f"{count} process{'es' if count > 1 else ''}"
        for what, work, total in (("creates", create, each), ("stats of known files", look, 20000)):
            before = Sample(daemon)
            seconds = self.processes.run(count, work)
            detail = Sample(daemon).since(before) if daemon else ""
            self.note(f"{title}: {what}, {who}", f"{total * count / seconds:,.0f}/s", detail)


def warm(folder, size, processes):
    """A virtual machine's memory is slow when it is used for the first time."""
    share = size // 16

    def work(number):
        path = os.path.join(folder, f"warm{number}")
        with open(path, "wb", buffering=0) as file:
            zeros = bytes(4 * MIB)
            for _ in range(0, share, len(zeros)):
                file.write(zeros)

    seconds = processes.run(16, work)
    for number in range(16):
        os.unlink(os.path.join(folder, f"warm{number}"))
    return seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--engines", default="cpu auto")
    parser.add_argument("--counts", default="16 1 8 4 2")
    parser.add_argument("--mib", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--option", default="")
    arguments = parser.parse_args()
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    work = tempfile.mkdtemp(prefix="nacre-scaling.", dir=arguments.folder)
    os.environ["XDG_CACHE_HOME"] = os.path.join(work, "cache")
    os.environ["XDG_CONFIG_HOME"] = os.path.join(work, "config")
    os.environ["XDG_RUNTIME_DIR"] = work
    with open(os.path.join(work, "pw"), "w", encoding="ascii") as file:
        file.write("a passphrase of the check")
    options = [arguments.option] if arguments.option else []
    engines = arguments.engines.split()
    counts = [int(word) for word in arguments.counts.split()]
    mounts = []
    try:
        measurement = Measurement(arguments)
        print(f"{os.uname().release}, {os.cpu_count()} cores, {measurement.bytes // MIB} MiB a figure", flush=True)
        size = 8 * measurement.bytes
        seconds = warm(work, size, measurement.processes)
        print(f"memory touched: {size / 1e9:.1f} GB in {seconds:.1f} s", flush=True)
        names = engines + (["floor"] if os.path.exists(os.path.join(arguments.bin, "memory_mount")) else [])
        for name in names:
            try:
                mounts.append(Mount(name, work, arguments.bin, options))
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{name}: {error}", flush=True)
                measurement.processes.good = False
                continue
            mount = mounts[-1]
            limits = {key: read_text(mount.limit(key)).strip()
                      for key in ("read_ahead_kb", "max_ratio", "strict_limit")}
            print(f"mounted after {time.monotonic() - begin:.1f} s: {mount.name} {limits}", flush=True)
        for mount in mounts:
            measurement.fill(mount)
            if mount.is_floor:
                measurement.fill(mount, "w")
                for number in range(16):
                    os.unlink(mount.path(f"w{number}"))
        for count in counts[:2]:
            for mount in mounts:
                measurement.write(mount, count, measurement.corpus, "")
        for count in counts[:2]:
            for mount in mounts:
                measurement.read(mount, count)
        for mount in mounts:
            measurement.write(mount, counts[0], measurement.corpus, " past the cache", os.O_DIRECT)
        # The share of the memory that may wait to be written to this mount, in percent: the kernel's
        # own limit for FUSE is 1.
        for mount in mounts:
            usual = read_text(mount.limit("max_ratio")).strip()
            for ratio in ("1", "50"):
                if set_limit(mount.limit("max_ratio"), ratio):
                    measurement.write(mount, counts[0], measurement.corpus, f", max_ratio {ratio}")
            set_limit(mount.limit("max_ratio"), usual)
        for count in (1, 16):
            for mount in mounts:
                measurement.names(mount.point, mount.name, mount.pid, count)
            measurement.names(work, "RAM disk", 0, count)
        for count in counts[2:]:
            for mount in mounts:
                measurement.write(mount, count, measurement.corpus, "")
            for mount in mounts:
                measurement.read(mount, count)
        for count in counts[:2]:
            for mount in mounts:
                measurement.write(mount, count, measurement.random, " of random bytes")
        print("\nfigure                                      " + "".join(f"{m.name:>22s}" for m in mounts))
        figures = {}
        for what, figure, _ in measurement.rows:
            place, _, rest = what.partition(": ")
            figures.setdefault(rest, {})[place] = figure
        for rest, row in figures.items():
            backing = f"   RAM disk {row['RAM disk']}" if "RAM disk" in row else ""
            print(f"{rest:44s}" + "".join(f"{row.get(m.name, '-'):>22s}" for m in mounts) + backing)
        if measurement.skipped:
            print("no time for: " + "; ".join(measurement.skipped))
        print(f"{time.monotonic() - begin:.0f} s in all")
        return 0 if measurement.processes.good else 1
    finally:
        for mount in mounts:
            mount.end()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
