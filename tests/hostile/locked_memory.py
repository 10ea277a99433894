#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Once a mount is locked, the daemon's memory holds neither keys nor content: not the volume key, the key
of an epoch or of a write session, the passphrase, nor bytes of files that were written, read or inlined.
The same search finds keys and content there before."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../golden"):
    sys.path.insert(0, os.path.join(HERE, folder))
import volume as support  # noqa: E402

TEST = "locked_memory"
try:
    from reader.secrets_and_suites import write_session_key
    from reader.volume import open_volume
except ImportError:
    support.skip(TEST, "python3-cryptography is not there")

PIECE = 32
STEP = 4 << 20


def memory_of(pid):
    """[(mapping, bytes)] of all memory that the process can write to."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as table, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in table:
            words = line.split()
            begin, end = (int(number, 16) for number in words[0].split("-"))
            if "w" not in words[1] or "r" not in words[1] or "nacre-known-inodes" in line:
                continue
            name = words[5] if len(words) > 5 else f"{end - begin} bytes of no name"
            content = bytearray()
            for at in range(begin, end, STEP):
                try:
                    memory.seek(at)
                    content += memory.read(min(STEP, end - at))
                except OSError:
                    break
            if content.count(0) != len(content):
                found.append((f"{words[0]} {name}", bytes(content)))
    return found


def places(memory, needles):
    return sorted((name, where) for name, needle in needles.items()
                  for where, content in memory if needle in content)


def write(path, content, sync=True):
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(file.fileno())


def use(volume, content):
    """Files that are read, written, small, named and linked, in every cache of the daemon."""
    at = lambda name: os.path.join(volume.mnt, name)  # noqa: E731
    with open(at("old"), "rb") as file:
        if content["what was read"] not in file.read():
            raise support.Failure("the old file's content")
    write(at("new"), content["what was written"] * 40_000)
    write(at("unsynced"), content["what was written and not synced"] * 40_000, sync=False)
    write(at("small"), content["what a small file holds"])
    os.symlink(content["a symbolic link's target"].hex(), at("link"))
    os.readlink(at("link"))
    os.setxattr(at("small"), "user.secret", content["an extended attribute"])
    os.listdir(volume.mnt)
    volume.run("nacre", "sync", volume.mnt)
    # The kernel asks the daemon again.
    for name in ("old", "new", "unsynced", "small"):
        with open(at(name), "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            file.read()


def keys_of(volume):
    closed = open_volume(volume.path, volume.passphrase)
    keyring = closed.keyring
    suite, epoch_key = keyring.epochs[keyring.newest_epoch]
    needles = {"the volume key": keyring.volume_key, "the epoch's key": epoch_key}
    for salt, (number, _, _) in closed.sessions.items():
        needles[f"the key of write session {number}"] = write_session_key(epoch_key, salt, suite)
    return needles


def check_round(volume, content, number):
    use(volume, content)
    pid, = volume.daemons()
    before = memory_of(pid)
    volume.run("nacre", "lock", volume.mnt)
    after = memory_of(pid)
    keys = keys_of(volume)  # a volume that is locked is closed
    with open(volume.passphrase, encoding="utf-8") as file:
        phrase = {"the passphrase": file.read().strip().encode()}
    found = {name for name, _ in places(before, keys | content)}
    newest = max((name for name in keys if "session" in name), key=lambda name: int(name.split()[-1]))
    for name in ["the volume key", "the epoch's key", newest, *content]:
        if name not in found and name != "a symbolic link's target":
            raise support.Failure(f"round {number}: the search does not find {name} before locking")
    left = places(after, keys | content | phrase)
    if left:
        raise support.Failure(f"round {number}: the locked daemon still holds {left}")
    size = lambda memory: sum(len(part) for _, part in memory) >> 20  # noqa: E731
    print(f"round {number}: {size(before)} MiB before, {size(after)} MiB after")


def main():
    if os.geteuid() != 0:
        support.skip(TEST, "only root reads the memory of a process that is not dumpable")
    names = ("what was read", "what was written", "what was written and not synced",
             "what a small file holds", "a symbolic link's target", "an extended attribute")
    content = {name: os.urandom(PIECE) for name in names}
    with support.Volume(TEST) as volume:
        with open(volume.passphrase, "w", encoding="utf-8") as file:
            file.write("phrase " + os.urandom(16).hex() + "\n")
        volume.make()
        volume.mount()
        write(os.path.join(volume.mnt, "old"), content["what was read"] * 40_000)
        volume.unmount()
        volume.wait_for_daemons(60)
        volume.mount()
        for number in (1, 2):
            check_round(volume, content, number)
            volume.run("nacre", "unlock", "--passphrase-file", volume.passphrase, volume.mnt)
            os.unlink(os.path.join(volume.mnt, "link"))
        volume.unmount()
        volume.wait_for_daemons(60)


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")
