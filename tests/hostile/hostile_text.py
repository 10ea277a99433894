#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""File names and labels that are made to move a terminal's cursor or to begin a line of a log.

No command, log file or JSON shows them unchanged: control characters (C0, DEL, C1), controls of
writing direction and bytes that are not UTF-8 are escaped. The system's log has no file names at
all, unless mount.nacre is asked for more messages.
"""
import ctypes
import json
import os
import re
import socket
import subprocess
import sys
import threading
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402

TEST = "hostile_text"
NAME = b"plain\n2026-01-01 00:00:00 info: volume: clean\r\x1b[2J\xc2\x9b31m\x7f\xe2\x80\xae\xd8\x9c" \
       b"\xe2\x81\xa6\xe2\x80\xa8\xff\xc2"
ESCAPED = ["\\x0a2026", "\\x0d", "\\x1b[2J", "\\u009b31m", "\\x7f", "\\u202e", "\\u061c", "\\u2066",
           "\\u2028", "\\xff", "\\xc2"]
LABEL = "ann\u009b31m\u202e\u2066"  # earlier versions accepted this as a label
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
JOURNAL = "/run/systemd/journal/socket"
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def expect(condition, what, *details):
    if not condition:
        print("FAILED:", what, *(repr(detail) for detail in details), sep="\n")
        raise support.Failure(what)


def check_printable(raw, what):
    """Checks that raw is UTF-8 without any character that a terminal obeys. Returns the text."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        expect(False, f"{what} is UTF-8", str(error), raw[-2000:])
    found = FORBIDDEN.search(text)
    expect(found is None, f"{what} holds no control characters", found and found.group(), text[-2000:])
    expect(not any(line.startswith("2026-01-01 00:00:00 info") for line in text.splitlines()),
           f"{what} has no line that another user wrote", text[-2000:])
    return text


def run(volume, program, *arguments, expected=(0,)):
    done = subprocess.run([os.path.join(volume.bin, program), *arguments], env=volume.environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=300 * support.PATIENCE, check=False)
    what = f"{program} {' '.join(arguments[:2])}"
    text = check_printable(done.stdout, what)
    expect(done.returncode in expected, f"{what} ends with one of {expected}", done.returncode, text)
    return text


def shows_name(text, what):
    for piece in ESCAPED:
        expect(piece in text, f"{what} shows {piece}", text[-2000:])


def strings_of(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_of(inner)


def json_names_it(text, what):
    strings = list(strings_of(json.loads(text)))
    expect(any("\x1b[2J\u009b31m\x7f\u202e" in string for string in strings),
           f"{what} has the name, as JSON writes it", text[-2000:])


def damage_records(volume):
    folder = os.path.join(volume.path, "segments")
    count = 0
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "r+b") as file:
            content = bytearray(file.read())
            at = 64
            while content[at:at + 4] == b"NREC":
                size = int.from_bytes(content[at + 8:at + 12], "little")
                content[at + size - 1] ^= 1
                at += size
                count += 1
            file.seek(0)
            file.write(content)
    expect(count > 0, "there are records")


def read_damaged(volume):
    try:
        with open(os.path.join(os.fsencode(volume.mnt), NAME), "rb") as file:
            file.read()
    except OSError:
        return
    raise support.Failure("a damaged file can be read")


def mounted_read(volume, *options):
    volume.mount(*options)
    read_damaged(volume)
    run(volume, "nacre", "scrub", volume.mnt, expected=(4,))
    run(volume, "nacre", "scrub", "--json", volume.mnt, expected=(4,))
    run(volume, "nacre", "stats", volume.mnt)
    volume.unmount()
    volume.wait_for_daemons(60)


def check_logs(volume):
    path = os.path.join(volume.work, "log")
    mounted_read(volume, "--log-file", path)
    with open(path, "rb") as file:
        text = check_printable(file.read(), "the log file")
    shows_name(text, "the log file, which the user named,")
    expect(all(re.match(r"\d{4}-\d\d-\d\dT", line) for line in text.splitlines()),
           "each line of the log begins with its time", text[-2000:])
    mounted_read(volume, "-o", f"log=json:{path}.json")
    with open(path + ".json", "rb") as file:
        text = check_printable(file.read(), "the log as JSON")
    messages = [json.loads(line)["message"] for line in text.splitlines()]
    expect(any("\\x1b[2J" in message for message in messages), "the JSON has the name", messages)


