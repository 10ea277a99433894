#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mount that an automounter makes when its mount point is first used, as systemd does for
x-systemd.automount: autofs lies on the mount point, and this process is its daemon (protocol 5, mounts
of type direct). The kernel lets only this process group reach the mount point meanwhile. Everybody
else who walks there waits for the end of the mount, mount.nacre's daemon as well.

All this happens in a mount namespace of its own. Whoever waits for autofs can be killed, and at the end
autofs is told that its daemon is gone (AUTOFS_IOC_CATATONIC), which lets everybody go.
"""
import ctypes
import errno
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402

# <linux/auto_fs.h>
IOC_READY, IOC_FAIL, IOC_CATATONIC = 0x9360, 0x9361, 0x9362
MISSING_DIRECT = 5
PACKET = struct.Struct("=iiIIQIIIII256s4x")
# <sys/mount.h>, <sys/prctl.h>
DETACH, NO_FOLLOW = 2, 8
SET_DEATH_SIGNAL = 1
LIBC = ctypes.CDLL(None, use_errno=True)
ROUND_COUNT = 20 if support.full_counts() else 4


def expect(condition, what):
    if not condition:
        raise support.Failure(what)


class Trigger:
    """autofs on a folder, and its daemon's end."""

    def __init__(self, folder):
        self.folder = folder.encode()
        self.pipe, given = os.pipe2(os.O_CLOEXEC)
        self.root = -1
        options = f"fd={given},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
        failed = LIBC.mount(b"nacre-test", self.folder, b"autofs", 0, options.encode())
        reason = os.strerror(ctypes.get_errno())
        os.close(given)
        if failed:
            support.skip("automount", f"autofs cannot be mounted: {reason}")
        self.root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        fcntl.ioctl(self.root, IOC_CATATONIC)
        os.close(self.root)
        while LIBC.umount2(self.folder, DETACH | NO_FOLLOW) == 0:
            pass

    def is_asked(self):
        return bool(select.select([self.pipe], [], [], 0)[0])

    def wait_for_request(self):
        limit_s = 60 * support.PATIENCE
        expect(select.select([self.pipe], [], [], limit_s)[0], "no request of autofs's")
        fields = PACKET.unpack(os.read(self.pipe, PACKET.size))
        expect(fields[1] == MISSING_DIRECT, f"a request of type {fields[1]}")
        return fields[2]

    def answer(self, token, was_mounted):
        fcntl.ioctl(self.root, IOC_READY if was_mounted else IOC_FAIL, token)


class User:
    """A process of another group, which lists the folder. It ends with this process."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [sys.executable, "-c", "import os, sys; print(sorted(os.listdir(sys.argv[1])))", folder],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=lambda: LIBC.prctl(SET_DEATH_SIGNAL, signal.SIGKILL))

    def result(self):
        text = self.process.communicate(timeout=60 * support.PATIENCE)[0]
        return self.process.returncode, text.strip().splitlines()[-1]


def waits_for_autofs(pid):
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/wchan", encoding="ascii") as file:
                if file.read() == "autofs_wait":
                    return True
        except OSError:
            pass
    return False


def run_mount(volume, *options):
    """mount.nacre in this process group, as mount(8) under systemd. Its exit status and words. It is
    not waited for by time: what waits for autofs now waits for this process, and so for ever."""
    with subprocess.Popen(
            [os.path.join(volume.bin, "mount.nacre"), "--passphrase-file", volume.passphrase, *options,
             volume.path, volume.mnt], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, env=volume.environment) as command:
        ended = os.pidfd_open(command.pid)
        try:
            while not select.select([ended], [], [], 0.05)[0]:
                stuck = [pid for pid in (command.pid, *volume.daemons()) if waits_for_autofs(pid)]
                if stuck:
                    command.kill()
                    raise support.Failure(f"mount.nacre {' '.join(options)} waits for itself: "
                                          f"process {stuck[0]} walked into the mount point")
        finally:
            os.close(ended)
        return command.wait(), command.stdout.read()


def mounts_on_first_use(volume, trigger):
    for number in range(ROUND_COUNT):
        user = User(volume.mnt)
        token = trigger.wait_for_request()
        options = [[], ["-o", "nonempty"], ["-o", "ro"], ["-o", "sandbox=off"]][number % 4]
        status, words = run_mount(volume, *options)
        trigger.answer(token, status == 0)
        expect(status == 0, f"mount.nacre {options}: {status}: {words}")
        expect(user.result() == (0, "['file']"), f"the user of round {number}")
        daemon = volume.daemons()[0]
        expect(os.getpgid(daemon) == daemon, "the daemon has a process group of its own")
        volume.unmount()
        volume.wait_for_daemons(60)
        expect(not trigger.is_asked(), "the unmounting used the trigger again")


def a_failure_lets_the_user_go(volume, trigger):
    for options in (["-o", "engine=none"], ["-o", "metrics=/nowhere/socket"],
                    ["-o", "passphrase-file=/nowhere"]):
        user = User(volume.mnt)
        token = trigger.wait_for_request()
        status, words = run_mount(volume, *options)
        trigger.answer(token, status == 0)
        expect(status != 0, f"mount.nacre {options} succeeded")
        code, text = user.result()
        expect(code == 1 and "No such file" in text, f"the user after {words}: {text}")
        volume.wait_for_daemons(60)


def commands_leave_the_trigger_alone(volume, trigger):
    for command in ("umount", "sync"):
        done = subprocess.run([os.path.join(volume.bin, "nacre"), command, volume.mnt], check=False,
                              stderr=subprocess.PIPE, env=volume.environment, start_new_session=True)
        expect(done.returncode == 8 and b"type autofs" in done.stderr, f"nacre {command} says {done}")
        expect(not trigger.is_asked(), f"nacre {command} used the trigger")


def main():
    if os.getuid() != 0:
        support.skip("automount", "only root can mount autofs")
    with open("/proc/filesystems", encoding="ascii") as file:
        if "autofs" not in file.read().split():
            support.skip("automount", "this kernel has no autofs")
    if "NACRE_AUTOMOUNT_NAMESPACE" not in os.environ:
        os.environ["NACRE_AUTOMOUNT_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    support.leave_others_mounts()
    try:
        os.setpgid(0, 0)
    except OSError as error:
        if error.errno != errno.EPERM:  # it leads a session
            raise
    try:
        with support.Volume("automount") as volume:
            volume.make()
            volume.mount()
            with open(os.path.join(volume.mnt, "file"), "w", encoding="ascii") as file:
                file.write("content")
            volume.unmount()
            with Trigger(volume.mnt) as trigger:
                mounts_on_first_use(volume, trigger)
                a_failure_lets_the_user_go(volume, trigger)
                commands_leave_the_trigger_alone(volume, trigger)
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
