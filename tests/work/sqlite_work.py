#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SQLite in the volume: writers in several processes, big rows, roll-backs, VACUUM.

    sqlite_work.py run FOLDER MODE SECONDS   MODE is wal or delete
    sqlite_work.py check FOLDER              integrity, and the sums that each transaction keeps
"""
import hashlib
import os
import random
import sqlite3
import sys
import time

ACCOUNTS = 50
TOTAL = ACCOUNTS * 1000


def connect(path, mode="delete"):
    # isolation_level None: transactions are begun and ended by hand.
    db = sqlite3.connect(path, timeout=600, isolation_level=None)
    db.execute(f"PRAGMA journal_mode={mode}")
    # FULL does not wait for the journal's removal to be durable: a crash right after a COMMIT could
    # roll it back, on any filesystem.
    db.execute("PRAGMA synchronous=EXTRA")
    return db


def create(path, mode):
    db = connect(path, mode)
    db.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")
    db.execute("CREATE TABLE note (id INTEGER PRIMARY KEY, body BLOB, sum TEXT)")
    db.execute("CREATE INDEX note_sum ON note(sum)")
    db.execute("CREATE TABLE receipt (writer INTEGER PRIMARY KEY, number INTEGER)")
    db.execute("BEGIN")
    db.executemany("INSERT INTO account VALUES (?, 1000)", [(i,) for i in range(ACCOUNTS)])
    db.execute("COMMIT")
    db.close()


def write(path, mode, seconds, seed, committed=lambda number: None):
    """committed hears of every transaction after SQLite has called it durable."""
    chance = random.Random(seed)
    db = connect(path, mode)
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end or count < 20:
        db.execute("BEGIN IMMEDIATE")
        give, take, amount = chance.randrange(ACCOUNTS), chance.randrange(ACCOUNTS), \
            chance.randrange(100)
        db.execute("UPDATE account SET balance = balance - ? WHERE id = ?", (amount, give))
        db.execute("UPDATE account SET balance = balance + ? WHERE id = ?", (amount, take))
        body = chance.randbytes(chance.choice([10, 500, 5000, 60000]))
        db.execute("INSERT INTO note (body, sum) VALUES (?, ?)",
                   (body, hashlib.sha256(body).hexdigest()))
        if chance.random() < 0.2:
            db.execute("DELETE FROM note WHERE id IN (SELECT id FROM note ORDER BY id LIMIT 3)")
        count += 1
        if chance.random() < 0.1:
            db.execute("ROLLBACK")
            continue
        db.execute("REPLACE INTO receipt VALUES (?, ?)", (seed, count))
        db.execute("COMMIT")
        committed(count)
    db.close()
    return count


def check(path):
    db = sqlite3.connect(path, timeout=600)
    verdict = db.execute("PRAGMA integrity_check").fetchall()
    assert verdict == [("ok",)], verdict[:5]
    total = db.execute("SELECT sum(balance) FROM account").fetchone()[0]
    assert total == TOTAL, f"the balances sum to {total}, not {TOTAL}"
    count = 0
    for body, digest in db.execute("SELECT body, sum FROM note"):
        assert hashlib.sha256(body).hexdigest() == digest, "a row holds other bytes than written"
        count += 1
    db.close()
    return count


def main():
    command, folder = sys.argv[1:3]
    path = os.path.join(folder, "work.db")
    if command == "check":
        print(f"integrity_check ok, {check(path)} notes")
        return
    mode, seconds = sys.argv[3], float(sys.argv[4])
    if not os.path.exists(path):
        create(path, mode)
    workers = []
    for seed in range(3):
        worker = os.fork()
        if worker == 0:
            status = 1
            try:
                status = 0 if write(path, mode, seconds, seed) >= 20 else 1
            finally:
                os._exit(status)
        workers.append(worker)
    failed = [w for w in workers if os.waitpid(w, 0)[1] != 0]
    if failed:
        sys.exit(f"{len(failed)} writers failed")
    db = connect(path, mode)
    db.execute("VACUUM")
    db.close()
    print(f"{mode}: {check(path)} notes")


if __name__ == "__main__":
    main()
