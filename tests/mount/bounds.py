#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must stay bounded whatever a volume holds: memory and threads of the daemon, what it knows
of files that nobody uses, the time of a mount; and the limits of files, links and attributes.

    bounds.py [sparse_file | links_and_attributes | streaming | many_files]…    default: all

Counts, and ratios of what is measured side by side. NACRE_LONG: a million files and a larger file.
"""
import contextlib
import errno
import hashlib
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import check_memory, status_of  # noqa: E402
from volume import Failure, Volume, full_counts, skip_part, wait_for  # noqa: E402

LONG = full_counts()
BUDGETS = ["-o", "cache=16M,dirty=16M"]
BUDGET_BYTES = 32 << 20
# Inodes that the daemon keeps whole, and some that are in use.
LOADED_MAX = 70_000


def stats(volume):
    return json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])["stats"]


def check(condition, what):
    if not condition:
        raise Failure(what)


@contextlib.contextmanager
def mounted(volume):
    volume.mount(*BUDGETS)
    yield volume.daemons()[0]
    began = time.monotonic()
    volume.unmount()
    if LONG:
        print(f"  nacre umount: {time.monotonic() - began:.1f} s", flush=True)
    volume.wait_for_daemons(60)


def errno_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def streaming(volume, _):
    """A file many times the budgets, written and read; and 64 processes at once."""
    size = (4096 if LONG else 192) << 20
    path = os.path.join(volume.mnt, "large")
    written, read = hashlib.sha256(), hashlib.sha256()
    with mounted(volume) as pid:
        with open(path, "wb") as f:
            for at in range(0, size, 4 << 20):
                piece = os.urandom(1 << 20) + at.to_bytes(8, "little") * (3 << 17)
                f.write(piece)
                written.update(piece)
        peaks = [check_memory(pid, BUDGET_BYTES)]
    with mounted(volume) as pid:
        with open(path, "rb") as f:
            while piece := f.read(4 << 20):
                read.update(piece)
        peaks.append(check_memory(pid, BUDGET_BYTES))
        check(read.digest() == written.digest(), "a large file was read as another one")
        clients = [subprocess.Popen([sys.executable, "-c", CLIENT, volume.mnt, path, str(i)])
                   for i in range(64)]
        failed = sum(client.wait(300) != 0 for client in clients)
        check(failed == 0, f"{failed} of 64 processes failed")
        peaks.append(check_memory(pid, BUDGET_BYTES))
        threads = status_of(pid)["Threads"]
        os.unlink(path)
    print(f"{size >> 20} MiB written, read, and 64 processes beside each other: at most "
          f"{[peak >> 20 for peak in peaks]} MiB, {threads} threads")


CLIENT = """
import os, sys
top, large, mine = sys.argv[1], sys.argv[2], sys.argv[3]
path = f"{top}/client{mine}"
with open(large, "rb", buffering=0) as f, open(path, "wb", buffering=0) as out:
    size = os.fstat(f.fileno()).st_size
    for i in range(8):
        f.seek((int(mine) * 8 + i) * 65536 % size)
        out.write(f.read(65536))
    os.fsync(out.fileno())
