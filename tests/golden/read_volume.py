#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a Nacre volume without any code of Nacre: docs/FORMAT.md, followed step by step.

  read_volume.py ls --passphrase-file F [--null] VOLUME   prints one path a line, sorted
  read_volume.py cat --passphrase-file F VOLUME PATH      a file's bytes on standard output
  read_volume.py list --passphrase-file F VOLUME          a JSON object a line: path, kind, mode,
                                                          links, size, modified, sha256, …

Paths are relative to the volume's root and in the order of their bytes; those of folders end with a
slash. Names are bytes: where one may hold a newline, --null ends each path with a zero byte instead.

The volume must not be mounted. It is opened for reading only, a volume whose daemon was killed too:
its logs are replayed in memory. Every tag, MAC and CRC on the way is verified. Exit status: 0; 1 with
a sentence when something is damaged, does not open or is not there; 2 usage.

Needs Python 3.9, python3-cryptography, and two libraries that Debian 12 and 13 have: libargon2.so.1
and libzstd.so.1. Which part of FORMAT.md a step follows stands at the step. The derivations of all
keys are one table: reader/derivations.py.
"""

import argparse
import base64
import hashlib
import json
import os
import stat
import sys

from reader.basics import VolumeError
from reader.volume import open_volume


KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def walk(volume):
    """(path, inode), sorted; folders end with a slash."""
    return sorted(((path + (b"/" if stat.S_ISDIR(inode.mode) else b""), inode)
                   for path, inode in volume.paths.items()), key=lambda item: item[0])


def list_paths(volume, end):
    for path, _ in walk(volume):
        sys.stdout.buffer.write(path + end)


def describe(volume, path, inode):
    kind = KINDS.get(stat.S_IFMT(inode.mode), "special")
    said = {"path": os.fsdecode(path), "kind": kind, "mode": f"{stat.S_IMODE(inode.mode):04o}",
            "modified": inode.modified[0] * 10 ** 9 + inode.modified[1]}
    if kind != "directory":
        said["links"] = inode.links
    if kind == "file":
        digest, size = hashlib.sha256(), 0
        for piece in volume.file_pieces(inode):
            digest.update(piece)
            size += len(piece)
        said["size"], said["sha256"] = size, digest.hexdigest()
    elif kind == "link":
        said["target"] = os.fsdecode(inode.target)
    elif kind == "special":
        said["rdev"] = inode.rdev
    attributes = volume.extended_attributes(inode)
    if attributes:
        said["xattrs"] = {os.fsdecode(name): base64.b64encode(value).decode()
                          for name, value in attributes.items()}
    return said


def listing(volume):
    return [json.dumps(describe(volume, path, inode), sort_keys=True)
            for path, inode in walk(volume)]


def print_file(volume, path):
    inode = volume.paths.get(os.fsencode(path).strip(b"/"))
    if inode is None:
        raise VolumeError(f"{path}: not in the volume")
    for piece in volume.file_pieces(inode):
        sys.stdout.buffer.write(piece)


def main():
    parser = argparse.ArgumentParser(description="Reads a Nacre volume.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("ls", "cat", "list"):
        command = commands.add_parser(name)
        command.add_argument("--passphrase-file", required=True)
        command.add_argument("volume")
        if name == "ls":
            command.add_argument("--null", action="store_true")
        if name == "cat":
            command.add_argument("path")
    arguments = parser.parse_args()
    try:
        volume = open_volume(arguments.volume, arguments.passphrase_file)
        if arguments.command == "ls":
            list_paths(volume, b"\0" if arguments.null else b"\n")
        elif arguments.command == "list":
            for line in listing(volume):
                sys.stdout.buffer.write(line.encode() + b"\n")
        else:
            print_file(volume, arguments.path)
        sys.stdout.buffer.flush()
    except (VolumeError, OSError) as error:
        print(f"read_volume.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
