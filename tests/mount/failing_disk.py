#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The disk, or the server of a network directory, fails under a mounted volume. Programs are told,
changes are refused, everybody learns why, unmounting does not hang, and what was synced is there
afterwards. LIBRARY (disk_error.cpp) fails the daemon's calls.

    failing_disk.py LIBRARY
"""
import errno
import json
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from daemon_memory import is_instrumented  # noqa: E402
from volume import Failure, Volume, skip, wait_for  # noqa: E402

SYNCED = b"synced " * 30_000
LOST = b"lost " * 30_000
UNMOUNT_LIMIT_S = 60


def check(condition, what):
    if not condition:
        raise Failure(what)


def write_synced(path, content):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    try:
        os.write(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def errno_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return error.errno
    return 0


def expect_refusal(volume, log):
    """Of changes, and of each sync; with the reason wherever somebody may look for it."""
    path = os.path.join(volume.mnt, "late")
    code = errno_of(write_synced, path, LOST)
    check(code in (errno.EIO, errno.ESTALE, errno.EROFS), f"a write is told {code}")
    for call, arguments in ((os.mkdir, ("d",)), (os.unlink, ("kept",)), (os.rename, ("kept", "k"))):
        names = [os.path.join(volume.mnt, name) for name in arguments]
        code = errno_of(call, *names)
        check(code == errno.EROFS, f"{call.__name__} is told {errno.errorcode.get(code, code)}")
    with open(log, encoding="utf-8") as f:
        text = f.read()
    for words in ("a commit failed", "the volume refuses changes from now on",
                  "what was durable before stays", "unmount, mend the cause and mount again"):
        check(words in text, f"the log does not say '{words}': {text[-3000:]}")
    health = json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])["stats"]["health"]
    check(health != "ok" and volume.path in health, f"nacre stats says of its health: {health}")
    status, text = volume.run("nacre", "sync", volume.mnt, expect=(8,))
    check(volume.path in text, f"nacre sync does not say where: {text}")


def unmount(volume, how):
    if how == "nacre umount":
        # It cannot vouch for what was not yet on disk, and says so.
        status, text = volume.run("nacre", "umount", volume.mnt, limit_s=UNMOUNT_LIMIT_S,
                                  expect=(8,))
        check(volume.path in text, f"nacre umount does not say why it failed: {text}")
        if os.path.ismount(volume.mnt):
            unmount(volume, "umount")
        return
    command = ["umount"] if os.getuid() == 0 else ["fusermount3", "-u"]
    try:
        done = subprocess.run([*command, volume.mnt], check=False, timeout=UNMOUNT_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"{command[0]} hangs on a disk that fails") from None
    check(done.returncode == 0 and not os.path.ismount(volume.mnt), f"{command[0]} does not unmount")


def fail_with(library, number, how):
    with Volume("failing-disk") as volume:
        control = os.path.join(volume.work, "error")
        log = os.path.join(volume.work, "log")

        def set_error(code):
            with open(control, "r+b" if os.path.exists(control) else "wb") as f:
                f.write(struct.pack("=i", code))

        set_error(0)
        volume.make()
        volume.environment.update(LD_PRELOAD=library, NACRE_DISK_ERROR=control)
        volume.mount("-o", "commit=300", "--log-file", log)
        if is_instrumented(volume.daemons()[0]):
            skip("failing_disk", "a sanitizer's runtime comes first")
        write_synced(os.path.join(volume.mnt, "kept"), SYNCED)
        set_error(number)
        code = errno_of(write_synced, os.path.join(volume.mnt, "lost"), LOST)
        check(code in (errno.EIO, errno.ESTALE),
              f"fsync of what the disk did not take is told {errno.errorcode.get(code, code)}")
        expect_refusal(volume, log)
        unmount(volume, how)
        wait_for(lambda: not volume.daemons(), UNMOUNT_LIMIT_S, "the daemon hangs")
        set_error(0)
        volume.fsck("--deep")
        volume.mount()
        with open(os.path.join(volume.mnt, "kept"), "rb") as f:
            check(f.read() == SYNCED, "what was synced is lost")
        volume.unmount()
        volume.wait_for_daemons(UNMOUNT_LIMIT_S)


def main():
    try:
        for number in (errno.EIO, errno.ESTALE):
            for how in ("nacre umount", "umount"):
                fail_with(sys.argv[1], number, how)
                print(f"{errno.errorcode[number]}, {how}: told, refused, unmounted, nothing lost")
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
