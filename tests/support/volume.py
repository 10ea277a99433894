# SPDX-License-Identifier: Apache-2.0
"""One volume for a test in Python: made, mounted, killed, checked, and cleaned up whatever happens.

Every call has a time limit: a hang is a failure like any other. NACRE_PATIENCE=N makes the limits N
times as long, for machines with much other work.
"""
import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# The lowest cost that a passphrase may have: tests make many volumes.
CHEAP_KDF = ["--kdf-memory", "8192", "--kdf-time", "1"]
# What a call on a mount is answered whose daemon is gone; over io_uring, what the daemon had not
# answered is cancelled.
DAEMON_GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.ECANCELED, errno.EIO, errno.ENODEV)
PATIENCE = float(os.environ.get("NACRE_PATIENCE") or 1)


def skip(what, why):
    print(f"skipped: {what}: {why}")
    sys.exit(77)


def skip_part(what, why):
    """The rest of the test goes on."""
    print(f"skipped: {what}: {why}")


def bin_folder():
    folder = os.environ.get("NACRE_BIN")
    if not folder or not os.access(os.path.join(folder, "mkfs.nacre"), os.X_OK):
        sys.exit("NACRE_BIN must name the folder that holds mkfs.nacre")
    return os.path.realpath(folder)


def full_counts():
    return bool(os.environ.get("NACRE_LONG"))


def leave_others_mounts():
    """In a mount namespace of this process's own: mounts of other tests came along into it, and would
    keep the daemons of those tests from ending."""
    detach = 2
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        lines = [line.split(" - ") for line in table]
    for place, what in lines:
        if what.startswith("fuse"):
            target = place.split()[4].encode().decode("unicode_escape").encode("latin-1")
            ctypes.CDLL(None).umount2(target, detach)


class Failure(Exception):
    """What the test was made to find."""


def wait_for(condition, limit_s, otherwise):
    limit_s *= PATIENCE
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise Failure(f"{otherwise} after {limit_s} s")
        time.sleep(0.005)


def is_gone(pid):
    """Or a zombie whose last thread has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            state = f.read().rpartition(")")[2].split()[0]
        return state == "Z" and len(os.listdir(f"/proc/{pid}/task")) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


class Volume:
    def __init__(self, name):
        if not os.path.exists("/dev/fuse"):
            skip(name, "there is no /dev/fuse")
        self.bin = bin_folder()
        self.work = tempfile.mkdtemp(prefix=f"nacre-{name}.")
        self.path = os.path.join(self.work, "volume")
        self.mnt = os.path.join(self.work, "mnt")
        self.passphrase = os.path.join(self.work, "passphrase")
        os.mkdir(self.mnt)
        with open(self.passphrase, "w", encoding="utf-8") as f:
            f.write("correct horse battery staple\n")
        # What a user's programs keep per user (pinned fingerprints, sockets) stays in the folder.
        self.environment = dict(os.environ, HOME=os.path.join(self.work, "home"))
        for word in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(word, None)
        os.mkdir(self.environment["HOME"])
        if os.environ.get("NACRE_READY_KEYS"):  # see ready_keys.cpp
            self.environment.update(NACRE_READY_KEYS_TAKEN=os.path.join(self.work, "keys_taken"),
                                    LD_PRELOAD=os.path.join(self.bin, "libready_keys.so"))
        with open(os.path.join(self.environment["HOME"], ".profile"), "w", encoding="utf-8"):
            pass  # an empty home stays empty
        if os.getuid() != 0:
            self.environment["XDG_RUNTIME_DIR"] = os.path.join(self.work, "run")
            os.mkdir(self.environment["XDG_RUNTIME_DIR"], 0o700)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.detach()
        for pid in self.daemons():
            os.kill(pid, signal.SIGKILL)
        self.wait_for_daemons(30)
        keep = os.environ.get("NACRE_KEEP")
        if keep and kind is not None and not issubclass(kind, SystemExit):
            print(f"kept for a look: {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)

    def run(self, program, *arguments, limit_s=120, expect=(0,)):
        """Exit status and output. A time-out, a signal or a status not in expect is a failure."""
        limit_s *= PATIENCE
        try:
            done = subprocess.run([os.path.join(self.bin, program), *arguments], timeout=limit_s,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, env=self.environment, check=False)
        except subprocess.TimeoutExpired as expired:
            raise Failure(f"{program} {' '.join(arguments)} hangs: no end within {limit_s} s: "
                          f"{(expired.stdout or b'').decode(errors='replace')[-2000:]}") from None
        text = done.stdout.decode(errors="replace")
        if done.returncode < 0:
            raise Failure(f"{program} {' '.join(arguments)} died of signal {-done.returncode}: "
                          f"{text[-2000:]}")
        if expect is not None and done.returncode not in expect:
            raise Failure(f"{program} {' '.join(arguments)} ended with {done.returncode}: "
                          f"{text[-2000:]}")
        return done.returncode, text

    def make(self, *options):
        self.run("mkfs.nacre", "--passphrase-file", self.passphrase, *CHEAP_KDF, *options,
                 self.path)

    def mount(self, *options, expect=(0,)):
        status, text = self.run("mount.nacre", "--passphrase-file", self.passphrase, *options,
                                self.path, self.mnt, expect=expect)
        if status == 0 and not os.path.ismount(self.mnt):
            raise Failure("mount.nacre returned 0, but nothing is mounted")
        return status, text

    def unmount(self, expect=(0,)):
        return self.run("nacre", "umount", self.mnt, expect=expect)

    def fsck(self, *options, limit_s=300, expect=(0,)):
        return self.run("fsck.nacre", *options, "--passphrase-file", self.passphrase, self.path,
                        limit_s=limit_s, expect=expect)

    def forget_states(self):
        """How far the volume had come: for a test that puts older states in its place."""
        shutil.rmtree(os.path.join(self.environment["HOME"], ".config", "nacre", "seen"),
                      ignore_errors=True)

    def daemons(self):
        found = []
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if os.path.basename(words[0]) == b"mount.nacre" and self.path.encode() in words:
                found.append(int(name))
        return found

    def wait_for_daemons(self, limit_s):
        wait_for(lambda: not self.daemons(), limit_s, "the daemon is still there")

    def kill(self):
        for pid in self.daemons():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            # A process that is dying loses its command line before its locks.
            wait_for(lambda: is_gone(pid), 30, f"process {pid} survives kill -9")

    def detach(self):
        """Takes the mount away, alive or dead."""
        command = ["umount", "-l"] if os.getuid() == 0 else ["fusermount3", "-uz"]
        for _ in range(20):
            with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
                if not any(line.split()[4] == self.mnt for line in f):
                    return
            subprocess.run([*command, self.mnt], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
            time.sleep(0.02)
        raise Failure(f"{self.mnt} cannot be unmounted")
