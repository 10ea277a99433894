#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`nacre umount` of a mount in use names what uses it, of every kind, and leaves nothing behind in the
daemon each time. Once nothing uses the mount any more, it unmounts.

    busy_mounts.py                        the test
    busy_mounts.py hold KIND MOUNTPOINT   uses the mount until its standard input ends
"""
import ctypes
import mmap
import os
import re
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402

CLONE_FS, CLONE_FILES = 0x200, 0x400
BUSY = 32
FAILED_COUNT = 20  # more than the daemon keeps connections of clients that wait for its end


def expect(condition, what):
    if not condition:
        raise support.Failure(what)


def file_in(mountpoint):
    return os.path.join(mountpoint, "folder", "file")


def map_file(mountpoint):
    with open(file_in(mountpoint), "rb") as file:
        return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def open_and_remove(mountpoint):
    path = os.path.join(mountpoint, "removed")
    file = open(path, "w", encoding="ascii")
    os.unlink(path)
    return file


def bind(mountpoint):
    bound = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.join(mountpoint, "folder"))
    bound.bind("name")  # it is not known by its path
    os.chdir("/")
    os.unlink(os.path.join(mountpoint, "folder", "name"))
    return bound


def in_a_thread(mountpoint, own, use):
    done = threading.Event()
    forever = threading.Event()

    def work():
        if ctypes.CDLL(None).unshare(own) != 0:
            os._exit(1)
        kept = use(os.path.join(mountpoint, "folder"))
        done.set()
        forever.wait()
        del kept

    threading.Thread(target=work, daemon=True).start()
    done.wait()


KINDS = {
    "directory": lambda m: os.chdir(os.path.join(m, "folder")),
    "root": lambda m: (os.chroot(m), os.chdir("/")),
    "file": lambda m: open(file_in(m), "rb"),
    "path": lambda m: os.open(m, os.O_PATH),
    "removed": open_and_remove,
    "mapping": map_file,
    "socket": bind,
    "thread's directory": lambda m: in_a_thread(m, CLONE_FS, os.chdir),
    "thread's file": lambda m: in_a_thread(m, CLONE_FILES, lambda f: os.open(f, os.O_RDONLY)),
}
WORDS = {
    "directory": "has its current directory in it",
    "root": "has its root directory in it",
    "file": "has a file open in it",
    "path": "has a file open in it",
    "removed": "has a file open in it",
    "mapping": "maps a file of it",
    "socket": "has a socket that is bound to a name in it",
    "thread's directory": r"in its thread \d+ has its current directory in it",
    "thread's file": r"in its thread \d+ has a file open in it",
}


def hold(kind, mountpoint):
    kept = KINDS[kind](mountpoint)
    print("ready", flush=True)
    sys.stdin.read()
    del kept


class Holder:
    """A process that uses the mount. command: what runs it, with its name and arguments."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
        expect(self.process.stdout.readline().strip() == b"ready", f"{command} began")

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.communicate()


def holder(kind, mountpoint, *before):
    return Holder([*before, sys.executable, os.path.abspath(__file__), "hold", kind, mountpoint])


def refusal(volume):
    words = volume.run("nacre", "umount", volume.mnt, expect=(BUSY,))[1]
    expect(f"{volume.mnt} is in use: " in words and "Everything written so far is durable" in words, words)
    return words


def names_processes(volume):
    for kind, words in WORDS.items():
        if kind == "root" and os.getuid() != 0:
            continue
        with holder(kind, volume.mnt) as pid:
            said = refusal(volume)
            expect(re.search(rf"process {pid} \([^)]*\) {words}", said), f"{kind}: {said}")
    program = os.path.join(volume.mnt, "program")
    with open("/bin/cat", "rb") as source, open(program, "wb") as target:
        target.write(source.read())
    os.chmod(program, 0o700)
    running = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    running.stdin.write(b"ready\n")
    running.stdin.flush()
    running.stdout.readline()
    said = refusal(volume)
    running.communicate()
    expect(f"process {running.pid} (program) runs a program from it" in said, said)


def names_what_root_made(volume):
    # In another namespace a process keeps only the daemon; it is named with the one that is in the way.
    apart = ["unshare", "-m", "--propagation", "private"]
    with holder("file", volume.mnt), holder("directory", volume.mnt, *apart) as pid:
        said = refusal(volume)
        expect(re.search(rf"process {pid} \([^)]*\) has its current directory in it "
                         r"\(in another mount namespace\)", said), said)
    inner = os.path.join(volume.mnt, "folder")
    subprocess.run(["mount", "-t", "tmpfs", "none", inner], check=True)
    try:
        expect(f"{inner} is mounted within it (unmount that first)" in refusal(volume), "the inner mount")
    finally:
        subprocess.run(["umount", inner], check=True)
    with open(os.path.join(volume.mnt, "image"), "wb") as image:
        image.truncate(1 << 20)
    made = subprocess.run(["losetup", "-r", "-f", "--show", image.name], stdout=subprocess.PIPE, text=True,
                          check=False)
    if made.returncode != 0:
        support.skip_part("busy_mounts, loop devices", "there is none")
        return
    device = made.stdout.strip()
    try:
        said = refusal(volume)
        expect(f"the loop device {device} is made of {image.name} (losetup -d {device})" in said, said)
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


def count_of(pid):
    """Of the daemon: its sockets and its threads."""
    sockets = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            sockets += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
        except OSError:
            pass
    return sockets, len(os.listdir(f"/proc/{pid}/task"))


def leaves_nothing_behind(volume):
    daemon = volume.daemons()[0]
    with holder("file", volume.mnt):
        refusal(volume)
        before = count_of(daemon)
        for _ in range(FAILED_COUNT):
            refusal(volume)
        support.wait_for(lambda: count_of(daemon) <= before, 60,
                         f"sockets and threads were {before} and are {count_of(daemon)}")


def main():
    if len(sys.argv) == 4:
        return hold(*sys.argv[2:])
    try:
        with support.Volume("busy-mounts") as volume:
            volume.make()
            volume.mount()
            os.mkdir(os.path.join(volume.mnt, "folder"))
            with open(file_in(volume.mnt), "w", encoding="ascii") as file:
                file.write("content")
            names_processes(volume)
            if os.getuid() == 0:
                names_what_root_made(volume)
            leaves_nothing_behind(volume)
            # This command's own directory is not in the way.
            subprocess.run([os.path.join(volume.bin, "nacre"), "umount", "."], cwd=volume.mnt, check=True,
                           env=volume.environment)
            volume.wait_for_daemons(60)
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")
    return None


if __name__ == "__main__":
    main()
