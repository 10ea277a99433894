#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nacre lock and nacre unlock: the mount stays, everything fails with EIO in between, and all that was
open goes on afterwards."""
import contextlib
import errno
import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
import volume as support  # noqa: E402
from volume import Failure, Volume, wait_for  # noqa: E402

TEST = "lock"
PAGE = mmap.PAGESIZE


def check(condition, what):
    if not condition:
        raise Failure(what)


def errno_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def check_locked(call, *arguments):
    found = errno_of(call, *arguments)
    check(found == errno.EIO, f"{call.__name__}{arguments[:1]} of a locked mount: errno {found}")


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def lock(volume, expect=(0,)):
    return volume.run("nacre", "lock", volume.mnt, expect=expect)


def unlock(volume, expect=(0,), secret=None):
    return volume.run("nacre", "unlock", *(secret or ("--passphrase-file", volume.passphrase)),
                      volume.mnt, expect=expect)


def info_of(volume):
    return json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])


def expect_words(found, *words):
    for word in words:
        check(word in found[1], f"{word!r} is not in: {found[1]}")


@contextlib.contextmanager
def mounted(*options, content=None):
    with Volume(TEST) as volume:
        volume.make()
        volume.mount()
        if content:
            content(volume)
        if options:
            volume.unmount()
            volume.wait_for_daemons(60)
            volume.mount(*options)
        yield volume


def end(volume):
    """Everything was stored."""
    volume.unmount()
    volume.wait_for_daemons(60)
    volume.fsck("--deep")


def everything_fails(volume, file, folder):
    at = lambda name: os.path.join(volume.mnt, name)  # noqa: E731
    check_locked(os.stat, at("file"))
    check_locked(os.listdir, volume.mnt)
    check_locked(os.listdir, folder)
    check_locked(os.open, at("file"), os.O_RDONLY)
    check_locked(os.open, at("new"), os.O_RDWR | os.O_CREAT)
    check_locked(os.mkdir, at("newer"))
    check_locked(os.rename, at("file"), at("renamed"))
    check_locked(os.unlink, at("file"))
    check_locked(os.pread, file, 10, 0)
    check_locked(os.pwrite, file, b"lost", 0)
    check_locked(os.fsync, file)
    check_locked(os.fstat, file)
    check_locked(os.statvfs, volume.mnt)
    check_locked(os.getxattr, at("file"), "user.any")
    check_locked(os.truncate, at("file"), 0)
    # The kernel's own question, which must not wait.
    os.sync()


def open_files_go_on():
    """What is dirty is stored before, and handles of every kind work after."""
    with mounted() as volume:
        at = lambda name: os.path.join(volume.mnt, name)  # noqa: E731
        os.mkdir(at("folder"))
        for number in range(50):
            write(at(f"folder/{number}"), b"%d" % number)
        content = os.urandom(3 * 1024 * 1024 + 17)
        write(at("file"), content)
        file = os.open(at("file"), os.O_RDWR)
        appended = os.open(at("log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(appended, b"before\n")
        folder = os.open(at("folder"), os.O_RDONLY | os.O_DIRECTORY)
        unnamed = os.open(volume.mnt, os.O_RDWR | os.O_TMPFILE, 0o600)
        os.write(unnamed, b"has no name yet")
        gone = os.open(at("gone"), os.O_RDWR | os.O_CREAT)
        os.write(gone, b"has no name any more")
        os.unlink(at("gone"))
        forgotten = os.open(at("forgotten"), os.O_RDWR | os.O_CREAT)
        os.write(forgotten, b"x" * 100_000)
        os.unlink(at("forgotten"))
        mapped = mmap.mmap(file, PAGE * 4)
        mapped[:5] = b"dirty"
        os.pwrite(file, b"written", PAGE)
        expected = bytearray(content)
        expected[:5] = b"dirty"
        expected[PAGE:PAGE + 7] = b"written"

        lock(volume)
        everything_fails(volume, file, at("folder"))
        os.close(forgotten)  # the kernel forgets an inode while the volume is locked
        unlock(volume)

        check(os.pread(file, len(content) + 1, 0) == bytes(expected), "the open file's content")
        check(mapped[:5] == b"dirty" and mapped[PAGE:PAGE + 7] == b"written", "the mapping")
        mapped[5:10] = b"again"
        mapped.flush()
        expected[5:10] = b"again"
        os.write(appended, b"after\n")
        check(sorted(os.listdir(folder), key=int) == [str(number) for number in range(50)],
              "the open directory")
        check(os.pread(gone, 100, 0) == b"has no name any more", "the file without a name")
        os.pwrite(gone, b"HAS", 0)
        check(os.pread(gone, 100, 0) == b"HAS no name any more", "the file without a name, written")
        os.link(f"/proc/self/fd/{unnamed}", at("named"), src_dir_fd=folder)  # by linkat(2)
        check(read(at("named")) == b"has no name yet", "the file that got a name late")
        check(errno_of(os.stat, at("new")) == errno.ENOENT, "nothing was made while it was locked")
        for one in (file, appended, folder, unnamed, gone):
            os.close(one)
        mapped.close()
        check(read(at("file")) == bytes(expected) and read(at("log")) == b"before\nafter\n",
              "what was written before and after")
        end(volume)
        volume.mount()
        check(read(at("file")) == bytes(expected) and read(at("named")) == b"has no name yet",
              "after the next mount")
        check(sorted(os.listdir(volume.mnt)) == ["file", "folder", "log", "named"], "its names")
        end(volume)


def commands_say_so():
    with mounted() as volume:
        write(os.path.join(volume.mnt, "file"), b"content")
        expect_words(unlock(volume), "is not locked")
        lock(volume)
        expect_words(lock(volume), "was locked already")
        secret = ("--passphrase-file", volume.passphrase)
        for words in (("stats", volume.mnt), ("sync", volume.mnt), ("trim", volume.mnt),
                      ("scrub", volume.mnt), ("key", "rotate", *secret, volume.mnt),
                      ("backup", volume.mnt, os.path.join(volume.work, "backup"))):
            found = volume.run("nacre", *words, expect=(8,))
            expect_words(found, f"{volume.mnt} is locked", f"nacre unlock {volume.mnt}")
        wrong = os.path.join(volume.work, "wrong")
        write(wrong, b"not the passphrase\n")
        unlock(volume, expect=(16,), secret=("--passphrase-file", wrong))
        check_locked(os.listdir, volume.mnt)
        # The volume's folder is locked all the time.
        volume.run("fsck.nacre", "--repair", *secret, volume.path, expect=(32,))
        unlock(volume)
        expect_words(unlock(volume), "is not locked")
        check(read(os.path.join(volume.mnt, "file")) == b"content", "content")
        end(volume)


def two_unlocks_at_once():
    with mounted() as volume:
        write(os.path.join(volume.mnt, "file"), b"content")
        lock(volume)
        found = []
        threads = [threading.Thread(target=lambda: found.append(unlock(volume, expect=(0, 32))))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check(any(status == 0 for status, _ in found), f"{found}")
        check(read(os.path.join(volume.mnt, "file")) == b"content", "content")
        end(volume)


def other_states_are_refused():
    """Another volume, and an older state of this one, in the volume's folder."""
    with mounted() as volume, Volume(TEST) as other:
        file = os.path.join(volume.mnt, "file")
        other.make()
        write(file, b"first")
        volume.unmount()
        volume.wait_for_daemons(60)
        older = os.path.join(volume.work, "older")
        shutil.copytree(volume.path, older)
        volume.mount()
        write(file, b"second")
        lock(volume)
        parts = [name for name in os.listdir(volume.path) if name != "lock"]
        newest = os.path.join(volume.work, "newest")

        def put(source):
            for name in os.listdir(volume.path):
                if name == "lock":
                    continue
                path = os.path.join(volume.path, name)
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
            for name in os.listdir(source):
                if name == "lock":
                    continue
                path = os.path.join(source, name)
                target = os.path.join(volume.path, name)
                shutil.copytree(path, target) if os.path.isdir(path) else shutil.copy(path, target)

        os.mkdir(newest)
        for name in parts:
            path = os.path.join(volume.path, name)
            target = os.path.join(newest, name)
            shutil.copytree(path, target) if os.path.isdir(path) else shutil.copy(path, target)
        put(older)
        expect_words(unlock(volume, expect=(4,)), "not as it was when it was locked")
        expect_words(unlock(volume, expect=(4,), secret=(
            "--passphrase-file", volume.passphrase, "--accept-older-state")),
                     "not as it was when it was locked")
        put(other.path)
        status, text = unlock(volume, expect=None)
        check(status in (8, 16), f"another volume: {status} {text}")
        check_locked(os.stat, file)
        put(newest)
        unlock(volume)
        check(read(file) == b"second", "the right one")
        end(volume)