class Journal:
    """Takes the place of the system's journal. It must read: a few unread messages block the sender."""

    def __init__(self):
        os.makedirs(os.path.dirname(JOURNAL))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(JOURNAL)
        self.taken = []
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        while True:
            self.taken.append(self.socket.recv(1 << 16))

    def messages(self):
        """The messages up to now. Datagrams keep their order, so all that were sent before are there."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as mark:
            mark.connect(JOURNAL)
            mark.send(b"mark")
        support.wait_for(lambda: b"mark" in self.taken, 300, "the journal takes nothing")
        result = self.taken[:self.taken.index(b"mark")]
        del self.taken[:len(result) + 1]
        return b"\n".join(result)


def check_system_log(volume):
    if os.geteuid() != 0:
        support.skip_part(TEST, "the system's log: only root can put a folder over /run")
        return
    # The mount namespace hides these mounts from the rest of the system.
    for name, arguments in (("unshare", (CLONE_NEWNS,)),
                            ("mount", (None, b"/", None, MS_REC | MS_PRIVATE, None)),
                            ("mount", (b"none", b"/run", b"tmpfs", 0, None))):
        if getattr(libc, name)(*arguments) != 0:
            support.skip_part(TEST, f"the system's log: {name}: {os.strerror(ctypes.get_errno())}")
            return
    support.leave_others_mounts()
    journal = Journal()
    mounted_read(volume, "-o", "log=journal")
    said = journal.messages()
    inode = b"(inode "
    expect(inode in said and b"EIO" not in said, "the log says which inode is hit", said[-2000:])
    expect(b"plain" not in said, "the system's log has no names of files", said[-2000:])
    mounted_read(volume, "-v", "-o", "log=journal")
    expect(b"plain\\x0a" in journal.messages(), "with -v it has them, escaped")


def change_document(volume, name, change):
    """Changes it as an attacker with write access can: without a key, with a right checksum."""
    path = os.path.join(volume.path, name)
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    del document["crc32"]
    change(document)
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    document["crc32"] = f"{zlib.crc32(canonical.encode()):08x}"
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
    for copy in (path, path + ".copy"):
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)


def check_labels(volume):
    change_document(volume, "keyring", lambda d: d["recipients"][0].update(label=LABEL))
    change_document(volume, "superblock", lambda d: d.update(label=LABEL))
    shown = run(volume, "nacre", "key", "list", volume.path)
    expect("ann\\u009b31m\\u202e\\u2066" in shown, "a label is shown escaped", shown)
    listed = json.loads(run(volume, "nacre", "key", "list", "--json", volume.path))
    expect(listed["recipients"][0]["label"] == LABEL, "JSON has the label", listed)
    for command in (["stats"], ["stats", "--json"], ["dump", "keyring"], ["dump", "superblock"]):
        run(volume, "nacre", *command, volume.path)
    run(volume, "fsck.nacre", "--passphrase-file", volume.passphrase, volume.path, expected=(4,))
    # A text that no version ever wrote is refused as a label.
    for bad in ("ann\nvolume: clean", "ann\x1b[2J", "ann\x7f"):
        change_document(volume, "keyring",
                        lambda d, label=bad: d["recipients"][0].update(label=label))
        text = run(volume, "nacre", "key", "list", volume.path, expected=(4,))
        expect("control characters" in text, "such a label is refused by name", text)


def main():
    with support.Volume(TEST) as volume:
        volume.make("--codec", "none")
        volume.mount()
        with open(os.path.join(os.fsencode(volume.mnt), NAME), "wb") as file:
            file.write(os.urandom(300_000))
            os.fsync(file.fileno())
        volume.unmount()
        volume.wait_for_daemons(60)
        damage_records(volume)
        key = ["--passphrase-file", volume.passphrase]
        shows_name(run(volume, "fsck.nacre", "--deep", *key, volume.path, expected=(4,)), "fsck")
        json_names_it(run(volume, "fsck.nacre", "--deep", "--json", *key, volume.path, expected=(4,)),
                      "fsck --json")
        dry = ["--repair", "--dry-run", *key, volume.path]
        shows_name(run(volume, "fsck.nacre", *dry, expected=(0, 1, 4)), "a repair")
        json_names_it(run(volume, "fsck.nacre", "--json", *dry, expected=(0, 1, 4)), "a repair")
        run(volume, "nacre", "dump", "tables", *key, volume.path)
        check_logs(volume)
        check_labels_on = os.path.join(volume.work, "labels")
        subprocess.run(["cp", "-a", volume.path, check_labels_on], check=True)
        whole, volume.path = volume.path, check_labels_on
        check_labels(volume)
        volume.path = whole
        check_system_log(volume)
    print("what others wrote was shown escaped, everywhere")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")
