#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One broken volume per kind of defect, with the verdict that fsck.nacre must give of it.

    bad_volumes.py --list               names, one a line
    bad_volumes.py --describe           names and sentences
    bad_volumes.py --make FOLDER        the sound volumes that the others are made of
    bad_volumes.py [--specimens FOLDER] [--show] [NAME…]

The last breaks copies of the sound volumes and compares what is said of them with what the table
says: all defects, or those that are named. --show prints what is said. Without FOLDER it makes
sound volumes of its own. A volume that is only checked must not change by that.
"""
import argparse
import errno
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
import damaged_database  # noqa: E402,F401  these three fill DEFECTS
import damaged_documents  # noqa: E402,F401
import damaged_segments  # noqa: E402,F401
import specimens  # noqa: E402
from verdicts import DEFECTS, FSCK_MODES, MOUNT_MODES  # noqa: E402
from volume import Failure, Volume, skip  # noqa: E402

# The line of counts that begins like one is none.
FINDING = re.compile(r"(?!structure: \d+ files and directories, )"
                     r"(structure|rot|tampered|missing|rolled back|unreadable|note|lost|left|older|"
                     r"damaged): ")


def picture(folder):
    """Everything that a check must leave as it is."""
    seen = {}
    for above, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(above, name)
            if os.path.isfile(path) and not os.path.islink(path) and name != "lock":
                with open(path, "rb") as f:
                    seen[path] = hashlib.sha256(f.read()).hexdigest()
    return seen


class Judge:
    """One defect: each mode on a copy of its own."""

    def __init__(self, volume, folder, defect, show):
        self.volume, self.folder, self.defect, self.show = volume, folder, defect, show
        self.broken = os.path.join(volume.work, "broken")
        self.faults = []

    def run(self):
        expected = self.defect.make(
            specimens.copy(self.folder, self.defect.specimen, self.broken))
        if expected.passphrase:
            with open(self.volume.passphrase, "w", encoding="utf-8") as f:
                f.write(expected.passphrase)
        for mode, said in expected.modes.items():
            self.fresh_copy()
            holder = self.hold() if expected.is_held else None
            if mode in FSCK_MODES:
                self.judge_fsck(mode, said)
            else:
                self.judge_mount(mode, said, expected.unreadable)
            if holder is not None:
                os.close(holder)
        return self.faults

    def hold(self):
        """The lock, as a mount for writing has it."""
        lock = os.open(os.path.join(self.volume.path, "lock"), os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def fresh_copy(self):
        self.volume.forget_states()
        shutil.rmtree(self.volume.path, ignore_errors=True)
        shutil.copytree(self.broken, self.volume.path, symlinks=True)

    def fault(self, mode, what, text):
        self.faults.append(f"{self.defect.name}, {mode}: {what}; said was:\n{text}")

    def judge_fsck(self, mode, said):
        before = picture(self.volume.path)
        options = FSCK_MODES[mode]
        if mode == "scrub":  # without a key
            status, text = self.volume.run("fsck.nacre", *options, self.volume.path, expect=None)
        else:
            status, text = self.volume.fsck(*options, expect=None)
        self.compare(mode, said, status, text)
        if mode != "repair" and picture(self.volume.path) != before:
            self.fault(mode, "the check changed the volume", text)
        if mode == "repair" and status == 1:
            status, text = self.volume.fsck("--deep", expect=None)
            if status != 0:
                self.fault(mode, f"after the repair --deep ends with {status}", text)

    def judge_mount(self, mode, said, unreadable):
        status, text = self.volume.mount(*MOUNT_MODES[mode], expect=None)
        self.compare(mode, said, status, text)
        if status != 0:
            return
        for name in specimens.FILES:
            whole = specimens.content_of(name, self.defect.specimen)
            wanted = "EIO" if name in unreadable.split() else whole
            found = self.read(name)
            if found != wanted:
                found = found if isinstance(found, str) else f"{len(found or '')} other bytes"
                self.fault(mode, f"reading {name} gives {found}", text)
        self.volume.unmount(expect=None)
        self.volume.detach()
        self.volume.wait_for_daemons(60)

    def read(self, name):
        """Its bytes, None where it is not there, or the name of the error."""
        try:
            with open(os.path.join(self.volume.mnt, name), "rb") as f:
                return f.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            return errno.errorcode[error.errno]

    def compare(self, mode, said, status, text):
        text = text.replace(self.volume.path, "VOLUME")
        if self.show:
            print(f"--- {self.defect.name}, {mode}: exit status {status}\n{text}", flush=True)
        if status != said.status:
            return self.fault(mode, f"exit status {status} instead of {said.status}", text)
        for words in said.words:
            if not re.search(words, text, re.MULTILINE):
                self.fault(mode, f"nothing about '{words}'", text)
        if said.findings is None:
            return None
        lines = [line for line in text.splitlines() if FINDING.match(line)]
        if len(set(lines)) != len(lines):
            self.fault(mode, "a finding is said twice", text)
        for line in lines:
            if not any(re.match(finding, line) for finding in said.findings):
                self.fault(mode, f"the table does not have '{line}'", text)
        for finding in said.findings:
            if not any(re.match(finding, line) for line in lines):
                self.fault(mode, f"no finding '{finding}'", text)
        return None


def make(folder):
    """Why they cannot be made here is for those, too, that would have used them."""
    try:
        specimens.make(folder)
    except SystemExit as end:
        if end.code == 77:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "skipped"), "w", encoding="utf-8"):
                pass
        raise


def judge(names, folder, show):
    faults = []
    for name in names:
        with Volume(f"bad-{name}") as volume:
            try:
                faults += Judge(volume, folder, DEFECTS[name], show).run()
            except Failure as failure:
                faults.append(f"{name}: {failure}")
    for fault in faults:
        print(f"FAILED: {fault}")
    if faults:
        sys.exit(f"FAILED: {len(faults)} verdicts are not those of the table")
    print(f"{len(names)} defects, each with its verdict")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--describe", action="store_true")
    parser.add_argument("--make", metavar="FOLDER")
    parser.add_argument("--specimens", metavar="FOLDER")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.list:
        print("\n".join(DEFECTS))
    elif options.describe:
        for defect in DEFECTS.values():
            print(f"{defect.name}: {defect.sentence}")
    elif options.make:
        make(options.make)
    else:
        unknown = [name for name in options.names if name not in DEFECTS]
        if unknown:
            sys.exit(f"there is no defect {', '.join(unknown)}")
        names, folder = options.names or list(DEFECTS), options.specimens
        if folder and os.path.exists(os.path.join(folder, "skipped")):
            skip(", ".join(names), "the sound volumes could not be made")
        if folder and specimens.is_made(folder):
            judge(names, folder, options.show)
        else:
            with tempfile.TemporaryDirectory(prefix="nacre-specimens.") as made:
                specimens.make(made)
                judge(names, made, options.show)


if __name__ == "__main__":
    main()
