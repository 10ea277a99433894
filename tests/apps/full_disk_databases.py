#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LMDB or PostgreSQL on a disk that fills up again and again. In a part of the rounds the writer, the
server or the daemon is killed meanwhile. Each transaction whose commit was confirmed is there once
there is room, without the kernel's cache, and after a new mount; the database's own check is clean.

    full_disk_databases.py lmdb|postgresql [--rounds N] [--io-uring]

tests/mount/full_disk_sqlite.py is the same for SQLite.
"""
import argparse
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "../support"))
from loop_disk import LoopDisk  # noqa: E402
from rings import rings  # noqa: E402
from volume import Failure, Volume, full_counts, skip, wait_for  # noqa: E402

MIB = 1 << 20
# What is killed in the middle of a round.
VICTIMS = ("nothing", "the writer", "nothing", "the daemon")


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("3")


def fill_up(folder, room_bytes):
    """Files of random bytes, until the volume has no more than that room."""
    os.mkdir(folder)
    number = 0
    while os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize > room_bytes:
        try:
            with open(os.path.join(folder, f"fill.{number}"), "wb") as file:
                file.write(os.urandom(MIB))
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            return
        number += 1


def python_with_lmdb():
    """The system's Python has Debian's packages; another one may stand before it."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import lmdb"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return python
    return None


