#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens to a mount beside work: the date jumps, the machine sleeps, the terminal hangs up,
the daemon dies, the medium becomes read-only. LIBRARY (clock_step.cpp) makes the date jump for the
daemon.

    life_cycle.py LIBRARY
"""
import errno
import hashlib
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import is_instrumented  # noqa: E402
from loop_disk import LoopDisk, why_no_loop_disk  # noqa: E402
from volume import PATIENCE, Failure, Volume, skip_part, wait_for  # noqa: E402

HOUR = 3600


def check(condition, what):
    if not condition:
        raise Failure(what)


def stats(volume):
    return json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])["stats"]


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def errno_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def clock_steps(library):
    """Commits come all the same; what the daemon stamps carries the new date."""
    with Volume("clock-steps") as volume:
        clock = os.path.join(volume.work, "clock")

        def set_step(seconds):
            with open(clock, "r+b" if os.path.exists(clock) else "wb") as f:
                f.write(struct.pack("=q", seconds))

        def date_of(seconds):
            return time.time() + seconds

        volume.make()
        set_step(0)
        volume.environment.update(LD_PRELOAD=library, NACRE_CLOCK_STEP=clock)
        volume.mount("-o", "commit=1")
        if is_instrumented(volume.daemons()[0]):
            skip_part("life_cycle, clock steps", "a sanitizer's runtime comes first")
            return
        steps = [0, 5 * HOUR, -7 * HOUR, 400 * 24 * HOUR, -400 * 24 * HOUR, 2 * 24 * HOUR]
        for number, step in enumerate(steps):
            set_step(step)
            before = stats(volume)["commits"]["commit_count"]
            folder = os.path.join(volume.mnt, f"folder{number}")
            os.mkdir(folder)
            write(os.path.join(folder, "file"), f"after {step} s")
            # The interval counts time that passes, whatever the date says.
            wait_for(lambda: stats(volume)["commits"]["commit_count"] > before and
                     stats(volume)["dirty_bytes"] == 0, 60,
                     f"the date jumped by {step} s, and nothing is committed")
            # A clean directory, whose times the kernel did not make: as the daemon stamped it.
            born = int(subprocess.run(["stat", "-c", "%W", folder], check=True,
                                      stdout=subprocess.PIPE).stdout)
            check(abs(born - date_of(step)) < HOUR,
                  f"the date jumped by {step} s; a new folder is of {born - date_of(0):.0f} s")
            fd = os.open(os.path.join(folder, "file"), os.O_WRONLY | os.O_APPEND)
            os.write(fd, b", synced")
            os.fsync(fd)
            os.close(fd)
        set_step(-5 * HOUR)
        volume.kill()
        volume.detach()
        volume.fsck()
        volume.mount("-o", "commit=1")
        for number, step in enumerate(steps):
            text = read(os.path.join(volume.mnt, f"folder{number}", "file"))
            check(text == f"after {step} s, synced", f"folder{number}/file holds '{text}'")
        # A day and more since it was read: that counts as an access again.
        set_step(9 * 24 * HOUR)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.mount("-o", "commit=1")
        path = os.path.join(volume.mnt, "folder0", "file")
        read(path)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.mount("-o", "commit=1")
        accessed = os.stat(path).st_atime
        check(abs(accessed - date_of(9 * 24 * HOUR)) < HOUR,
              f"a file read nine days later was accessed {accessed - date_of(0):.0f} s from now")
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")
    print(f"{len(steps)} jumps of the date: commits came, times followed")


def suspend():
    """The daemon stands still for longer than an interval while programs write: none hears of it."""
    with Volume("suspend") as volume:
        volume.make()
        volume.mount("-o", "commit=1,dirty=4M")
        pid = volume.daemons()[0]
        errors, digests = [], {}

        def work(number):
            try:
                digest = hashlib.sha256()
                path = os.path.join(volume.mnt, f"file{number}")
                with open(path, "wb", buffering=0) as f:
                    for i in range(60):
                        piece = bytes([number, i]) * 50_000
                        f.write(piece)
                        digest.update(piece)
                        os.fsync(f.fileno())
                        os.mkdir(os.path.join(volume.mnt, f"folder{number}-{i}"))
                digests[path] = digest.digest()
            except OSError as error:
                errors.append(error)

        writers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for writer in writers:
            writer.start()
        for seconds in (1.5, 7):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.2)
        for writer in writers:
            writer.join(120 * PATIENCE)
            check(not writer.is_alive(), "a system call hangs after the daemon went on")
        check(not errors, f"programs were told of it: {errors}")
        check(stats(volume)["health"] == "ok", stats(volume)["health"])
        volume.kill()
        volume.detach()
        volume.mount()
        for path, digest in digests.items():
            with open(path, "rb") as f:
                check(hashlib.sha256(f.read()).digest() == digest, f"{path} was synced and differs")
        # Asleep at the moment of its end, too.
        write(os.path.join(volume.mnt, "last"), "last")
        pid = volume.daemons()[0]
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGTERM)
        time.sleep(1)
        os.kill(pid, signal.SIGCONT)
        volume.wait_for_daemons(60)
        volume.fsck("--deep")
        volume.mount()
        check(read(os.path.join(volume.mnt, "last")) == "last", "SIGTERM lost what was written")
        volume.unmount()
        volume.wait_for_daemons(60)
    print("a daemon that stood still: nothing lost, nobody told")


def dead_daemon():
    """Everybody is told what happened and what to do; then it is done."""
    with Volume("dead-daemon") as volume:
        volume.make()
        volume.mount()
        write(os.path.join(volume.mnt, "file"), "kept")
        volume.run("nacre", "sync", volume.mnt)
        volume.kill()
        errors = []

        def has_let_go():
            """The kernel, of the rings of io_uring: they end shortly after their process."""
            try:
                os.listdir(volume.mnt)
                raise Failure("a dead mount can be listed")
            except OSError as error:
                errors.append(error)
                return error.errno not in (errno.ECANCELED, errno.ECONNABORTED)

        wait_for(has_let_go, 30, "the kernel does not end a dead mount")
        check(errors[-1].errno == errno.ENOTCONN, f"a dead mount: {errors[-1]}")
        for command in ("stats", "sync", "trim"):
            status, text = volume.run("nacre", command, volume.mnt, expect=None)
            check(status == 8 and "has ended" in text and "nacre umount" in text,
                  f"nacre {command} of a dead mount: {status}, {text}")
        _, text = volume.unmount(expect=(8,))
        check("without closing" in text and "recovers" in text, f"nacre umount: {text}")
        check(not os.path.ismount(volume.mnt), "the dead mount is still there")
        _, text = volume.unmount(expect=(8,))
        check(volume.mnt in text, f"nacre umount of no mount: {text}")
        volume.mount()
        check(read(os.path.join(volume.mnt, "file")) == "kept", "what was synced is lost")
        volume.kill()
        wait_for(lambda: errno_of(os.listdir, volume.mnt) == errno.ENOTCONN, 30,
                 "the kernel does not end a dead mount")
        _, text = volume.mount()
        check("daemon had ended" in text and volume.mnt in text,
              f"mount.nacre over a dead mount: {text}")
        check(read(os.path.join(volume.mnt, "file")) == "kept", "what was synced is lost")
        volume.unmount()
        volume.wait_for_daemons(60)
    print("a dead mount: explained, taken away, mounted anew")


def terminal():
    """The daemon stays in its caller's session (docs/KERNEL.md, io_uring), but lets go of its
    terminal, and outlives both."""
    with Volume("terminal") as volume:
        volume.make()
        words = [os.path.join(volume.bin, "mount.nacre"), "--passphrase-file", volume.passphrase,
                 volume.path, volume.mnt]
        shell, end = pty.fork()
        if shell == 0:
            os.execve("/bin/sh", ["sh", "-c", '"$@"; read line', "sh", *words], volume.environment)
        wait_for(lambda: os.path.ismount(volume.mnt), 60, "nothing is mounted")
        wait_for(lambda: len(volume.daemons()) == 1, 60, "mount.nacre does not return")
        pid = volume.daemons()[0]
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            group, session, number = f.read().rpartition(")")[2].split()[2:5]
        check(int(session) == shell, "the daemon left the session")
        check(int(group) == pid, f"the daemon is in process group {group}")
        check(int(number) == 0, f"the daemon keeps terminal {number}")
        os.close(end)
        os.waitpid(shell, 0)
        time.sleep(1)
        write(os.path.join(volume.mnt, "file"), "kept")
        stats(volume)
        volume.unmount()
        volume.wait_for_daemons(60)
    print("a terminal that hangs up: the daemon goes on")


def read_only_medium():
    """A volume that was not even closed, on a disk that takes no writes."""
    why = why_no_loop_disk()
    if why:
        skip_part("life_cycle, a medium that is read-only", why)
        return
    with LoopDisk("life-cycle", 128 << 20) as disk, Volume("read-only-medium") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make()
        volume.mount()
        for i in range(50):
            write(os.path.join(volume.mnt, f"file{i}"), f"content {i}" * 1000)
        volume.run("nacre", "sync", volume.mnt)
        write(os.path.join(volume.mnt, "later"), "perhaps")
        volume.kill()
        volume.detach()
        subprocess.run(["mount", "-o", "remount,ro", disk.path], check=True)
        status, text = volume.mount(expect=None)
        check(status == 8 and "-o ro" in text, f"mounting to write: {status}, {text}")
        volume.mount("-o", "ro")
        for i in range(50):
            check(read(os.path.join(volume.mnt, f"file{i}")) == f"content {i}" * 1000,
                  f"file{i} was synced and differs")
        try:
            write(os.path.join(volume.mnt, "new"), "new")
            raise Failure("a read-only mount takes a new file")
        except OSError as error:
            check(error.errno == errno.EROFS, f"a new file: {error}")
        stats(volume)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")
        subprocess.run(["mount", "-o", "remount,rw", disk.path], check=True)
        volume.mount()
        check(read(os.path.join(volume.mnt, "file7")) == "content 7" * 1000, "file7 differs")
        volume.unmount()
        volume.wait_for_daemons(60)
    print("a read-only medium: read with -o ro, and written again later")


def main():
    try:
        dead_daemon()
        terminal()
        suspend()
        clock_steps(os.path.realpath(sys.argv[1]))
        read_only_medium()
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
