#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree of the golden volumes, made through a mount, and what a tree holds.

    golden_tree.py first|second|third [--bulk N] [--few] FOLDER   makes and changes it
    golden_tree.py list FOLDER                                    as read_volume.py list tells it

first: files of every kind. second: patches, holes, cuts, removals over what first made. third: the same
once more, for a volume that was mounted again. --bulk: the size of the larger files.
--few: none that try names and folders. Each leaves it to the caller to sync. Nothing is random.
"""
import argparse
import base64
import ctypes
import hashlib
import json
import os
import stat
import sys

LONG_NAME = "long-" + "n" * 250
MOMENT = 1_700_000_000_123_456_789  # when everything was modified
PUNCH_HOLE, KEEP_SIZE = 2, 1


def text(size):
    lines = [b"line %06d of a golden file%s\n" % (i * i, b"." * 72) for i in range(size // 100 + 1)]
    return b"".join(lines)[:size]


def text_size(bulk):
    return min(bulk, 4_300)


def runs(size):
    return b"".join(bytes([65 + i % 7]) * (100 + 37 * i) for i in range(80))[:size]


def noise(size, seed):
    blocks = (hashlib.sha256(b"golden noise %d %d" % (seed, i)).digest() for i in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def write(path, data, at=0, flags=0, sync=False):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | flags, 0o644)
    try:
        os.pwrite(fd, data, at)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def patch(path, data, at, sync=False):
    """Just these bytes, not their pages: they become a patch of their chunk, and an inlined one with sync."""
    write(path, data, at, os.O_DIRECT, sync)


def punch(path, at, size):
    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_WRONLY)
    try:
        if libc.fallocate(fd, PUNCH_HOLE | KEEP_SIZE, ctypes.c_long(at), ctypes.c_long(size)) != 0:
            raise OSError(ctypes.get_errno(), "fallocate")
    finally:
        os.close(fd)


def settle(folder):
    """What every listing would otherwise have of its own: times."""
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files + folders:
            os.utime(os.path.join(place, name), ns=(MOMENT, MOMENT), follow_symlinks=False)


def first(folder, bulk, few):
    os.chdir(folder)
    os.mkdir("plain")
    write("plain/empty", b"")
    write("plain/tiny", b"hi\n")
    write("plain/text", text(text_size(bulk)))
    write("plain/runs", runs(bulk - 1300))
    write("plain/noise", noise(350, 1))
    write("plain/sparse", b"at the start")
    write("plain/sparse", b"far behind", at=299_008)
    os.symlink("plain/text", "link")
    os.link("plain/text", "same-text")
    os.setxattr("plain/tiny", "user.golden", b"\0binary\xff")
    if not few:
        os.makedirs("deep/er/and/deeper")
        os.makedirs("many/going")
        write("plain/ünïcödé 名前 \N{SNOWMAN}", "not only ASCII: ☃\n".encode())
        write(b"deep/er/\xff\xfe is no UTF-8", b"bytes\n")
        write(LONG_NAME, b"a long name\n")
        write("deep/er/and/deeper/file", text(500))
        write("many/going/noise", noise(1200, 2))
        write("many/going/tiny", b"gone soon\n")
        os.symlink("n" * 200 + "owhere", "deep/dangling")
        os.mkfifo("deep/pipe")
        for number in range(12):
            write(f"many/file-{number:03}", b"%d" % number * number)
        os.setxattr("plain", "user.of-a-folder", noise(120, 3))
        os.chmod("plain/tiny", 0o4711)
        os.chmod("plain", 0o750)
    settle(".")


def second(folder, bulk, few):
    os.chdir(folder)
    patch("plain/text", b"<a small patch>", at=1234, sync=True)
    patch("plain/text", noise(300, 4), at=2 * text_size(bulk) // 3)
    patch("plain/runs", runs(600), at=bulk // 2)
    patch("plain/noise", b"<into noise>", at=340)
    patch("plain/synced", b"no base, but a patch\n", at=0, sync=True)
    os.truncate("plain/noise", 345)
    os.truncate("plain/sparse", 200_001)
    punch("plain/runs", 1000, bulk // 4)
    if not few:
        os.remove("many/going/noise")
        os.rename("many/going/tiny", "plain/came-from-elsewhere")
        os.rmdir("many/going")
        os.rename("many/file-001", "many/file-002")
        for number in range(3, 12, 3):
            os.remove(f"many/file-{number:03}")
    settle(".")


def third(folder, bulk, few):
    os.chdir(folder)
    patch("plain/text", b"<a later patch>", at=1230, sync=True)
    write("plain/text", text(300), at=bulk)
    write("plain/late", text(900))
    os.setxattr("plain/late", "user.late", b"yes")
    os.remove("plain/empty")
    if not few:
        write("many/file-005", b"other bytes than before\n")
        os.remove("many/file-004")
        os.removexattr("plain/tiny", "user.golden")
        os.rename(LONG_NAME, "short")
    settle(".")


def describe(path, name):
    """As read_volume.py list does, but by system calls."""
    status = os.lstat(path)
    kind = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}.get(
        stat.S_IFMT(status.st_mode), "special")
    said = {"path": os.fsdecode(name), "kind": kind, "mode": f"{stat.S_IMODE(status.st_mode):04o}",
            "modified": status.st_mtime_ns}
    if kind != "directory":
        said["links"] = status.st_nlink
    if kind == "file":
        said["size"] = status.st_size
        with open(path, "rb") as file:
            said["sha256"] = hashlib.sha256(file.read()).hexdigest()
    elif kind == "link":
        said["target"] = os.fsdecode(os.readlink(path))
    elif kind == "special":
        said["rdev"] = status.st_rdev
    names = [] if kind == "link" else sorted(each for each in os.listxattr(path)
                                             if not each.startswith("user.nacre."))
    if names:
        said["xattrs"] = {each: base64.b64encode(os.getxattr(path, each)).decode() for each in names}
    return said


def listing(folder):
    folder, found = os.fsencode(folder), []
    for place, folders, files in os.walk(folder):
        found += [os.path.join(place, name) for name in files]
        found += [os.path.join(place, name) + (b"" if os.path.islink(os.path.join(place, name)) else b"/")
                  for name in folders]
    names = sorted(os.path.relpath(each, folder) + (b"/" if each.endswith(b"/") else b"")
                   for each in found)
    return [json.dumps(describe(os.path.join(folder, name.rstrip(b"/")), name), sort_keys=True)
            for name in names]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("first", "second", "third", "list"))
    parser.add_argument("--bulk", type=int, default=16_000)
    parser.add_argument("--few", action="store_true")
    parser.add_argument("folder")
    options = parser.parse_args()
    if options.what == "list":
        sys.stdout.write("".join(line + "\n" for line in listing(options.folder)))
    else:
        change = {"first": first, "second": second, "third": third}[options.what]
        change(options.folder, options.bulk, options.few)


if __name__ == "__main__":
    main()
