#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SQLite on a disk that fills up again and again, in its journal modes, filled by the database or by
others, and with other processes that open the database meanwhile. Each row whose COMMIT returned,
and each row that a later opening showed, is there without the kernel's cache, too, and after a new
mount; the integrity is ok.

    full_disk_sqlite.py [--rounds N] [--io-uring] [--neighbour]

--neighbour: a third of the rounds fill the disk next to the volume, which then gives up its
reserve. A round may fail so: docs/KERNEL.md, "Refused pages", says why.
"""
import argparse
import multiprocessing
import os
import random
import signal
import sqlite3
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from loop_disk import LoopDisk  # noqa: E402
from rings import rings  # noqa: E402
from volume import Failure, Volume, full_counts, wait_for  # noqa: E402

MIB = 1 << 20
ENOUGH_REFUSALS = 12 if full_counts() else 6
ROOMS_MIB = (4, 8, 16, 32) if full_counts() else (4, 8)


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as f:
        f.write("3")


def connect(database):
    # Not DEFERRED: BEGIN is written below.
    db = sqlite3.connect(database, timeout=60, isolation_level=None)
    return db


def create(database, mode):
    db = connect(database)
    db.execute(f"PRAGMA journal_mode={mode}")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, bytes BLOB, check_value INTEGER)")
    db.close()


def check_value(blob):
    return len(blob) * 31 + blob[0] + blob[-1] if blob else 0


def write(database, receipts, first, refusals_max):
    """Commits rows and notes each that was promised, until the disk has said no often enough."""
    signal.alarm(900)
    fd = os.open(receipts, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    number, refusals = first, 0
    db = connect(database)
    while refusals < refusals_max:
        blob = os.urandom(random.randrange(1, 12000))
        try:
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t VALUES (?, ?, ?)", (number, blob, check_value(blob)))
            if random.random() < 0.3:
                db.execute("UPDATE t SET bytes = ?, check_value = ? WHERE id = ?",
                           (blob, check_value(blob), random.randrange(1, number + 1)))
            db.execute("COMMIT")
            os.write(fd, struct.pack("<Q", number))
        except sqlite3.DatabaseError as error:
            if "malformed" in str(error) or "not a database" in str(error):
                print(f"  a writer finds: {error}", flush=True)
                os._exit(3)
            refusals += 1
            try:
                if db.in_transaction:
                    db.execute("ROLLBACK")
            except sqlite3.DatabaseError:
                pass
            if random.random() < 0.3:  # another opening of the database by the same program
                try:
                    db.close()
                except sqlite3.DatabaseError:
                    pass
                db = connect(database)
        number += 1
    os._exit(0)


def read(database, until):
    """Holds the database open, mapped index and all, and looks at it now and then."""
    signal.alarm(900)
    while not until.is_set():
        try:
            db = connect(database)
            for _ in range(20):
                db.execute("SELECT count(*), sum(check_value) FROM t").fetchone()
                if until.wait(0.05):
                    break
            db.close()
        except sqlite3.DatabaseError as error:
            if "malformed" in str(error) or "not a database" in str(error):
                print(f"  a reader finds: {error}", flush=True)
                os._exit(3)
            until.wait(0.05)
    os._exit(0)


def fill_once(folder, name):
    """A file of 2 MiB; false where it found no room."""
    fd = os.open(os.path.join(folder, name), os.O_CREAT | os.O_WRONLY)
    try:
        os.write(fd, os.urandom(2 * MIB))
        os.fsync(fd)
        taken = True
    except OSError:
        taken = False
    try:
        os.close(fd)
    except OSError:
        taken = False
    return taken


def fill_up(folder, room_bytes):
    number = 0
    while os.statvfs(folder).f_bavail * 4096 > room_bytes and fill_once(folder, f"f.{number}"):
        number += 1


def fill(folder, until):
    """Takes whatever room there is, and gives some of it back at times."""
    signal.alarm(900)
    number = 0
    while not until.is_set():
        if not fill_once(folder, f"f.{number}"):
            until.wait(0.02)
        if random.random() < 0.1:
            os.unlink(os.path.join(folder, random.choice(os.listdir(folder))))
        if random.random() < 0.2:
            os.sync()  # also what SQLite never syncs: the index that it shares by a mapping
        number += 1
    os._exit(0)


def promised(receipts):
    try:
        with open(receipts, "rb") as f:
            return {number for (number,) in struct.iter_unpack("<Q", f.read())}
    except FileNotFoundError:
        return set()


def rows_of(database, when):
    """Those that an opening of the database shows; its integrity is ok."""
    db = connect(database)
    try:
        said = db.execute("PRAGMA integrity_check").fetchall()
        if said != [("ok",)]:
            raise Failure(f"{when}: integrity_check says {said[:3]}")
        there = set()
        for number, blob, value in db.execute("SELECT id, bytes, check_value FROM t"):
            if check_value(blob) != value:
                raise Failure(f"{when}: row {number} is not what was written")
            there.add(number)
        return there
    finally:
        db.close()


def verify(database, rows, when):
    try:
        there = rows_of(database, when)
    except sqlite3.DatabaseError as error:
        raise Failure(f"{when}: {error}") from None
    missing = rows - there
    if missing:
        raise Failure(f"{when}: {len(missing)} of {len(rows)} rows that were committed or shown "
                      f"are missing, the first is {min(missing)}")
    return there


def empty(folder):
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))


def wait_for_room(database):
    def takes():
        try:
            db = connect(database)
            db.execute("CREATE TABLE IF NOT EXISTS probe (bytes BLOB)")
            db.execute("INSERT INTO probe VALUES (?)", (os.urandom(2 * MIB),))
            db.execute("DELETE FROM probe")
            db.close()
            return True
        except sqlite3.DatabaseError as error:
            if "malformed" in str(error):
                raise Failure(f"once there is room: {error}") from None
            return False

    wait_for(takes, 120, "no room for SQLite after all else was deleted")


def round_of(volume, mode, number, filled_by, ballast, reader_count):
    folder = os.path.join(volume.mnt, f"{mode}{number}")
    os.mkdir(folder)
    os.mkdir(ballast)
    database = os.path.join(folder, "work.db")
    create(database, mode)
    receipts = os.path.join(volume.work, f"receipts{number}")
    until = multiprocessing.Event()
    helpers = [multiprocessing.Process(target=read, args=(database, until))
               for _ in range(reader_count)]
    if filled_by != "itself":
        helpers.append(multiprocessing.Process(target=fill, args=(ballast, until)))
    else:
        fill_up(ballast, random.choice(ROOMS_MIB) * MIB)
    for process in helpers:
        process.start()
    refusals = random.choice((1, 3, ENOUGH_REFUSALS))
    # The second is another program; it may be killed.
    for first, patience_s in ((1, None), (10**6, random.choice((None, 0.2, 0.5)))):
        writer = multiprocessing.Process(target=write, args=(database, receipts, first, refusals))
        writer.start()
        writer.join(patience_s)
        writer.kill()
        writer.join()
        if writer.exitcode not in (0, -signal.SIGKILL):
            raise Failure(f"{mode}: a writer ended with {writer.exitcode}")
    until.set()
    for process in helpers:
        process.join()
        if process.exitcode != 0:
            raise Failure(f"{mode}: a helper ended with {process.exitcode}")
    rows = promised(receipts)
    count = len(rows)
    try:
        rows |= rows_of(database, f"{mode}, on the full disk")
    except sqlite3.OperationalError as error:
        # Without any room SQLite may be unable to open it.
        print(f"  {mode}, on the full disk: {error}", flush=True)
    drop_caches()
    empty(ballast)
    wait_for_room(database)
    verify(database, rows, f"{mode}, once there is room")
    drop_caches()
    verify(database, rows, f"{mode}, without the kernel's cache")
    print(f"  {mode}, filled by {filled_by}: {count} transactions were promised, {len(rows)} shown",
          flush=True)
    return database, rows


def run(rounds, transport, fillers):
    with LoopDisk("full-disk-sqlite", 128 * MIB) as disk, Volume("full-disk-sqlite") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make()
        first = random.randrange(15)  # the rounds differ in three and in five ways
        for number in range(first, first + rounds):
            volume.mount("-o", f"commit=1,io_uring={transport}")
            mode = ("wal", "wal", "delete", "wal", "persist")[number % 5]
            filled_by = fillers[number % 3]
            ballast = os.path.join(disk.path if filled_by == "a neighbour" else volume.mnt,
                                   f"fill{number}")
            database, rows = round_of(volume, mode, number, filled_by, ballast,
                                      reader_count=number % 5 % 3)
            os.sync()
            # After a crash the other modes may bring a transaction back to its start.
            if mode == "wal" and number % 2:
                volume.kill()
            else:
                volume.unmount(expect=(0, 8))
            if os.path.ismount(volume.mnt):
                volume.detach()
            volume.wait_for_daemons(60)
            volume.mount("-o", f"commit=1,io_uring={transport}")
            verify(database, rows, f"{mode}, after a new mount")
            for folder in (os.path.dirname(database), ballast):
                empty(folder)
                os.rmdir(folder)
            volume.unmount()
            volume.wait_for_daemons(60)
        volume.fsck("--deep")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--io-uring", action="store_true")
    parser.add_argument("--rounds", type=int, default=100 if full_counts() else 2)
    parser.add_argument("--neighbour", action="store_true")
    options = parser.parse_args()
    fillers = ("a neighbour" if options.neighbour else "itself", "itself", "others")
    seed = int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9)
    print(f"NACRE_SEED={seed}", flush=True)
    random.seed(seed)
    if not options.io_uring:
        run(options.rounds, "off", fillers)
        return
    with rings("full_disk_sqlite"):
        run(options.rounds, "on", fillers)


if __name__ == "__main__":
    main()
