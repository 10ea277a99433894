#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An attacker puts links into a volume's folder, to a file that the attacker may not change. No program
empties or overwrites that file through them."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402

TEST = "planted_links"
CONTENT = b"what somebody else needs\n" * 100


def expect(condition, what, *details):
    if not condition:
        print("FAILED:", what, *details, sep="\n")
        raise support.Failure(what)


class Scene:
    def __init__(self, volume):
        self.volume = volume
        self.victim = os.path.join(volume.work, "victim")
        with open(self.victim, "wb") as file:
            file.write(CONTENT)
        self.key = ["--passphrase-file", volume.passphrase]

    def plant(self, name, symbolic=False):
        path = os.path.join(self.volume.path, name)
        if os.path.lexists(path):
            os.remove(path)
        (os.symlink if symbolic else os.link)(self.victim, path)
        return path

    def check_victim(self, after):
        with open(self.victim, "rb") as file:
            expect(file.read() == CONTENT, f"the file is as it was after {after}")

    def refused(self, what, *command):
        status, text = self.volume.run(*command, expect=None)
        self.check_victim(what)
        expect(status == 8 and "link" in text, f"{what} is refused and says why", str(status), text)


def newer_logs(volume):
    """The names that RocksDB will give its next logs."""
    numbers = [int(number) for name in os.listdir(os.path.join(volume.path, "db"))
               for number in re.findall(r"\d+", name)]
    return [f"db/{max(numbers) + i:06}.log" for i in range(1, 8)]


def main():
    with support.Volume(TEST) as volume:
        volume.make()
        scene = Scene(volume)
        mount = ["mount.nacre", *scene.key, volume.path, volume.mnt]

        path = scene.plant("lock")
        scene.refused("a mount with a linked lock", *mount)
        scene.refused("a repair with a linked lock", "fsck.nacre", "--repair", *scene.key, volume.path)
        os.remove(path)

        for options in (["--log-file"], ["-o", "log=json:"]):
            log = scene.plant("log")
            named = [*options[:-1], options[-1] + log] if options[0] == "-o" else [*options, log]
            scene.refused("a mount with a linked log file", *mount[:1], *named, *mount[1:])
            log = scene.plant("log", symbolic=True)
            scene.refused("a mount with a log file that is a link", *mount[:1], *named, *mount[1:])
            os.remove(log)

        with open(volume.passphrase + "2", "w", encoding="utf-8") as file:
            file.write("another passphrase\n")
        # A file that is made anew takes the place of the link.
        for name in ("keyring.new", "keyring.copy.new", "superblock.new", "superblock.copy.new"):
            scene.plant(name)
        volume.run("nacre", "key", "add", "--new-passphrase-file", volume.passphrase + "2",
                   *support.CHEAP_KDF, *scene.key, volume.path)
        scene.check_victim("a change of the keyring")
        scene.plant("superblock.new")
        volume.run("nacre", "key", "rotate", *scene.key, volume.path, limit_s=600)
        scene.check_victim("a rotation")
        for name in newer_logs(volume) + ["db/LOG"]:
            scene.plant(name)
        # The linked files may stop the mount or be replaced, but nothing is written through them.
        volume.run(*mount, expect=None)
        if os.path.ismount(volume.mnt):
            with open(os.path.join(volume.mnt, "file"), "wb") as file:
                file.write(os.urandom(1 << 20))
                os.fsync(file.fileno())
            volume.unmount()
            volume.wait_for_daemons(60)
        scene.check_victim("a mount with linked files in db/")
    print("nothing was written through a link")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")
