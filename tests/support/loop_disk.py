# SPDX-License-Identifier: Apache-2.0
"""A small ext4 disk of its own for a volume, by root; unmounted and freed however the test ends.

Enter it before the Volume: what is mounted from it goes first.
"""
import os
import shutil
import subprocess
import tempfile
import time

from volume import Failure, skip


def why_no_loop_disk():
    if os.getuid() != 0:
        return "needs root to mount a disk of its own"
    if not shutil.which("mkfs.ext4"):
        return "there is no mkfs.ext4"
    return None


class LoopDisk:
    """Where there can be none the whole test is skipped."""

    def __init__(self, name, size):
        if why_no_loop_disk():
            skip(name, why_no_loop_disk())
        self.name = name
        self.work = tempfile.mkdtemp(prefix=f"nacre-disk-{name}.")
        self.path = os.path.join(self.work, "disk")
        image = os.path.join(self.work, "disk.image")
        os.mkdir(self.path)
        with open(image, "wb") as f:
            os.truncate(f.fileno(), size)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
        mounted = subprocess.run(["mount", "-o", "loop", image, self.path], check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if mounted.returncode != 0:
            shutil.rmtree(self.work)
            skip(name, f"no loop device: {mounted.stdout.decode(errors='replace').strip()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        # A daemon that was killed holds its files a moment longer than its process.
        for _ in range(100):
            done = subprocess.run(["umount", self.path], check=False, stderr=subprocess.PIPE)
            if done.returncode == 0:
                break
            time.sleep(0.1)
        else:
            raise Failure(f"{self.path} stays mounted: {done.stderr.decode(errors='replace')}")
        if not (os.environ.get("NACRE_KEEP") and kind):
            shutil.rmtree(self.work)
        else:
            print(f"kept for a look: {self.work}")

    def used_bytes(self):
        info = os.statvfs(self.path)
        return (info.f_blocks - info.f_bfree) * info.f_frsize
