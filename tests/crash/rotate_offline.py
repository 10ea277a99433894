#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keys of a volume that is not mounted are rotated, and nacre key rotate is killed at random moments.

    rotate_offline.py [--kills N] [--seed S]

Such a rotation runs at full speed, past the system's cache. After each kill fsck.nacre --deep finds
nothing and every file is what it was; the next run, or a mount now and then, goes on with what was
interrupted. In the end nothing is left under an older epoch.
"""
import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import PATIENCE, Failure, Volume, full_counts  # noqa: E402

FILE_COUNT = 60


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

    def fill(self):
        self.volume.mount()
        for number in range(FILE_COUNT):
            data = make_content(self.chance)
            name = f"f{number}"
            self.digests[name] = hashlib.sha256(data).digest()
            with open(os.path.join(self.volume.mnt, name), "wb") as f:
                f.write(data)
        self.volume.unmount()

    def check_files(self):
        self.volume.mount()
        for name, digest in self.digests.items():
            with open(os.path.join(self.volume.mnt, name), "rb") as f:
                if hashlib.sha256(f.read()).digest() != digest:
                    raise Failure(f"{name} has changed")
        self.volume.unmount()

    def command(self):
        return [os.path.join(self.volume.bin, "nacre"), "key", "rotate", "--passphrase-file",
                self.volume.passphrase, self.volume.path]

    def run(self, kill_after_s=None):
        """Whether it ended by itself."""
        with subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=self.volume.environment) as process:
            try:
                text = process.communicate(timeout=kill_after_s or 120 * PATIENCE)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                if kill_after_s is None:
                    raise Failure("nacre key rotate hangs") from None
                return False
        if process.returncode != 0:
            raise Failure(f"nacre key rotate ended with {process.returncode}: "
                          f"{text.decode(errors='replace')[-2000:]}")
        self.taken_up += b"interrupted goes on" in text
        self.finished += 1
        return True

    def is_under_way(self):
        text = self.volume.run("nacre", "key", "status", "--json", self.volume.path)[1]
        return json.loads(text)["rotation"] != "none"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=150 if full_counts() else 15)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with Volume("rotate-offline") as volume:
        volume.make()
        rotations = Rotations(volume, arguments.seed)
        rotations.fill()
        begin = time.monotonic()
        rotations.run()
        whole_s = time.monotonic() - begin
        for number in range(arguments.kills):
            if rotations.run(kill_after_s=rotations.chance.uniform(0.3, 0.95) * whole_s):
                continue
            rotations.interrupted += rotations.is_under_way()
            volume.fsck("--deep")
            if number % 5 == 0:
                rotations.check_files()
        if arguments.kills >= 15 and (rotations.interrupted == 0 or rotations.taken_up == 0):
            raise Failure("no kill fell within a rotation")
        rotations.run()
        if rotations.is_under_way():
            raise Failure("a rotation that ended is still under way")
        volume.run("nacre", "key", "status", "--verify", volume.path)
        volume.fsck("--deep")
        rotations.check_files()
        print(f"{arguments.kills} kills, {rotations.interrupted} of them within a rotation; "
              f"{rotations.finished} ended, {rotations.taken_up} of these what was interrupted; "
              f"one takes {whole_s:.2f} s")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"failed: {failure}")
