# SPDX-License-Identifier: Apache-2.0
"""The sound volumes that the defects are made in: small, each made the same way each time.

earlier   written to in one mount and closed
closed    the same volume, once more mounted: `a` has other bytes, a recipient was added; closed
killed    the same, a third time: three files were made, each was synced, and the daemon was killed
other     another volume with the same passphrase and the same files as in earlier, closed
"""
import json
import os
import random
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import Volume  # noqa: E402
from volume_bytes import Record, VolumeBytes, segment_file  # noqa: E402

NAMES = ("earlier", "closed", "killed", "other")
SMALL = ("one", "two", "three")
# A chunk of each, in four records: without a codec all of them are of one size.
SIZE = 65_536


def content_of(name, state):
    """What a file holds, by the name of the specimen."""
    if name in SMALL:
        return name.encode() if state == "killed" else None
    seed = f"{name} {'later' if name == 'a' and state in ('closed', 'killed') else 'first'}"
    return random.Random(seed).randbytes(SIZE)


FILES = ("a", "b", *SMALL)


def write(volume, name, content):
    """Small files are synced, which makes rows of the log of them; the others become records."""
    with open(os.path.join(volume.mnt, name), "wb") as f:
        f.write(content)
        if name in SMALL:
            f.flush()
            os.fsync(f.fileno())


def keep(volume, folder, name):
    """A copy, and where the records of its files are."""
    shutil.copytree(volume.path, os.path.join(folder, name),
                    ignore=shutil.ignore_patterns("ballast", "*.sock"))
    _, text = volume.run("nacre", "dump", "tables", "--passphrase-file", volume.passphrase,
                         volume.path)
    inodes = {inode: name for name, inode in
              re.findall(r"^dentries 1 hash \w+ '(\w+)' -> (\d+) ", text, re.MULTILINE)}
    records = {}
    for inode, row in re.findall(r"^chunks (\d+) chunk 0(.*)$", text, re.MULTILINE):
        records[inodes[inode]] = [
            (segment_file(int(segment)), int(offset), int(size))
            for segment, offset, size in re.findall(r" (\d+):(\d+)\+(\d+) version", row)]
    newest = re.findall(r"^system checkpoint .*$", text, re.MULTILINE)[-1]
    records["checkpoint"] = [
        (segment_file(int(segment)), int(offset), int(size))
        for segment, offset, size in re.findall(r" (\d+):(\d+)\+(\d+)", newest)]
    with open(os.path.join(folder, f"{name}.json"), "w", encoding="utf-8") as f:
        json.dump(records, f)


def close(volume):
    volume.unmount()
    volume.wait_for_daemons(60)


def make(folder):
    """All of them, below the folder; it counts as made when `made` is there."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with Volume("bad-specimens") as volume:
        for state in ("earlier", "closed"):
            if state == "earlier":
                volume.make("--codec", "none")
            volume.mount()
            for name in ("a", "b") if state == "earlier" else ("a",):
                write(volume, name, content_of(name, state))
            if state == "closed":
                volume.run("nacre", "key", "add", "--passphrase-file", volume.passphrase,
                           "--recovery", "--label", "recovery", volume.mnt)
                # What it would move when it likes lies at its new place for certain.
                volume.run("nacre", "trim", volume.mnt)
            close(volume)
            keep(volume, folder, state)
        volume.mount()
        for name in SMALL:
            write(volume, name, content_of(name, "killed"))
        volume.kill()
        volume.detach()
        keep(volume, folder, "killed")
    with Volume("bad-specimens") as volume:
        volume.make("--codec", "none")
        volume.mount()
        for name in ("a", "b"):
            write(volume, name, content_of(name, "other"))
        close(volume)
        keep(volume, folder, "other")
    with open(os.path.join(folder, "made"), "w", encoding="utf-8"):
        pass


def is_made(folder):
    return os.path.exists(os.path.join(folder, "made"))


def original(folder, name):
    with open(os.path.join(folder, f"{name}.json"), encoding="utf-8") as f:
        records = {file: [Record(*r) for r in rows] for file, rows in json.load(f).items()}
    return VolumeBytes(os.path.join(folder, name), records)


def copy(folder, name, path):
    """One of them at another path, to be broken with what the originals hold."""
    sound = original(folder, name)
    shutil.copytree(sound.path, path)
    return VolumeBytes(path, sound.records, {name: original(folder, name) for name in NAMES})
