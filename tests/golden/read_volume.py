#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Nacre volume without any code of Nacre: docs/FORMAT.md, followed step by step.

    read_volume.py ls   --passphrase-file F [--null] VOLUME   one path a line
    read_volume.py cat  --passphrase-file F VOLUME PATH       a file's bytes, or a link's target
    read_volume.py list --passphrase-file F VOLUME            a JSON object a line: path, kind, mode,
                                                              links, size, modified, sha256, …

Paths are relative to the volume's root and in the order of their bytes, those of directories end in a
slash; the root itself is not among them. Names are bytes: where one may hold a newline, --null ends
each path with a zero byte instead.

The volume must not be mounted. It is opened for reading only, a volume whose daemon was killed too:
its logs are replayed in memory. Every tag, MAC and CRC on the way is verified. Exit status: 0; 1 with
a sentence when something is damaged, does not open or is not there; 2 usage.

Needs Python 3.9, python3-cryptography, and three libraries that Debian 12 and 13 have: libargon2.so.1,
libzstd.so.1, libxxhash.so.0. Which part of FORMAT.md a step follows stands at the step, as "FORMAT:
section". The derivations of all keys are one table: reader/derivations.py.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from reader.binary import Damage
from reader.volume import Volume


def main():
    parser = argparse.ArgumentParser(description="Reads a Nacre volume by docs/FORMAT.md alone.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("ls", "cat", "list"):
        command = commands.add_parser(name)
        command.add_argument("--passphrase-file", required=True, metavar="F")
        command.add_argument("volume", metavar="VOLUME")
        if name == "ls":
            command.add_argument("--null", action="store_true")
        if name == "cat":
            command.add_argument("path", metavar="PATH")
    options = parser.parse_args()
    out = sys.stdout.buffer
    try:
        with open(options.passphrase_file, "rb") as file:
            passphrase = file.read()
        volume = Volume(options.volume, passphrase[:-1] if passphrase.endswith(b"\n") else passphrase)
        if options.command == "ls":
            for path, _ in volume.walk():
                out.write(path + (b"\0" if options.null else b"\n"))
        elif options.command == "cat":
            out.write(volume.read(volume.find(os.fsencode(options.path))))
        else:
            for path, inode in volume.walk():
                out.write(json.dumps(volume.describe(path, inode), sort_keys=True).encode() + b"\n")
        out.flush()
    except (Damage, OSError) as error:
        sys.exit(f"read_volume.py: {error}")


if __name__ == "__main__":
    main()
