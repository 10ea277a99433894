#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A browser's ways with its profile, and what must hold of one afterwards.

    profile_work.py browse FOLDER PROMISED   until it is killed; PROMISED gets the last durable number
    profile_work.py check FOLDER PROMISED
"""
import hashlib
import json
import os
import sqlite3
import sys


def open_database(path):
    database = sqlite3.connect(path, timeout=60)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE IF NOT EXISTS visit (number INTEGER PRIMARY KEY, url TEXT, sum BLOB)")
    database.commit()
    return database


def text_of(number):
    return f"https://example.org/{number}" * (1 + number % 40)


def state_of(number):
    text = text_of(number) * 20
    return json.dumps({"number": number, "text": text,
                       "sum": hashlib.sha256(text.encode()).hexdigest()})


def replace(path, text):
    """As browsers write prefs.js and sessionstore: a whole new file, synced, renamed into place."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(path + ".tmp", path)


def browse(folder, promised):
    os.makedirs(os.path.join(folder, "cache2"), exist_ok=True)
    lock = os.path.join(folder, "lock")
    if os.path.lexists(lock):
        os.unlink(lock)
    os.symlink(f"127.0.0.1:+{os.getpid()}", lock)
    places = open_database(os.path.join(folder, "places.sqlite"))
    cookies = open_database(os.path.join(folder, "cookies.sqlite"))
    number = places.execute("SELECT max(number) FROM visit").fetchone()[0] or 0
    note = os.open(promised, os.O_CREAT | os.O_WRONLY, 0o644)
    while True:
        number += 1
        for database in (places, cookies):
            text = text_of(number)
            database.execute("INSERT OR REPLACE INTO visit VALUES (?, ?, ?)",
                             (number, text, hashlib.sha256(text.encode()).digest()))
            database.execute("DELETE FROM visit WHERE number < ? AND number % 3 = 0", (number - 500,))
            database.commit()
        for entry in range(8):
            name = hashlib.sha1(b"%d" % ((number * 8 + entry) % 900)).hexdigest()
            with open(os.path.join(folder, "cache2", name), "wb") as file:
                file.write(b"%d " % number + name.encode() * (number % 300))
        replace(os.path.join(folder, "sessionstore.json"), state_of(number))
        if number % 5 == 0:
            os.pwrite(note, b"%d" % number, 0)


def check(folder, promised):
    with open(promised, encoding="ascii") as file:
        least = int(file.read())
    for name in ("places", "cookies"):
        database = sqlite3.connect(os.path.join(folder, name + ".sqlite"))
        for number, text, digest in database.execute("SELECT * FROM visit"):
            if text != text_of(number) or digest != hashlib.sha256(text.encode()).digest():
                sys.exit(f"{name}: visit {number} has another text")
        last = database.execute("SELECT max(number) FROM visit").fetchone()[0] or 0
        if last < least:
            sys.exit(f"{name}: visit {least} was promised, the last one is {last}")
        database.close()
    # The rename itself is not synced: the state may be an older one, but is a whole one.
    with open(os.path.join(folder, "sessionstore.json"), encoding="utf-8") as file:
        state = json.load(file)
    if hashlib.sha256(state["text"].encode()).hexdigest() != state["sum"]:
        sys.exit("sessionstore.json is a mixture")
    for name in os.listdir(os.path.join(folder, "cache2")):
        with open(os.path.join(folder, "cache2", name), "rb") as file:
            file.read()


if __name__ == "__main__":
    (browse if sys.argv[1] == "browse" else check)(*sys.argv[2:4])
