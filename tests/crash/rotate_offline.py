#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys of a volume that is not mounted are rotated, and nacre key rotate is killed at random moments.

    rotate_offline.py [--kills N] [--seed S]

Such a rotation runs at full speed, past the system's cache. A kill falls between the new keyring and
the end, wherever these lie on a busy machine. After each fsck.nacre --deep finds nothing, but for an
older copy of keyring or superblock where the kill fell between two, and a mount mends that. Every file is
what it was; the next run, or a mount now and then, goes on with what was interrupted. In the end
nothing is left under an older epoch.
"""
import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import PATIENCE, Failure, Volume, full_counts, wait_for  # noqa: E402

FILE_COUNT = 60
GOES_ON = b"interrupted goes on"


def make_content(chance):
    """Noise, and what compresses; short ones too, that lie in rows."""
    size = chance.choice([100, 5_000, 300_000, 1_000_000, 3_000_001])
    noise = chance.randbytes(size // 2)
    return noise + noise[:1000] * (size // 2000)


class Rotations:
    def __init__(self, volume, seed):
        self.volume = volume
        self.chance = random.Random(seed)
        self.digests = {}
        self.finished = self.interrupted = self.taken_up = 0
        self.reseal_s = None

    def fill(self):
        self.volume.mount()
        for number in range(FILE_COUNT):
            data = make_content(self.chance)
            name = f"f{number}"
            self.digests[name] = hashlib.sha256(data).digest()
            with open(os.path.join(self.volume.mnt, name), "wb") as f:
                f.write(data)
        self.volume.unmount()

    def check_volume(self):
        """Whether both copies of the keyring and of the superblock are the same."""
        status, text = self.volume.fsck("--deep", expect=(0, 4))
        older = len(re.findall(r"(?:keyring|superblock)\.copy is of generation .* an update was interrupted",
                               text))
        if status == 4 and not (older == 1 and ": 1 error found" in text):
            raise Failure(f"after a kill: {text}")
        return status == 0

    def check_files(self):
        self.volume.mount()
        for name, digest in self.digests.items():
            with open(os.path.join(self.volume.mnt, name), "rb") as f:
                if hashlib.sha256(f.read()).digest() != digest:
                    raise Failure(f"{name} has changed")
        self.volume.unmount()
        self.volume.fsck("--deep")

    def command(self):
        return [os.path.join(self.volume.bin, "nacre"), "key", "rotate", "--passphrase-file",
                self.volume.passphrase, self.volume.path]

    def keyring_identity(self):
        return os.stat(os.path.join(self.volume.path, "keyring")).st_ino

    def run(self, kill_at=None):
        """Whether it ended by itself. kill_at: 0, when it has begun or goes on, to 1, as long after that as
        the first one took to end."""
        before = self.keyring_identity()
        with open(os.path.join(self.volume.work, "output"), "w+b") as output, \
                subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, env=self.volume.environment) as process:
            def said():
                return os.pread(output.fileno(), 100_000, 0)

            try:
                wait_for(lambda: self.keyring_identity() != before or GOES_ON in said()
                         or process.poll() is not None, 120, "nacre key rotate has not begun")
                begin = time.monotonic()
                process.wait(120 * PATIENCE if kill_at is None else kill_at * self.reseal_s)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                if kill_at is None:
                    raise Failure("nacre key rotate hangs") from None
                return False
            except Failure:
                process.kill()
                raise
            if self.reseal_s is None:
                self.reseal_s = time.monotonic() - begin
            text = said()
        if process.returncode != 0:
            raise Failure(f"nacre key rotate ended with {process.returncode}: "
                          f"{text.decode(errors='replace')[-2000:]}")
        self.taken_up += GOES_ON in text
        self.finished += 1
        return True

    def is_under_way(self):
        text = self.volume.run("nacre", "key", "status", "--json", self.volume.path)[1]
        return json.loads(text)["rotation"] != "none"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=150 if full_counts() else 10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with Volume("rotate-offline") as volume:
        volume.make()
        rotations = Rotations(volume, arguments.seed)
        rotations.fill()
        rotations.run()
        kills = 0
        # To its end goes what the last kill interrupted.
        while kills < arguments.kills or not rotations.is_under_way():
            if kills > 20 * arguments.kills:
                raise Failure("no kill falls within a rotation")
            kills += 1
            if rotations.run(kill_at=rotations.chance.random()):
                continue
            rotations.interrupted += rotations.is_under_way()
            if not rotations.check_volume() or kills % 5 == 0:
                rotations.check_files()
        taken_up = rotations.taken_up
        rotations.run()
        if rotations.taken_up != taken_up + 1:
            raise Failure("what was interrupted was not taken up")
        if rotations.is_under_way():
            raise Failure("a rotation that ended is still under way")
        volume.run("nacre", "key", "status", "--verify", volume.path)
        volume.fsck("--deep")
        rotations.check_files()
        print(f"{kills} kills, {rotations.interrupted} of them within a rotation; "
              f"{rotations.finished} ended, {rotations.taken_up} of these what was interrupted; "
              f"one takes {rotations.reseal_s:.2f} s")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
