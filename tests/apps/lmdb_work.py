#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transactions of LMDB whose every value can be told from its key and the number that it holds.

    lmdb_work.py fill MODE FILE COUNT [PROMISED]    COUNT transactions more; each that is durable is
                                                    noted in the file PROMISED
    lmdb_work.py check MODE FILE [AT_LEAST]         everything is as the last transaction left it

MODE is pages (written by pwrite) or map (stores into the mapping, then msync).
"""
import hashlib
import os
import sys

import lmdb

SLOTS = 200


def value(number):
    """Up to 24 KiB: overflow pages come and go."""
    seed = hashlib.sha256(b"%d" % number).digest()
    return seed * (1 + int.from_bytes(seed[:2], "little") % 768)


def open_file(mode, path):
    return lmdb.open(path, subdir=False, map_size=256 << 20, writemap=mode == "map", max_dbs=2)


def last_number(transaction):
    return int(transaction.get(b"last") or 0)


def fill(mode, path, count, promised):
    with open_file(mode, path) as file:
        note = os.open(promised, os.O_CREAT | os.O_WRONLY, 0o644) if promised else None
        for _ in range(count):
            with file.begin(write=True) as transaction:
                number = last_number(transaction) + 1
                transaction.put(b"slot%d" % (number % SLOTS), b"%d " % number + value(number))
                if number % 7 == 0:
                    transaction.delete(b"slot%d" % (number * 3 % SLOTS))
                    transaction.put(b"gone%d" % (number * 3 % SLOTS), b"%d" % number)
                transaction.put(b"last", b"%d" % number)
            if note is not None:
                os.pwrite(note, b"%d" % number, 0)


def check(mode, path, at_least):
    with open_file(mode, path) as file, file.begin() as transaction:
        last = last_number(transaction)
        if last < at_least:
            sys.exit(f"transaction {at_least} was promised, the last one is {last}")
        entries = 0
        for number in range(max(1, last - SLOTS + 1), last + 1):
            found = transaction.get(b"slot%d" % (number % SLOTS))
            if found is None:
                by = int(transaction.get(b"gone%d" % (number % SLOTS)) or 0)
                if by < number or by % 7 != 0:
                    sys.exit(f"transaction {number} is gone")
                continue
            if bytes(found) != b"%d " % number + value(number):
                sys.exit(f"transaction {number} has another value")
            entries += 1
        for key, found in transaction.cursor():
            if key.startswith(b"slot"):
                number = int(bytes(found).split(b" ")[0])
                if bytes(found) != b"%d " % number + value(number) or number > last:
                    sys.exit(f"{key!r} has another value")
        if at_least == 0:
            print(f"{mode}: {entries} of {last}")


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(*sys.argv[2:4], int(sys.argv[4]), sys.argv[5] if len(sys.argv) > 5 else None)
    else:
        check(*sys.argv[2:4], int(sys.argv[4]) if len(sys.argv) > 4 else 0)