assert os.path.getsize(path) == 8 * 65536
os.unlink(path)
"""


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        times = f.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def in_steps(count, pid):
    """range(count); with NACRE_LONG, what each tenth took: what one entry costs the daemon must not
    grow with what is there, or with what was deleted."""
    began, used, first = time.monotonic(), processor_seconds(pid), 0
    for i in range(count):
        yield i
        if LONG and (i + 1) % (count // 10) == 0:
            seconds, cost = time.monotonic() - began, processor_seconds(pid) - used
            first = first or cost
            print(f"  {i + 1} of {count}: {count / 10 / seconds:.0f} a second, "
                  f"{cost * 1e7 / count:.0f} µs of processor each", flush=True)
            check(cost < 4 * first, f"a tenth takes {cost:.1f} s of processor, the first {first:.1f}")
            began, used = began + seconds, used + cost


def mount_seconds(volume):
    began = time.monotonic()
    volume.mount(*BUDGETS)
    took = time.monotonic() - began
    volume.unmount()
    volume.wait_for_daemons(60)
    return took


def many_files(volume, empty):
    """One directory of very many: made, listed, looked up, forgotten; and mounting such a volume."""
    count = 1_000_000 if LONG else 100_000
    folder = os.path.join(volume.mnt, "many")
    with mounted(volume) as pid:
        os.mkdir(folder)
        fd = os.open(folder, os.O_RDONLY)
        for i in in_steps(count, pid):
            os.mknod(f"entry {i}", 0o100600, dir_fd=fd)
        os.close(fd)
        peaks = [check_memory(pid, BUDGET_BYTES)]
    with mounted(volume) as pid:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in entries if entry.stat().st_nlink == 1}
        check(len(names) == count, f"{len(names)} entries are listed of {count}")
        for i in range(0, count, 97):
            check(f"entry {i}" in names, f"entry {i} is not listed")
            os.stat(os.path.join(folder, f"entry {i}"))
            check(errno_of(os.stat, os.path.join(folder, f"entry {i}x")) == errno.ENOENT,
                  "a name that is not there was found")
        peaks.append(check_memory(pid, BUDGET_BYTES))
        known = stats(volume)
        check(known["loaded_inode_count"] <= LOADED_MAX,
              f"{known['loaded_inode_count']} inodes in memory of {count} that were listed")
        if os.getuid() == 0:
            with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
                f.write("2")
            wait_for(lambda: stats(volume)["known_inode_count"] < 1000, 60,
                     f"the kernel forgot its inodes, the daemon knew {known['known_inode_count']} "
                     f"and knows {stats(volume)['known_inode_count']}")
        else:
            skip_part("bounds, forgotten inodes", "only root makes the kernel forget")
    # In turn, so that what else the machine does hits both.
    times = [(mount_seconds(empty), mount_seconds(volume)) for _ in range(5)]
    ratio = sorted(full / alone for alone, full in times)[2]
    check(ratio < 4, f"mounting takes {ratio:.1f} times as long with {count} files: {times}")
    slowest = sorted(full for _, full in times)[2]
    check(not LONG or slowest <= 1, f"a mount of {count} files takes {slowest:.2f} s")
    if LONG:
        with mounted(volume) as pid:
            for i in in_steps(count, pid):
                os.unlink(os.path.join(folder, f"entry {i}"))
            os.rmdir(folder)
            peaks.append(check_memory(pid, BUDGET_BYTES))
            check(stats(volume)["inode_count"] == 1, "deleted files are counted")
    else:
        skip_part("bounds, emptying a directory of 1,000,000", "only with --long")
    print(f"{count} files in a directory: at most {[peak >> 20 for peak in peaks]} MiB, "
          f"{known['loaded_inode_count']} inodes in memory; a mount takes {ratio:.2f} times an "
          "empty one's")


def sparse_file(volume, _):
    """1 TiB of holes with bytes at its ends and in its middle, at the cost of those bytes alone."""
    size, piece = 1 << 40, b"bytes" * 1000
    places = [0, size // 2, size - len(piece)]
    path = os.path.join(volume.mnt, "sparse")
    with mounted(volume):
        fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
        for at in places:
            os.pwrite(fd, piece, at)
        os.fsync(fd)
        os.close(fd)
    with mounted(volume) as pid:
        rows_before = stats(volume)["database"]["row_read_count"]
        fd = os.open(path, os.O_RDWR)
        check(os.fstat(fd).st_size == size, f"{os.fstat(fd).st_size} bytes")
        check(os.fstat(fd).st_blocks * 512 < 1 << 20, f"{os.fstat(fd).st_blocks} blocks of 512")
        for at in places:
            check(os.pread(fd, len(piece), at) == piece, f"other bytes at {at}")
        for at in (1 << 20, size // 3, size - (1 << 20)):
            check(os.pread(fd, 100_000, at) == bytes(100_000), f"the hole at {at} is not empty")
        found, position = [], 0
        while (code := errno_of(os.lseek, fd, position, os.SEEK_DATA)) == 0:
            data = os.lseek(fd, position, os.SEEK_DATA)
            position = os.lseek(fd, data, os.SEEK_HOLE)
            found.append((data, position))
        check(code == errno.ENXIO, f"SEEK_DATA past the end gives {code}")
        check(len(found) == len(places) and
              all(data <= at and at + len(piece) <= hole and hole - data < 1 << 20
                  for at, (data, hole) in zip(places, found)), f"data is said to lie in {found}")
        os.ftruncate(fd, size // 4)
        os.ftruncate(fd, size)
        check(os.pread(fd, 5000, places[1]) == bytes(5000), "what was cut off is back")
        check(os.lseek(fd, 1 << 20, os.SEEK_HOLE) == 1 << 20, "there is no hole at 1 MiB")
        os.close(fd)
        os.unlink(path)
        volume.run("nacre", "sync", volume.mnt)
        rows = stats(volume)["database"]["row_read_count"] - rows_before
        check(rows < 2000, f"{rows} rows were read for three pieces of data")
        check_memory(pid, BUDGET_BYTES)
    print(f"1 TiB of holes: {rows} rows read")


def links_and_attributes(volume, _):
    count = 10_000
    path = os.path.join(volume.mnt, "file")
    links = os.path.join(volume.mnt, "links")
    with mounted(volume):
        os.mkdir(links)
        with open(path, "w", encoding="ascii") as f:
            f.write("one file")
        for i in range(count):
            os.link(path, os.path.join(links, str(i)))
    with mounted(volume):
        check(os.stat(path).st_nlink == count + 1, f"{os.stat(path).st_nlink} links")
        with open(os.path.join(links, str(count - 1)), encoding="ascii") as f:
            check(f.read() == "one file", "a link holds something else")
        os.unlink(path)
        for i in range(1, count):
            os.unlink(os.path.join(links, str(i)))
        last = os.path.join(links, "0")
        check(os.stat(last).st_nlink == 1, f"{os.stat(last).st_nlink} links are left")

        # The kernel's limit for a value is 65,536 bytes.
        value = os.urandom(65_536)
        os.setxattr(last, "user.large", value)
        for size in (65_537, 100_000):
            code = errno_of(os.setxattr, last, "user.large", bytes(size))
            check(code == errno.E2BIG, f"a value of {size} bytes: {errno.errorcode.get(code)}")
        names = [f"user.{'n' * 50}{i:05d}" for i in range(1000)]
        for name in names:
            os.setxattr(last, name, name.encode())
    with mounted(volume):
        check(os.getxattr(last, "user.large") == value, "a large value is another one")
        check(set(os.listxattr(last)) == {*names, "user.large"}, "other names are listed")
        # So is its limit for a list: what could not be listed is refused.
        code, more = 0, []
        while code == 0 and len(more) < 200:
            more.append(f"user.{'m' * 50}{len(more):05d}")
            code = errno_of(os.setxattr, last, more[-1], b"")
        check(code == errno.ENOSPC, f"names of {61 * (1000 + len(more))} bytes: "
                                    f"{errno.errorcode.get(code)}")
        refused = more.pop()
        check(set(os.listxattr(last)) == {*names, *more, "user.large"}, "other names are listed")
        check(len(os.listxattr(last)) * 61 > 65_000, "attributes are refused long before the limit")
        os.removexattr(last, more.pop())
        os.setxattr(last, refused, b"")
        more.append(refused)
        check(all(os.getxattr(last, name) == name.encode() for name in names), "another value")
        for name in names + more:
            os.removexattr(last, name)
        check(os.listxattr(last) == ["user.large"], "removed attributes are listed")
        os.unlink(last)
        os.rmdir(links)
    print(f"{count} links of one file, {len(names + more)} attributes of one file")


PARTS = {part.__name__: part
         for part in (sparse_file, links_and_attributes, streaming, many_files)}


def main():
    parts = sys.argv[1:] or list(PARTS)
    with Volume("bounds-empty") as empty, Volume("bounds") as volume:
        empty.make()
        volume.make()
        try:
            for part in parts:
                PARTS[part](volume, empty)
            volume.fsck("--deep", limit_s=900)
        except Failure as failure:
            print(f"FAILED: {failure}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
