#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks that a fresh reader of the format found: what an attacker may change, and what must not follow.

Each case raises Failure if the attack succeeds. attack.py CASE... runs the named cases, else all of them.
"""
import glob
import os
import shutil
import struct
import subprocess
import sys
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../support", "../golden"):
    sys.path.insert(0, os.path.join(HERE, folder))
import volume as support  # noqa: E402

try:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from reader.records import Identity
    from reader.rocksdb import Manifest
    from reader.secrets_and_suites import write_session_key
    from reader.volume import open_volume
except ImportError:
    support.skip("attack", "python3-cryptography is not there")

TOOL, EVIL, OWN = "tool", "#!/bin/sh\necho EVIL\n", "#!/bin/sh\necho base\n"
SECTIONS = ("system", "inodes", "dentries", "chunks", "inlined", "xattrs", "orphans")


class Scene(support.Volume):
    def __init__(self, volume_format):
        super().__init__("attack")
        self.make("--format", str(volume_format), "--codec", "none")

    def use(self, change, path=None):
        """Mounts the volume, or another one, calls change(), and unmounts."""
        own, self.path = self.path, path or self.path
        try:
            self.mount()
            change()
            self.unmount()
            self.wait_for_daemons(60)
        finally:
            self.path = own

    def write(self, name, text, mode=0o700):
        path = os.path.join(self.mnt, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(path, mode)

    def copy_to(self, name):
        path = os.path.join(self.work, name)
        shutil.copytree(self.path, path, ignore=shutil.ignore_patterns("*.sock", "lock"))
        return path

    def opened(self):
        return open_volume(self.path, self.passphrase)

    def expect_tool(self, what):
        """A mount is refused, or the file has the owner's mode, and the owner's content or none that reads."""
        if self.mount(expect=None)[0] != 0:
            return
        path = os.path.join(self.mnt, TOOL)
        text = None  # cannot be read
        try:
            mode = os.stat(path).st_mode & 0o7777
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return
        except OSError:
            pass  # what is lost may fail
        finally:
            self.unmount()
            self.wait_for_daemons(60)
        if text not in (None, OWN) or mode != 0o700:
            raise support.Failure(f"{what}: {TOOL} reads as {text!r} with mode {mode:o}")


def segments(path):
    return sorted(glob.glob(os.path.join(path, "segments", "*.seg")))


def records(path):
    with open(path, "rb") as file:
        content = file.read()
    place = 64
    while content[place:place + 4] == b"NREC":
        size, = struct.unpack_from("<I", content, place + 8)
        yield content[place:place + size]
        place += size


def append_to_first_segment(path, content):
    """Where no row reaches, but where a search for records looks."""
    with open(segments(path)[0], "ab") as file:
        file.write(content)


def tables_of(volume, names):
    for family in Manifest(volume.database.manifest.content, "manifest").families.values():
        if family.name in names:
            for _, number in family.tables:
                yield os.path.join(volume.path, "db", f"{number:06d}.sst")


def damage(path, offset=164):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def varint(number):
    encoded = b""
    while number > 127:
        encoded, number = encoded + bytes([number & 127 | 128]), number >> 7
    return encoded + bytes([number])


def sealed_record(keys, counter, salt, identity, plain):
    """A record of epoch 1, without codec."""
    suite, epoch_key = keys.epochs[1]
    body = struct.pack("<IIII", 0, len(plain), len(plain), 0)[:12] + identity.packed() + plain
    head = b"NREC" + struct.pack("<IIII", 1, 40 + len(body) + 16, 1, 0)[:12] + salt
    head += struct.pack("<I", counter)
    sealed = AESGCM(write_session_key(epoch_key, salt, suite)).encrypt(
        bytes(4) + struct.pack("<Q", counter), body, keys.volume_id + head)
    return head + struct.pack("<I", zlib.crc32(sealed, zlib.crc32(head))) + sealed


def forged_checkpoint(keys, tables):
    """A checkpoint of these rows, of a number above all others, as the key of epoch 1 makes it."""
    ordinal, salt = 9, os.urandom(16)
    stream, counts = b"", []
    for section, name in enumerate(SECTIONS, 1):
        rows = [(key, value) for key, value in sorted(tables[name].items())
                if not key.startswith(b"checkpoint/")]
        stream += bytes([section])
        for key, value in rows:
            stream += varint(0) + varint(len(key)) + key + varint(len(value)) + value
        stream += bytes(2)
        counts.append(len(rows))
    stream += bytes(1)
    part, number = ordinal << 40 | 1, ordinal << 40
    root = bytes([1]) + varint(2 * int(time.time())) + varint(ordinal) + varint(500)
    root += b"".join(map(varint, counts)) + varint(len(stream)) + varint(1)
    root += varint(ordinal) + varint(1) + varint(len(stream))
    return (sealed_record(keys, 0, salt, Identity(number, 0, part, 0, 3), stream) +
            sealed_record(keys, 1, salt, Identity(number, 0, part + 1, 0, 4), root))


def with_branch(volume_format):
    """A volume, and a copy of it that was mounted more often. The copy's records lie in the volume's
    first segment, behind the committed end. The attacker has no key."""
    scene = Scene(volume_format)
    scene.use(lambda: scene.write(TOOL, OWN))
    branch = scene.copy_to("branch")
    scene.use(lambda: scene.write("here", "alone"))
    scene.forget_states()
    for _ in range(3):
        scene.use(lambda: scene.write(TOOL, EVIL, 0o6777), branch)
    scene.forget_states()
    append_to_first_segment(scene.path, b"".join(
        record for path in segments(branch) for record in records(path)))
    return scene


def branch_in_repair(volume_format):
    with with_branch(volume_format) as scene:
        for path in tables_of(scene.opened(), ("inodes", "inlined", "chunks")):
            damage(path)
        scene.fsck("--repair", expect=None)
        scene.expect_tool("a repair takes rows of another branch's checkpoint")


def branch_in_salvage(volume_format):
    with with_branch(volume_format) as scene:
        shutil.rmtree(os.path.join(scene.path, "db"))
        target = os.path.join(scene.work, "target")
        os.mkdir(target)
        scene.fsck("--salvage", target, expect=None)
        scene.forget_states()
        scene.path = target
        scene.expect_tool("a salvage takes another branch's checkpoint before the volume's own")


def forged_checkpoint_in_repair(volume_format):
    """The attacker has the older keys while a rotation of format 2 is paused."""
    if volume_format == 1:
        return  # SECURITY.md, "Still open"
    with Scene(2) as scene:
        scene.use(lambda: (scene.write(TOOL, OWN), scene.write("big", "x" * (4 << 20))))
        then = scene.opened()
        scene.mount()
        scene.run("nacre", "key", "rotate", "--no-wait", "--rate", "4K", scene.mnt,
                  "--passphrase-file", scene.passphrase)
        scene.run("nacre", "key", "rotate", "--pause", scene.mnt)
        scene.unmount()
        scene.wait_for_daemons(60)
        tables = {name: dict(rows) for name, rows in then.tables.items()}
        for key, value in tables["inlined"].items():
            tables["inlined"][key] = value.replace(b"base", b"EVIL")
        append_to_first_segment(scene.path, forged_checkpoint(then.keyring, tables))
        for path in tables_of(scene.opened(), ("inodes", "inlined", "chunks")):
            damage(path)
        scene.fsck("--repair", expect=None)
        scene.expect_tool("a repair takes a checkpoint that the older key made")


def obsolete_tables_in_repair(volume_format):
    """The attacker has no key, and kept tables that the database removed long ago. One table of the
    manifest is taken away, and the old ones are put back under their own names."""
    with Scene(volume_format) as scene:
        kept = {}

        def keep():
            for path in glob.glob(os.path.join(scene.path, "db", "*.sst")):
                with open(path, "rb") as file:
                    kept.setdefault(path, file.read())
        scene.use(lambda: scene.write(TOOL, EVIL, 0o4777))
        keep()
        first = set(kept)
        scene.use(lambda: scene.write(TOOL, OWN))
        for turn in range(8):
            scene.use(lambda turn=turn: scene.write(f"more {turn}", "x"))
        gone = [path for path in first if not os.path.exists(path)]
        if not gone:
            raise support.Failure("no table was removed: the case shows nothing")
        os.remove(max(tables_of(scene.opened(), ("segments",))))
        for path in gone:
            with open(path, "wb") as file:
                file.write(kept[path])
        scene.fsck("--repair", expect=None)
        scene.expect_tool("a repair takes rows of tables that were removed before newer ones")


def stranger_stops_rotation(volume_format):
    """A file of 64 bytes that nothing depends on keeps the older keys valid for ever."""
    for folder in ("segments", "db"):
        with Scene(volume_format) as scene:
            scene.use(lambda: scene.write(TOOL, OWN))
            stranger = os.path.join(scene.path, folder, "notes")
            with open(segments(scene.path)[0], "rb") as source, open(stranger, "wb") as file:
                file.write(source.read(64))
            try:
                scene.run("nacre", "key", "rotate", scene.path, "--passphrase-file",
                          scene.passphrase, limit_s=60, expect=None)
            except support.Failure:
                raise support.Failure(f"with {folder}/notes a rotation never ends") from None


def second_writer(volume_format):
    """The file lock is removed while the volume is mounted, and the volume is mounted again."""
    with Scene(volume_format) as scene:
        other = os.path.join(scene.work, "other")
        os.mkdir(other)
        scene.mount()
        os.remove(os.path.join(scene.path, "lock"))
        secret = ("--passphrase-file", scene.passphrase)
        status, _ = scene.run("mount.nacre", *secret, scene.path, other, expect=None)
        try:
            if status == 0:
                raise support.Failure("two daemons write to one volume, since its lock was removed")
        finally:
            subprocess.run(["umount", "-l", other], stderr=subprocess.DEVNULL, check=False)


def backup_file_hides_age(volume_format):
    """An older state lies at another path, with an empty file 'backup' in it."""
    with Scene(volume_format) as scene:
        scene.use(lambda: scene.write("one", "1"))
        older = scene.copy_to("older")
        scene.use(lambda: scene.write("two", "2"))
        with open(os.path.join(older, "backup"), "wb"):
            pass
        try:
            scene.use(lambda: scene.write("three", "3"), older)
        except support.Failure:
            return  # refused
        status, text = scene.mount("-o", "ro", expect=None)
        if status != 0:
            raise support.Failure(f"the newest state counts as older after a 'backup' was used: {text}")


def twin_of_a_log(volume_format):
    """An empty file NN.log next to 0000NN.log: the message must name what was planted."""
    with Scene(volume_format) as scene:
        scene.use(lambda: scene.write(TOOL, OWN))
        log = max(glob.glob(os.path.join(scene.path, "db", "*.log")))
        twin = f"{int(os.path.basename(log)[:-4])}.log"
        with open(os.path.join(scene.path, "db", twin), "wb"):
            pass
        status, text = scene.mount("-o", "ro", expect=None)
        if status != 0 and f"db/{twin}" not in text:
            raise support.Failure(f"the message blames the genuine log for db/{twin}: {text}")


def old_keyring_in_list(volume_format):
    """Both copies of the keyring are put back as they were before a recipient was removed."""
    with Scene(volume_format) as scene:
        secret = ("--passphrase-file", scene.passphrase)
        second = os.path.join(scene.work, "second")
        with open(second, "w", encoding="utf-8") as file:
            file.write("another passphrase\n")
        scene.run("nacre", "key", "add", scene.path, "--new-passphrase-file", second, "--label", "second",
                  "--kdf-memory", "8192", "--kdf-time", "1", *secret)
        older = scene.copy_to("older")
        scene.run("nacre", "key", "remove", scene.path, "second", *secret)
        newer = scene.copy_to("newer")

        def put(source):
            for name in ("keyring", "keyring.copy"):
                shutil.copy(os.path.join(source, name), os.path.join(scene.path, name))

        def expect_told(how, *options):
            backup = os.path.join(scene.work, "backup")
            for command in (("list", scene.path), ("backup", scene.path, backup)):
                status, text = scene.run("nacre", "key", *command, *options, expect=None)
                if status != 4 or "it was put back to an older state" not in text or os.path.exists(backup):
                    raise support.Failure(f"nacre key {command[0]}, {how}, takes an older keyring: {text}")
        put(older)
        expect_told("not mounted", *secret)
        put(newer)
        scene.run("nacre", "key", "list", scene.path, *secret)
        scene.mount()
        put(older)
        expect_told("mounted", *secret)
        expect_told("mounted and without a secret")
        put(newer)
        scene.run("nacre", "key", "backup", scene.path, os.path.join(scene.work, "sound"))
        scene.unmount()
        scene.wait_for_daemons(60)


CASES = (branch_in_repair, branch_in_salvage, forged_checkpoint_in_repair, obsolete_tables_in_repair,
         stranger_stops_rotation, second_writer, backup_file_hides_age, twin_of_a_log, old_keyring_in_list)


def main():
    wanted = [case for case in CASES if case.__name__ in sys.argv[1:]] or CASES
    failed = 0
    for case in wanted:
        for volume_format in (1, 2):
            try:
                case(volume_format)
                print(f"{case.__name__}, format {volume_format}: holds")
            except support.Failure as failure:
                failed += 1
                print(f"FAILED: {case.__name__}, format {volume_format}: {failure}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
