#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon dies: killed, out of memory, by a fault. Every call on what was open says so at once,
also those that the kernel would answer out of its cache, and a store into a mapping ends whoever makes
it. Nothing lands in the folder below the mount. mount.nacre takes the dead mount away and mounts anew,
whatever is still open of the old one.

    dead_daemon.py [--io-uring]
"""
import errno
import mmap
import os
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from rings import over_chosen_transport  # noqa: E402
from volume import Failure, Volume, wait_for  # noqa: E402

# Over io_uring the kernel cancels what was under way.
CANCELLED = (errno.ECANCELED, errno.ECONNABORTED)


def check(condition, what):
    if not condition:
        raise Failure(what)


def errno_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def name_of(error):
    return errno.errorcode.get(error, "no error")


class Users:
    """What programs have open when the daemon dies."""

    def __init__(self, top):
        self.top = top
        os.makedirs(os.path.join(top, "folder/below"))
        self.log = os.open(os.path.join(top, "log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(self.log, b"first line\n")
        os.fsync(self.log)
        self.document = os.open(os.path.join(top, "folder/document"), os.O_CREAT | os.O_RDWR)
        os.write(self.document, b"a document" * 1000)
        os.fsync(self.document)
        os.pread(self.document, 100, 0)
        self.direct = os.open(os.path.join(top, "direct"),
                              os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        self.block = mmap.mmap(-1, 4096)
        os.pwrite(self.direct, self.block, 0)
        self.folder = os.open(os.path.join(top, "folder"), os.O_RDONLY)
        os.listdir(self.folder)
        file = os.open(os.path.join(top, "mapped"), os.O_CREAT | os.O_RDWR)
        os.ftruncate(file, 8192)
        self.map = mmap.mmap(file, 8192)
        self.map[:5] = b"store"
        self.map.flush()
        self.mapped = file
        self.map[4096:4101] = b"dirty"
        os.write(self.log, b"not synced\n")

    def calls(self):
        top, folder = self.top, self.folder
        opened = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return {
            "write to a log": lambda: os.write(self.log, b"nobody will see it\n"),
            "write again": lambda: os.write(self.log, b"nobody will see it\n"),
            "pwrite": lambda: os.pwrite(self.document, b"x", 0),
            "a direct write": lambda: os.pwrite(self.direct, self.block, 0),
            "reading what was cached": lambda: os.pread(self.document, 100, 0),
            "ftruncate": lambda: os.ftruncate(self.log, 0),
            "fallocate": lambda: os.posix_fallocate(self.log, 0, 100),
            "fstat": lambda: os.fstat(self.log),
            "stat": lambda: os.stat(os.path.join(top, "log")),
            "fsync": lambda: os.fsync(self.log),
            "open for appending": lambda: os.open(os.path.join(top, "log"), opened),
            "open to read": lambda: os.open(os.path.join(top, "folder/document"), os.O_RDONLY),
            "making a file": lambda: os.open(os.path.join(top, "new"), opened),
            "making a file in an open folder": lambda: os.open("new", opened, dir_fd=folder),
            "open in an open folder": lambda: os.open("document", os.O_RDWR, dir_fd=folder),
            "listing": lambda: os.listdir(top),
            "mkdir": lambda: os.mkdir(os.path.join(top, "folder/new")),
            "rename": lambda: os.rename(os.path.join(top, "log"), os.path.join(top, "log2")),
            "unlink": lambda: os.unlink(os.path.join(top, "log")),
            "statvfs": lambda: os.statvfs(top),
            "another write": lambda: os.write(self.log, b"nobody will see it\n"),
        }

    def check_cut_off(self):
        for what, call in self.calls().items():
            error = errno_of(call)
            # Pages that were lost are the first thing that fsync tells.
            expected = (errno.ENOTCONN, errno.EIO) if what == "fsync" else (errno.ENOTCONN,)
            check(error in expected, f"the daemon is gone; {what}: {name_of(error)}")
        shell = subprocess.run(["sh", "-c", f"echo more >>{self.top}/log"], check=False,
                               stderr=subprocess.DEVNULL)
        check(shell.returncode != 0, "the daemon is gone; the shell's echo >>log succeeds")
        for at in (0, 4096):
            child = os.fork()
            if child == 0:
                self.map[at:at + 5] = b"after"
                os._exit(0)
            status = os.waitpid(child, 0)[1]
            check(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS,
                  f"the daemon is gone; a store into a mapping ends with status {status}")

    def close(self):
        self.map = None
        for fd in (self.log, self.document, self.direct, self.folder, self.mapped):
            errno_of(os.close, fd)


def end_daemon(volume, number):
    pid = volume.daemons()[0]
    os.kill(pid, number)
    wait_for(lambda: not os.path.exists(f"/proc/{pid}/fd") or not volume.daemons(), 60,
             f"the daemon survives signal {number}")


def wait_until_noticed(users):
    """The watcher hears of the death when the kernel has taken the process apart. It has attributes
    forgotten first, then pages, those of the youngest file last."""
    wait_for(lambda: errno_of(os.write, users.log, b"x") not in (0, *CANCELLED), 60,
             "programs write on into a dead mount")
    wait_for(lambda: errno_of(os.pread, users.mapped, 5, 0) not in (0, *CANCELLED), 60,
             "programs read on from a dead mount")


def everything_open(volume, number):
    volume.mount(*volume.transport)
    users = Users(os.path.join(volume.mnt, f"top{number}"))
    end_daemon(volume, number)
    wait_until_noticed(users)
    users.check_cut_off()
    # With all that still open, and without anybody's help.
    volume.mount(*volume.transport)
    with open(os.path.join(users.top, "log"), encoding="ascii") as f:
        check(f.read().startswith("first line\n"), "what was synced is lost")
    error = errno_of(os.write, users.log, b"x")
    check(error == errno.ENOTCONN, f"an old handle after the new mount: {name_of(error)}")
    users.close()
    volume.unmount()
    volume.wait_for_daemons(60)


def nothing_open(volume):
    """The mount stays: what a script writes must not land, unencrypted, in the folder below it."""
    volume.mount(*volume.transport)
    path = os.path.join(volume.mnt, "file")
    with open(path, "w", encoding="ascii") as f:
        f.write("content")
    volume.run("nacre", "sync", volume.mnt)
    end_daemon(volume, signal.SIGKILL)
    wait_for(lambda: errno_of(os.stat, path) not in (0, *CANCELLED), 60,
             "a dead mount shows its files")
    wait_for(lambda: errno_of(os.stat, path) == errno.ENOTCONN, 60, "requests are still cancelled")
    for _ in range(3):
        error = errno_of(lambda: os.open(path, os.O_WRONLY | os.O_CREAT))
        check(error in (errno.ENOTCONN, *CANCELLED),
              f"nothing was open; making a file: {name_of(error)}")
    volume.unmount(expect=(8,))
    check(os.listdir(volume.mnt) == [], "something was written below the mount")
    volume.mount(*volume.transport)
    check(os.listdir(volume.mnt), "nothing is mounted")
    volume.unmount()
    volume.wait_for_daemons(60)


def at_work(volume):
    """Requests are under way, and pages."""
    volume.mount(*volume.transport)
    stopped = []

    def work(number):
        path = os.path.join(volume.mnt, f"work{number}")
        try:
            os.mkdir(path)
            with open(os.path.join(path, "large"), "wb", buffering=0) as f:
                for i in range(1_000_000):
                    f.write(os.urandom(100_000))
                    f.seek(i % 300 * 100_000)
                    with open(os.path.join(path, f"small{i % 50}"), "w", encoding="ascii") as small:
                        small.write("small")
                    os.listdir(path)
        except OSError as error:
            stopped.append(error.errno)

    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
    for worker in workers:
        worker.start()
    wait_for(lambda: all(os.path.exists(os.path.join(volume.mnt, f"work{n}/small40"))
                         for n in range(4)), 120, "nobody gets anything done")
    end_daemon(volume, signal.SIGKILL)
    wait_for(lambda: len(stopped) == 4, 120, "somebody writes on, or hangs")
    for worker in workers:
        worker.join()
    # The one or the other close() hears of pages that were under way.
    check(set(stopped) <= {errno.ENOTCONN, errno.EIO, *CANCELLED},
          f"programs heard {[name_of(error) for error in stopped]}")
    volume.mount(*volume.transport)
    volume.unmount()
    volume.wait_for_daemons(60)
    volume.fsck()


def told_to_end(volume):
    """SIGTERM while files are open: the same for them, and the mount point is free."""
    volume.mount(*volume.transport)
    users = Users(os.path.join(volume.mnt, "told"))
    os.kill(volume.daemons()[0], signal.SIGTERM)
    volume.wait_for_daemons(120)
    check(not os.path.ismount(volume.mnt), "the mount is still there")
    users.top = users.top.replace(volume.mnt, os.path.join(volume.mnt, "../nothing"))
    for what in ("write to a log", "pwrite", "a direct write", "reading what was cached",
                 "ftruncate", "fstat", "fsync", "making a file in an open folder",
                 "open in an open folder", "another write"):
        error = errno_of(users.calls()[what])
        check(error == errno.ENOTCONN or (what == "fsync" and error == errno.EIO),
              f"after SIGTERM; {what}: {name_of(error)}")
    users.close()
    volume.mount(*volume.transport)
    with open(os.path.join(volume.mnt, "told/log"), encoding="ascii") as f:
        check(f.read() == "first line\nnot synced\n", "SIGTERM lost what was written")
    with open(os.path.join(volume.mnt, "told/mapped"), "rb") as f:
        check(f.read()[4096:4101] == b"dirty", "SIGTERM lost what was stored into a mapping")
    volume.unmount()
    volume.wait_for_daemons(60)


def run(name, rings_are):
    with Volume(name) as volume:
        volume.transport = ("-o", f"io_uring={rings_are}")
        volume.make()
        for number in (signal.SIGKILL, signal.SIGSEGV):
            everything_open(volume, number)
        nothing_open(volume)
        at_work(volume)
        told_to_end(volume)
    print("a daemon's death: every user is told, and the mount comes back")


if __name__ == "__main__":
    sys.exit(over_chosen_transport("dead-daemon", run))
