#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Once a volume is mounted, the daemon's memory no longer holds the secret that opened it: neither the
passphrase, nor the numbers of the private key, nor the text from which they were read."""
import base64
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402
from keyring_by_hand import has_argon2, load_keyring, seal_and_check  # noqa: E402

TEST = "secrets_in_memory"
PIECE = 24  # this many bytes are in no memory by chance
STEP = 1 << 20


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def make_key(folder):
    private, public = os.path.join(folder, "me.pem"), os.path.join(folder, "me.pub")
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072", "-out", private)
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    return private, public


def needles_of_key(private):
    """Pieces from the middle of each secret number, in both orders of bytes, and of the file."""
    text = openssl("pkey", "-in", private, "-noout", "-text").decode()
    found = {}
    for name in ("privateExponent", "prime1", "prime2", "exponent1", "exponent2", "coefficient"):
        digits = re.search(name + r":\s*\n((?:\s+[0-9a-f:]+\n)+)", text).group(1)
        number = bytes.fromhex(re.sub(r"[\s:]", "", digits)).lstrip(b"\0")
        middle = len(number) // 2
        piece = number[middle:middle + PIECE]
        found[name] = piece
        found[name + ", least byte first"] = piece[::-1]
    with open(private, "rb") as file:
        lines = file.read().splitlines()
    found["a line of the key's file"] = lines[len(lines) // 2]
    der = base64.b64decode(b"".join(lines[1:-1]))
    found["the key's DER"] = der[len(der) // 2:len(der) // 2 + PIECE]
    return found


def places_in_memory(pid, needles):
    """Returns [(name, mapping)] for each needle in memory that the process can write to."""
    found = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as table, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in table:
            words = line.split()
            begin, end = (int(number, 16) for number in words[0].split("-"))
            if "w" not in words[1] or "r" not in words[1]:
                continue
            where = words[5] if len(words) > 5 else f"{end - begin} bytes of no name"
            rest = b""
            for at in range(begin, end, STEP):
                try:
                    memory.seek(at)
                    part = rest + memory.read(min(STEP, end - at))
                except OSError:
                    rest = b""
                    continue
                found += [(name, where) for name, bytes_ in needles.items() if bytes_ in part]
                rest = part[-128:]
    return found


def check(volume, what, needles, *secret, meanwhile=lambda: None):
    status, text = volume.run("mount.nacre", *secret, volume.path, volume.mnt)
    if status != 0 or not os.path.ismount(volume.mnt):
        raise support.Failure(f"{what} does not mount: {text}")
    with open(os.path.join(volume.mnt, "file"), "w", encoding="utf-8") as file:
        file.write("content")
        file.flush()
        os.fsync(file.fileno())
    meanwhile()
    pids = volume.daemons()
    if len(pids) != 1:
        raise support.Failure(f"there are {len(pids)} daemons")
    # Shows that the search finds something that is there.
    if not places_in_memory(pids[0], {"path": volume.path.encode()}):
        raise support.Failure("the volume's path is not in the daemon's memory")
    found = places_in_memory(pids[0], needles)
    volume.unmount()
    volume.wait_for_daemons(60)
    if found:
        raise support.Failure(f"mounted with {what}, the daemon still holds: {sorted(set(found))}")


def check_format_2():
    """The same for the key with which a passphrase seals, even after a rotation needed it."""
    with support.Volume(TEST) as volume:
        volume.make("--format", "2")
        with open(volume.passphrase, encoding="utf-8") as file:
            phrase = file.read().rstrip("\n")
        keyring = load_keyring(volume.path)
        seal, _ = seal_and_check(keyring["recipients"][0], bytes.fromhex(keyring["volume_id"]), phrase)
        needles = {"the passphrase": phrase.encode(), "what seals the volume key": seal,
                   "that in hexadecimal": seal.hex().encode()}
        secret = ("--passphrase-file", volume.passphrase)
        check(volume, "a passphrase of format 2", needles, *secret)
        check(volume, "a passphrase of format 2 and rotated", needles, *secret, meanwhile=lambda:
              volume.run("nacre", "key", "rotate", volume.mnt, *secret, limit_s=300))
        if load_keyring(volume.path)["epochs"][0]["number"] != 2:
            raise support.Failure("the daemon did not rotate")


def main():
    if os.geteuid() != 0:
        support.skip(TEST, "only root reads the memory of a process that is not dumpable")
    if not shutil.which("openssl"):
        support.skip(TEST, "there is no openssl(1)")
    with support.Volume(TEST) as volume:
        private, public = make_key(volume.work)
        phrase = "phrase " + os.urandom(16).hex()
        with open(volume.passphrase, "w", encoding="utf-8") as file:
            file.write(phrase + "\n")
        volume.make("--recipient", public)
        by_phrase = {"the passphrase": phrase.encode()}
        check(volume, "a passphrase", by_phrase, "--passphrase-file", volume.passphrase)
        by_key = needles_of_key(private)
        check(volume, "a private key", by_key, "--identity", private)
        sealed = os.path.join(volume.work, "sealed.pem")
        openssl("pkcs8", "-topk8", "-in", private, "-out", sealed, "-v2", "aes-256-cbc", "-passout",
                f"file:{volume.passphrase}")
        by_key.pop("a line of the key's file")
        check(volume, "a private key under a passphrase", by_key | by_phrase, "--identity", sealed,
              "--passphrase-file", volume.passphrase)
    if has_argon2():
        check_format_2()
    else:
        support.skip_part(TEST + ", format 2", "libargon2.so.1 is not there")
    print("nothing of passphrase and private key stays in the daemon's memory")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")
