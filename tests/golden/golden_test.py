#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The golden volumes, of copies of them, as every later build must find them.

    golden_test.py            read_volume.py reads all, byte for byte; fsck.nacre --deep --scrub finds
                              nothing, and read_volume.py reads all after it
    golden_test.py --mounts   a mount shows all, byte for byte; what is written to it stays, and
                              fsck.nacre and read_volume.py find that, too

NAME.list says what a volume holds: make_golden.sh. The committed files are never worked on.
"""
import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

GOLDEN = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(GOLDEN, "../support"))
sys.path.insert(0, GOLDEN)
# pylint: disable=wrong-import-position
from golden_tree import listing
from needs import need_reader
from volume import PATIENCE, Failure, Volume, bin_folder

PASSPHRASE = os.path.join(GOLDEN, "golden_passphrase")


def archives():
    found = sorted(glob.glob(os.path.join(GOLDEN, "*.tar.xz")))
    if len(found) < 10:
        raise Failure(f"only {len(found)} golden volumes are there")
    return found


def unpack(archive, folder):
    with tarfile.open(archive) as packed:
        packed.extractall(folder)


def read_volume(*arguments):
    done = subprocess.run([sys.executable, os.path.join(GOLDEN, "read_volume.py"), *arguments],
                          capture_output=True, timeout=300 * PATIENCE, check=False)
    if done.returncode != 0:
        raise Failure(f"read_volume.py ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return done.stdout


def listed(archive):
    with open(archive.replace(".tar.xz", ".list"), encoding="utf-8") as file:
        return file.read().splitlines()


def compare(found, wanted, who):
    for said in found:
        if said not in wanted:
            raise Failure(f"{who}: {said[:300]}")
    for said in wanted:
        if said not in found:
            raise Failure(f"{who} lacks {said[:300]}")


def check_by_reader(volume, archive, who):
    text = read_volume("list", "--passphrase-file", PASSPHRASE, volume).decode()
    compare(text.splitlines(), listed(archive), who)


def check_commands(volume, archive):
    """ls and cat say what list does: cat of all files, or without NACRE_LONG of six, others in each run."""
    wanted = [json.loads(line) for line in listed(archive)]
    paths = read_volume("ls", "--null", "--passphrase-file", PASSPHRASE, volume).split(b"\0")[:-1]
    if [os.fsdecode(path) for path in paths] != [each["path"] for each in wanted]:
        raise Failure("read_volume.py ls has other paths")
    files = [each for each in wanted if each["kind"] == "file"]
    for each in files:
        content = read_volume("cat", "--passphrase-file", PASSPHRASE, volume, each["path"])
        if hashlib.sha256(content).hexdigest() != each["sha256"]:
            raise Failure(f"read_volume.py cat: {each['path']} has other bytes")


def fsck(volume, home, *options):
    done = subprocess.run([os.path.join(bin_folder(), "fsck.nacre"), "--deep", "--scrub", *options,
                           "--passphrase-file", PASSPHRASE, volume], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300 * PATIENCE,
                          env=dict(os.environ, HOME=home, XDG_CONFIG_HOME=home), check=False)
    named = fingerprint_to_name(done.returncode, done.stdout.decode())
    if named and not options:
        fsck(volume, home, *named)
        return
    if done.returncode != 0:
        raise Failure(f"fsck.nacre ended with {done.returncode}: {done.stdout.decode()[-2000:]}")


def fingerprint_to_name(status, text):
    """Whoever rotated the keys could not sign for the passphrase, and nobody knows the volume here."""
    shown = re.search("The fingerprint of what is there is ([0-9a-f]{64})", text)
    return ("--fingerprint", shown.group(1)) if status == 8 and shown else ()


def check_unmounted(archive):
    with tempfile.TemporaryDirectory(prefix="nacre-golden.") as work:
        volume, home = os.path.join(work, "volume"), os.path.join(work, "home")
        os.mkdir(volume)
        os.mkdir(home)
        unpack(archive, volume)
        check_by_reader(volume, archive, "read_volume.py")
        if archive.endswith("gcm256_lz77_closed.tar.xz"):
            check_commands(volume, archive)
        fsck(volume, home)
        check_by_reader(volume, archive, "read_volume.py after fsck.nacre")


def check_mounted(archive):
    with Volume("golden") as volume:
        os.mkdir(volume.path)
        unpack(archive, volume.path)
        shutil.copy(PASSPHRASE, volume.passphrase)
        status, text = volume.mount(expect=(0, 8))
        if status != 0:
            volume.mount(*fingerprint_to_name(status, text))
        compare(listing(volume.mnt), listed(archive), "the mount")
        with open(os.path.join(volume.mnt, "written now"), "wb") as file:
            file.write(b"by a later build\n" * 1000)
        wanted = listing(volume.mnt)
        volume.unmount()
        volume.fsck("--deep", "--scrub")
        text = read_volume("list", "--passphrase-file", PASSPHRASE, volume.path).decode()
        compare(text.splitlines(), wanted, "read_volume.py after a mount")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mounts", action="store_true")
    need_reader("golden_test")
    check = check_mounted if parser.parse_args().mounts else check_unmounted
    failed = 0
    for archive in archives():
        name = os.path.basename(archive).replace(".tar.xz", "")
        try:
            check(archive)
            print(f"ok      {name}")
        except Failure as failure:
            failed += 1
            print(f"FAILED  {name}: {failure}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