def it_ends_while_locked():
    with mounted() as volume:
        file = os.path.join(volume.mnt, "file")
        write(file, b"content")
        kept = os.open(file, os.O_RDWR)
        os.unlink(file)
        write(file, b"another")
        lock(volume)
        volume.unmount(expect=(32,))
        os.close(kept)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")
        volume.mount()
        check(read(file) == b"another", "after an unmount")
        lock(volume)
        for pid in volume.daemons():
            os.kill(pid, signal.SIGTERM)
        volume.wait_for_daemons(60)
        volume.fsck("--deep")
        volume.mount()
        check(read(file) == b"another", "after a signal")
        lock(volume)
        subprocess.run(["umount" if os.geteuid() == 0 else "fusermount3",
                        *([] if os.geteuid() == 0 else ["-u"]), volume.mnt], check=True)
        volume.wait_for_daemons(60)
        volume.fsck("--deep")


def a_read_only_mount():
    def content(volume):
        write(os.path.join(volume.mnt, "file"), b"content" * 10_000)

    with mounted("-o", "ro", content=content) as volume:
        file = os.path.join(volume.mnt, "file")
        handle = os.open(file, os.O_RDONLY)
        check(os.pread(handle, 7, 0) == b"content", "before")
        for _ in range(2):
            lock(volume)
            check_locked(os.pread, handle, 7, 0)
            check_locked(os.stat, file)
            unlock(volume)
            check(read(file) == b"content" * 10_000, "after")
        os.close(handle)
        volume.unmount()
        volume.wait_for_daemons(60)


