#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A volume that is older than this machine has seen it is refused, with a message that says by how much.
A volume that is only newer, or that a crash left, is accepted.

Refused are: the volume as it once was, its live log cut below what was synced, and a copy of an older
state that was used elsewhere. Accepted are: a volume after kill -9, after use on two machines in turn,
after its keys were changed and rotated, and a backup that the user accepts.
"""
import glob
import json
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402
from machines import Machines  # noqa: E402

TEST = "older_states"
OLDER = "is older than when this machine saw it last"
ACCEPT = "--accept-older-state"


class Scene(Machines):
    def __init__(self, volume):
        super().__init__(volume, volume.work)
        self.path = volume.path
        self.on_machine("here")

    def mount(self, *options, path=None, **expected):
        expected.setdefault("without", OLDER)
        return self.run("mount.nacre", path or self.path, self.point, *self.secret, *options,
                        **expected)

    def refused(self, words, *options, path=None):
        """A mount, a mount for reading, a check and a command that changes something refuse the volume."""
        where = path or self.path
        before = self.witness()
        for command in (("mount.nacre", where, self.point), ("mount.nacre", "-o", "ro", where, self.point),
                        ("fsck.nacre", where), ("nacre", "trim", where)):
            self.run(*command, *self.secret, *options, expect=8, words=OLDER + ".*" + words + ".*" + ACCEPT)
        if self.witness() != before or os.path.ismount(self.point):
            raise support.Failure("what was refused was remembered or mounted")

    def use(self, name, *options, path=None):
        """Mounts for writing, writes one file, and unmounts."""
        self.mount(*options, path=path)
        self.write(name)
        self.umount()

    def write(self, name):
        with open(os.path.join(self.point, name), "wb") as file:
            file.write(name.encode() * 1000)
            file.flush()
            os.fsync(file.fileno())

    def witness(self):
        text = self.run("nacre", "witness", "--json", self.path)
        return json.loads(text[text.index("{"):])["copies"]

    def keep(self, name, path=None):
        kept = os.path.join(self.work, name)
        shutil.copytree(path or self.path, kept, ignore=shutil.ignore_patterns("*.sock"))
        return kept

    def put(self, kept):
        shutil.rmtree(self.path)
        shutil.copytree(kept, self.path)


def expect(condition, what):
    if not condition:
        raise support.Failure(what)


def check_put_back(scene):
    scene.use("one")
    first = scene.keep("first")
    scene.use("two")
    newest = scene.keep("newest")
    closings = scene.witness()[0]["closings"]
    expect([one["session_count"] for one in closings] == [2, 1], f"two closings are remembered: {closings}")
    scene.put(first)
    scene.refused("opened for writing 1 times, but 2 times.*changes are missing of.*"
                  "as it was when it was closed at 20")
    scene.mount(expect=8, words="Do you know about it.*not opened", without=None, answers=["no"])
    scene.put(newest)
    scene.use("three")

    # A user who knows about it accepts it once.
    scene.put(first)
    scene.mount(ACCEPT)
    scene.write("another two")
    scene.umount()
    scene.use("another three")
    # The newest state of before does not continue the accepted one, however far it came.
    scene.put(newest)
    scene.refused("does not know the opening for writing|opened for writing 2 times, but 3")
    scene.mount(words="Do you know about it", without=None, answers=["yes"])
    scene.umount()
    scene.use("four")


def frames(path):
    with open(path, "rb") as file:
        content = file.read()
    at = 64
    while content[at:at + 4] == b"NFRM":
        size = struct.unpack_from("<I", content, at + 4)[0]
        yield at
        at += 48 + size


def check_cut_log(scene):
    scene.mount("-o", "commit=1")
    for i in range(6):
        scene.write(f"synced {i}")
    noted = lambda: scene.witness()[0]["last"]["change_count"]  # noqa: E731
    before = noted()
    scene.write("and noted")
    support.wait_for(lambda: noted() > before, 120, "the witness does not hear of what is synced")
    scene.volume.kill()
    scene.volume.detach()
    whole = scene.keep("killed")
    log = max(glob.glob(os.path.join(scene.path, "db", "*.log")))
    places = list(frames(log))
    expect(len(places) > 4, f"the log has frames: {places}")
    with open(log, "r+b") as file:
        file.truncate(places[-3])
    scene.refused("changes are missing of [0-9]+ that were safe")
    scene.put(whole)
    scene.run("fsck.nacre", scene.path, *scene.secret, words="clean", without=OLDER)
    scene.use("after the crash")
    expect(scene.witness()[0]["last"]["session_count"] > 1, "the witness goes on")


def check_crashes(scene):
    """Whenever kill -9 comes, the volume that it leaves is never older than what was noted."""
    for i in range(6):
        scene.mount("-o", "commit=1")
        for name in range(5 * i):
            with open(os.path.join(scene.point, f"crash {i} {name}"), "wb") as file:
                file.write(b"not synced" * 100)
        if i % 2:
            scene.write(f"crash {i}")
        scene.volume.kill()
        scene.volume.detach()
    scene.run("fsck.nacre", scene.path, *scene.secret, words="clean", without=OLDER)


def check_two_machines(scene):
    for turn in range(3):
        for machine in ("here", "there"):
            scene.on_machine(machine)
            scene.use(f"{machine} {turn}")
    scene.on_machine("here")
    # Keys are changed and rotated, mounted or not, on either machine.
    scene.run("nacre", "key", "add", scene.path, *scene.secret, "--recovery", without=OLDER)
    scene.on_machine("there")
    scene.use("after a new recipient")
    scene.run("nacre", "key", "rotate", scene.path, *scene.secret, without=OLDER)
    scene.use("after a rotation")
    scene.mount()
    scene.run("nacre", "key", "rotate", scene.point, without=OLDER)
    scene.umount()
    scene.use("after another")
    scene.run("fsck.nacre", "--deep", scene.path, *scene.secret, words="clean", without=OLDER)


def check_branch(scene):
    """A copy of an older state was used elsewhere more often than the volume was here."""
    old = scene.keep("branch")
    scene.use("here alone")
    scene.on_machine("far away")
    for i in range(4):
        scene.use(f"far away {i}", path=old)
    scene.on_machine("there")
    newest = scene.keep("trunk")
    scene.put(old)
    scene.refused("does not know the opening for writing")
    scene.put(newest)
    scene.use("the trunk goes on")


def check_backup(scene):
    backup = os.path.join(scene.work, "backup")
    scene.run("nacre", "backup", scene.path, backup)
    # The backup is as new as the volume.
    scene.run("fsck.nacre", backup, *scene.secret, words="clean", without=OLDER)
    scene.use("since the backup")
    # The backup is known at its own path from then on. The volume is still compared with itself.
    scene.mount("-o", "ro,accept-older-state", path=backup)
    scene.umount()
    scene.mount("-o", "ro", path=backup)
    scene.umount()
    older = scene.keep("older trunk")
    scene.use("once more")
    newest = scene.keep("newest trunk")
    scene.put(older)
    scene.refused("opened for writing")
    scene.put(newest)
    scene.run("nacre", "backup", scene.path, backup)
    scene.run("fsck.nacre", backup, *scene.secret, words="clean", without=OLDER)
    # In the place of the volume the message says that it is a backup.
    scene.use("behind the backup")
    scene.put(backup)
    scene.refused("Either this is a backup, or was made from one")
    scene.mount(ACCEPT)
    scene.umount()
    scene.use("restored")


def main():
    with support.Volume(TEST) as volume:
        volume.make()
        scene = Scene(volume)
        scene.run("nacre", "witness", scene.path, words="not opened .* for writing yet")
        check_put_back(scene)
        check_cut_log(scene)
        check_crashes(scene)
        check_two_machines(scene)
        check_branch(scene)
        check_backup(scene)
        scene.run("nacre", "witness", scene.path, words="seen last.*closed")
    print("what is older is refused, and nothing else")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
