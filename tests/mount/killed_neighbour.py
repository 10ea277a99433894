#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes are killed while they make and remove links, change modes and attributes. nacre sync and
nacre umount do not fail for it. Over io_uring nobody else hears of it either; over /dev/fuse the kernel
may fail the next close() of the file (docs/KERNEL.md, "Killed processes").

    killed_neighbour.py [--io-uring]
"""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from rings import over_chosen_transport  # noqa: E402
from volume import Failure, Volume  # noqa: E402

ROUNDS = 100


def attempt(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass


def work_for_ever(top):
    path = os.path.join(top, "file")
    while True:
        attempt(os.unlink, os.path.join(top, "other"))
        attempt(os.link, path, os.path.join(top, "other"))
        attempt(os.setxattr, path, "user.a", b"1")
        attempt(os.chmod, path, 0o640)
        attempt(os.rename, os.path.join(top, "other"), os.path.join(top, "third"))
        attempt(os.rename, os.path.join(top, "third"), os.path.join(top, "other"))


def kill_one(top):
    child = os.fork()
    if child == 0:
        work_for_ever(top)
    time.sleep(random.uniform(.005, .03))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def run(name, rings_are):
    transport = ("-o", f"io_uring={rings_are}")
    with Volume(name) as volume:
        volume.make()
        volume.mount(*transport)
        path = os.path.join(volume.mnt, "file")
        with open(path, "w", encoding="ascii") as f:
            f.write("content")
        failed = 0
        for _ in range(ROUNDS):
            kill_one(volume.mnt)
            try:
                os.close(os.open(path, os.O_RDONLY))
            except OSError:
                failed += 1
        if failed and rings_are == "on":
            raise Failure(f"{failed} of {ROUNDS} closes after a kill failed")
        for _ in range(20):
            kill_one(volume.mnt)
            volume.run("nacre", "sync", volume.mnt)
        kill_one(volume.mnt)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.mount(*transport)
        with open(path, encoding="ascii") as f:
            if f.read() != "content":
                raise Failure("the file differs")
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck()
    print(f"{ROUNDS} processes killed: {failed} closes of others failed, no sync and no unmount")


if __name__ == "__main__":
    sys.exit(over_chosen_transport("killed-neighbour", run))