def scrub_and_rotation_go_on():
    with mounted() as volume:
        content = os.urandom(12 << 20)
        write(os.path.join(volume.mnt, "file"), content)
        secret = ("--passphrase-file", volume.passphrase)
        volume.run("nacre", "sync", volume.mnt)
        volume.run("nacre", "scrub", "--rate", "1M", "--background", volume.mnt)
        volume.run("nacre", "key", "rotate", "--no-wait", "--rate", "1M", *secret, volume.mnt)
        lock(volume)
        unlock(volume)
        stats = info_of(volume)["stats"]
        check(stats["scrub"]["state"] == "running", f"the scrub: {stats['scrub']['state']}")
        check(stats["rotation"]["rotation"] == "running", f"the rotation: {stats['rotation']}")
        volume.run("nacre", "scrub", "--stop", volume.mnt)
        volume.run("nacre", "key", "rotate", "--pause", volume.mnt)
        lock(volume)
        unlock(volume)
        stats = info_of(volume)["stats"]
        check(stats["rotation"]["rotation"] == "paused", f"the rotation: {stats['rotation']}")
        volume.run("nacre", "key", "rotate", "--resume", "--rate", "1G", volume.mnt)
        wait_for(lambda: info_of(volume)["stats"]["rotation"]["rotation"] == "none", 120,
                 "the rotation is not done")
        # Its new key, which nobody was told.
        lock(volume)
        unlock(volume)
        check(read(os.path.join(volume.mnt, "file")) == content, "content")
        end(volume)


def under_load():
    """Programs that write, sync and list without a pause do not keep it from being locked, and lose
    nothing that an fsync said was stored."""
    with mounted("-o", "commit=1") as volume:
        over = threading.Event()
        stored = {}
        errors = []

        def work(number):
            path = os.path.join(volume.mnt, f"{number}")
            count = 0
            while not over.is_set():
                try:
                    with open(path, "ab", buffering=0) as file:
                        while not over.is_set():
                            line = b"%08d\n" % count
                            os.write(file.fileno(), line)
                            os.fsync(file.fileno())
                            os.listdir(volume.mnt)
                            count += 1
                            stored[number] = count
                except OSError as error:
                    if error.errno != errno.EIO:
                        errors.append(error)
                        return
                    # What the line that failed left is no part of what is checked.
                    path = os.path.join(volume.mnt, f"{number}.{count}.{len(parts[number])}")
                    parts[number].append(count)

        parts = {number: [] for number in range(4)}
        threads = [threading.Thread(target=work, args=(number,)) for number in parts]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = dict(stored)
            wait_for(lambda: len(stored) == 4 and
                     all(stored[n] > before.get(n, 0) + 2 for n in parts) or errors, 120,
                     "the programs do not go on")
            lock(volume)
            unlock(volume)
        over.set()
        for thread in threads:
            thread.join()
        check(not errors, f"{errors}")
        for number in parts:
            lines = set()
            for name in os.listdir(volume.mnt):
                if name.split(".")[0] == str(number):
                    lines.update(read(os.path.join(volume.mnt, name)).split(b"\n"))
            missing = [n for n in range(stored[number]) if b"%08d" % n not in lines]
            check(not missing, f"program {number} lost lines {missing[:5]}")
        end(volume)


CASES = [open_files_go_on, commands_say_so, two_unlocks_at_once, other_states_are_refused,
         it_ends_while_locked, a_read_only_mount, scrub_and_rotation_go_on, under_load]


def main():
    wanted = sys.argv[1:]
    for case in CASES:
        if wanted and case.__name__ not in wanted:
            continue
        case()
        print(f"{case.__name__}: fine", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")
