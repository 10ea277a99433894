#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon while three processes write to an SQLite database, in both journal modes.

    kill_sqlite.py [--kills N]

After each kill the database opens, PRAGMA integrity_check says ok, its sums hold, and every
transaction whose COMMIT had returned (synchronous=EXTRA), and a sync of the folder after it, is
there.
"""
import argparse
import os
import random
import signal
import sqlite3
import struct
import sys
import time

here = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(here, "../support"), os.path.join(here, "../work")]
import sqlite_work  # noqa: E402
from volume import Failure, Volume, full_counts  # noqa: E402

WRITERS = 3


def start_writer(database, mode, number, receipts):
    """A process that writes for ever and says outside of the volume what it was promised."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(600)
        fd = os.open(f"{receipts}.{number}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        folder = os.open(os.path.dirname(database), os.O_RDONLY | os.O_DIRECTORY)

        def note(count):
            # SQLite takes it for durable too when it could not open the folder that it wanted to
            # sync after removing the journal: just what a dead daemon leads to.
            os.fsync(folder)
            os.pwrite(fd, struct.pack("<Q", count), 0)

        try:
            sqlite_work.write(database, mode, 3600, number, note)
        finally:
            os._exit(1)
    return pid


def promised(receipts, number):
    try:
        with open(f"{receipts}.{number}", "rb") as f:
            return struct.unpack("<Q", f.read(8).ljust(8, b"\0"))[0]
    except FileNotFoundError:
        return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20 if full_counts() else 4)
    options = parser.parse_args()
    chance = random.Random()
    total = 0
    with Volume("kill-sqlite") as volume:
        volume.make()
        for kill in range(options.kills):
            mode = ("delete", "wal")[kill % 2]
            volume.mount()
            folder = os.path.join(volume.mnt, f"{mode}{kill}")
            os.mkdir(folder)
            database = os.path.join(folder, "work.db")
            sqlite_work.create(database, mode)
            receipts = os.path.join(volume.work, f"receipts{kill}")
            writers = [start_writer(database, mode, n, receipts) for n in range(WRITERS)]
            time.sleep(1 + 2 * chance.random())
            volume.kill()
            for pid in writers:
                status = os.waitpid(pid, 0)[1]
                # SQLite maps the index of its write-ahead log: such a store ends in SIGBUS.
                if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGBUS:
                    raise Failure("a writer hangs after the daemon was killed")
            volume.detach()
            volume.fsck()
            volume.mount()
            notes = sqlite_work.check(database)
            db = sqlite3.connect(database)
            there = dict(db.execute("SELECT writer, number FROM receipt"))
            db.close()
            for number in range(WRITERS):
                count = promised(receipts, number)
                total += count
                if there.get(number, 0) < count:
                    raise Failure(f"{mode}: writer {number} was promised transaction {count}, the "
                                  f"database holds {there.get(number, 0)}")
            print(f"kill {kill}: {mode}, {notes} notes, transactions {sorted(there.values())}",
                  flush=True)
            volume.unmount()
            volume.wait_for_daemons(60)
            volume.fsck("--deep")
    if total == 0:
        raise Failure("no transaction was promised before any kill: nothing was tested")


if __name__ == "__main__":
    main()