class Lmdb:
    """The rounds take turns between writing by pwrite and writing through the mapping."""
    name = "lmdb"
    disk_bytes, rooms_mib = 128 * MIB, (2, 4, 8)
    mount_options = ()

    def __init__(self, work):
        self.python = python_with_lmdb()
        if not self.python:
            skip("full_disk_databases", "there is no python3-lmdb")
        self.program = os.path.join(HERE, "lmdb_work.py")
        self.promises = os.path.join(work, "promised")
        self.mode, self.file, self.writer, self.why = "pages", None, None, ""

    def begin(self, folder, number):
        self.mode = ("pages", "map")[number % 2]
        os.mkdir(folder)
        self.file = os.path.join(folder, "work.db")
        if os.path.exists(self.promises):
            os.unlink(self.promises)
        self.work("fill", self.mode, self.file, "5", self.promises)

    def work(self, *arguments):
        done = subprocess.run([self.python, self.program, *arguments], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != 0:
            text = done.stdout.decode(errors="replace").strip()
            raise Failure(f"lmdb, {self.mode}: {arguments[0]}: {text[-600:]}")

    def start_writer(self):
        self.writer = subprocess.Popen(
            [self.python, self.program, "fill", self.mode, self.file, "1000000", self.promises],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_refused(self):
        return self.writer.poll() is not None

    def kill_writer(self):
        self.writer.kill()
        self.writer.wait()

    def promised(self):
        with open(self.promises, encoding="ascii") as file:
            return int(file.read())

    def accepts(self):
        """Whether a transaction goes through; it counts as promised, too."""
        try:
            self.work("fill", self.mode, self.file, "1", self.promises)
            return True
        except Failure as failure:
            self.why = failure
            return False

    def check(self, when):
        try:
            self.work("check", self.mode, self.file, str(self.promised()))
        except Failure as failure:
            raise Failure(f"{when}: {failure}") from None

    def close(self):
        """Nothing is open between two commands."""


class Postgresql:
    """A small cluster; one client inserts rows, and notes each that the server confirmed."""
    name = "postgresql"
    disk_bytes, rooms_mib = 256 * MIB, (4, 8, 16)
    mount_options = ("-o", "allow_other")

    def __init__(self, work):
        folders = sorted(name for name in os.listdir("/usr/lib/postgresql")
                         ) if os.path.isdir("/usr/lib/postgresql") else []
        self.programs = os.path.join("/usr/lib/postgresql", folders[-1], "bin") if folders else ""
        try:
            self.user = pwd.getpwnam("postgres")
        except KeyError:
            self.user = None
        if not self.user or not os.access(os.path.join(self.programs, "initdb"), os.X_OK):
            skip("full_disk_databases", "there is no PostgreSQL")
        self.work, self.log = work, os.path.join(work, "postgres.log")
        self.template, self.sockets = (os.path.join(work, name) for name in ("template", "sockets"))
        os.chmod(work, 0o755)
        for folder in (self.template, self.sockets):
            os.mkdir(folder, 0o700)
            os.chown(folder, self.user.pw_uid, self.user.pw_gid)
        self.server = self.client = self.data = self.why = None
        self.confirmed, self.next = 0, 1
        self.command("initdb", "-D", self.template, "--data-checksums", "-A", "trust",
                     "--wal-segsize", "1")

    def as_postgres(self, program, *arguments):
        return ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--init-groups", "env",
                f"PGHOST={self.sockets}", "PGUSER=postgres", "PGDATABASE=postgres", "LC_ALL=C",
                os.path.join(self.programs, program), *arguments]

    def command(self, program, *arguments):
        done = subprocess.run(self.as_postgres(program, *arguments), check=False, cwd="/",
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise Failure(f"{program}: {(done.stdout + done.stderr).decode(errors='replace')[-600:]}")
        return done.stdout.decode()

    def sql(self, text):
        return self.command("psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text)

    def begin(self, folder, _):
        shutil.copytree(self.template, folder)
        for above, folders, files in os.walk(folder):
            for name in (".", *folders, *files):
                os.chown(os.path.join(above, name), self.user.pw_uid, self.user.pw_gid)
        self.data, self.confirmed, self.next = folder, 0, 1
        self.start_server()
        self.sql("CREATE EXTENSION amcheck")
        self.sql("CREATE TABLE receipt (number int PRIMARY KEY, filler text)")
        # Up to 6 KiB that do not compress well.
        self.sql("CREATE FUNCTION filler(n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT "
                 "string_agg(md5((n * 1000 + i)::text), '') FROM generate_series(1, 1 + n % 200) i $$")

    def answers(self):
        try:
            self.sql("SELECT 1")
            return True
        except Failure:
            return False

    def start_server(self):
        """True when it accepts connections; false when it cannot start."""
        # A crash between its making and its fsync leaves the lock file empty, on any filesystem.
        # PostgreSQL asks its administrator to remove it.
        lock_file = os.path.join(self.data, "postmaster.pid")
        if os.path.exists(lock_file) and os.path.getsize(lock_file) == 0:
            os.unlink(lock_file)
        with open(self.log, "ab") as log:
            self.server = subprocess.Popen(self.as_postgres(
                "postgres", "-D", self.data, "-k", self.sockets, "-c", "listen_addresses=",
                "-c", "shared_buffers=16MB", "-c", "max_wal_size=8MB", "-c", "min_wal_size=2MB",
                "-c", "autovacuum=off"), cwd="/", stdout=log, stderr=log,
                start_new_session=True)
        return self.is_up()

    def is_up(self):
        """A server that met a full disk starts anew by itself, or ends."""
        wait_for(lambda: self.server is None or self.server.poll() is not None or self.answers(),
                 300, "the server neither comes up nor ends")
        return self.server is not None and self.server.poll() is None

    def last_words(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()[-1500:]

    def stop_server(self, how):
        if self.server is None:
            return
        if self.server.poll() is None:
            self.server.send_signal(how)
        self.server.wait()
        # The postmaster's children are in its session; they end when it has gone.
        wait_for(lambda: subprocess.run(["pgrep", "-s", str(self.server.pid)], check=False,
                                        stdout=subprocess.DEVNULL).returncode != 0, 300,
                 "processes of the server stay")
        self.server = None

    def write(self, client):
        """On a thread: inserts until psql ends, and notes the numbers that it shows."""
        def feed():
            try:
                while True:
                    client.stdin.write(b"INSERT INTO receipt VALUES (%d, filler(%d)) RETURNING number;\n"
                                       % (self.next, self.next))
                    client.stdin.flush()
                    self.next += 1
            except OSError:
                pass
        feeder = threading.Thread(target=feed)
        feeder.start()
        for line in client.stdout:
            if line.strip().isdigit():
                self.confirmed = int(line)
        client.wait()
        feeder.join()

    def start_writer(self):
        self.client = None
        if not self.is_up():
            self.stop_server(signal.SIGKILL)
            if not self.start_server():
                return
        self.next += 1  # whatever became of the number before
        client = subprocess.Popen(self.as_postgres("psql", "-qAtX", "-v", "ON_ERROR_STOP=1"), cwd="/",
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        self.client = threading.Thread(target=self.write, args=(client,))
        self.client.start()

    def is_refused(self):
        return self.client is None or not self.client.is_alive()

    def kill_writer(self):
        """The server, at once."""
        self.stop_server(signal.SIGKILL)
        if self.client:
            self.client.join()

    def promised(self):
        return self.confirmed

    def accepts(self):
        if self.client:
            self.client.join()
        if not self.is_up():
            self.stop_server(signal.SIGKILL)
            if not self.start_server():
                self.why = self.last_words()
                return False
        try:
            self.sql("CHECKPOINT")
            return True
        except Failure as failure:
            self.why = f"{failure}; {self.last_words()}"
            return False

    def check(self, when):
        if self.server is None and not self.start_server():
            raise Failure(f"{when}: the server does not start: {self.last_words()}")
        wrong = self.sql("SELECT count(*) FROM receipt WHERE filler <> filler(number)").strip()
        # A number that was refused has no row; numbers that were confirmed are noted one by one.
        last = int(self.sql("SELECT coalesce(max(number), 0) FROM receipt"))
        if wrong != "0" or last < self.confirmed:
            raise Failure(f"{when}: {wrong} rows have other content; {self.confirmed} was confirmed, "
                          f"the last one is {last}")
        self.command("pg_amcheck", "--heapallindexed", "--parent-check", "-d", "postgres")

    def close(self):
        self.stop_server(signal.SIGINT)
        if self.data and os.path.isdir(self.data):
            self.command("pg_checksums", "--check", "-D", self.data)


def unmount(volume):
    """The first attempt may say that pages of a mapping were refused, and leave the volume mounted."""
    volume.unmount(expect=(0, 8))
    if os.path.ismount(volume.mnt):
        volume.unmount()
    volume.wait_for_daemons(60)


def round_of(volume, database, number, mount):
    victim = VICTIMS[number // 2 % len(VICTIMS)]
    folder, filler = (os.path.join(volume.mnt, f"{name}{number}") for name in ("data", "fill"))
    database.begin(folder, number)
    fill_up(filler, random.choice(database.rooms_mib) * MIB)
    refusals = random.choice((1, 3))
    for refusal in range(refusals):
        database.start_writer()
        if victim != "nothing" and refusal == refusals - 1:
            end = time.monotonic() + random.choice((0.05, 0.3, 1))
            while not database.is_refused() and time.monotonic() < end:
                time.sleep(0.005)
            if victim == "the daemon":
                volume.kill()
            database.kill_writer()
        else:
            wait_for(database.is_refused, 600, f"{database.name} is never refused")
    if victim == "the daemon":
        if os.path.ismount(volume.mnt):
            volume.detach()
        volume.wait_for_daemons(60)
        mount()
    shutil.rmtree(filler)
    try:
        wait_for(database.accepts, 300, f"{database.name} takes nothing after all else was deleted")
    except Failure as failure:
        raise Failure(f"{failure}: {database.why}; df says {os.statvfs(volume.mnt)}") from None
    database.check("once there is room")
    database.close()
    drop_caches()
    database.check("without the kernel's cache")
    database.close()
    promised = database.promised()
    unmount(volume)
    mount()
    database.check("after a new mount")
    database.close()
    shutil.rmtree(folder)
    print(f"  {database.name}, round {number}, {victim} killed: {promised} transactions were confirmed",
          flush=True)


def run(kind, rounds, transport):
    with LoopDisk(f"full-disk-{kind.name}", kind.disk_bytes) as disk, \
            Volume(f"full-disk-{kind.name}") as volume:
        volume.path = os.path.join(disk.path, "volume")
        volume.make()

        def mount():
            volume.mount("-o", f"commit=1,io_uring={transport}", *kind.mount_options)

        database = kind(volume.work)
        mount()
        try:
            first = random.randrange(8)
            for number in range(first, first + rounds):
                round_of(volume, database, number, mount)
        finally:
            if isinstance(database, Postgresql):
                database.stop_server(signal.SIGKILL)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.fsck("--deep")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database", choices=("lmdb", "postgresql"))
    parser.add_argument("--io-uring", action="store_true")
    parser.add_argument("--rounds", type=int, default=100 if full_counts() else 2)
    options = parser.parse_args()
    seed = int(os.environ.get("NACRE_SEED") or time.time_ns() % 10**9)
    print(f"NACRE_SEED={seed}", flush=True)
    random.seed(seed)
    kind = Lmdb if options.database == "lmdb" else Postgresql
    if not options.io_uring:
        run(kind, options.rounds, "off")
        return
    with rings("full_disk_databases"):
        run(kind, options.rounds, "on")


if __name__ == "__main__":
    main()
