#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A keyring does not tell an attacker which of many passphrases was typed.

AES-GCM does not commit to its key: an attacker without any secret can make bytes that open under the
keys of many passphrases (Len, Grubbs, Ristenpart: Partitioning Oracle Attacks, 2021). If a program acts
differently when such bytes open, each passphrase that is typed shows whether it is one of those many.
This test makes such bytes for two passphrases and puts them where a passphrase is used. It then compares
the messages for these two passphrases with those for a third. It also changes the other fields of a
recipient, and compares the messages again.
"""
import base64
import hashlib
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402
from keyring_by_hand import (argon2id, has_argon2, load_keyring, save_keyring,  # noqa: E402
                             seal_and_check)

try:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError:
    support.skip("committing_passphrase", "python3-cryptography is not there")

TEST = "committing_passphrase"
GUESSES = ("correct horse", "hunter2")
OTHER = "neither of these"


# Numbers of GHASH (NIST SP 800-38D): the highest bit of an integer here is the field's x^0.

def times(x, y):
    product = 0
    for bit in range(127, -1, -1):
        if x >> bit & 1:
            product ^= y
        y = y >> 1 ^ (0xe1 << 120 if y & 1 else 0)
    return product


def power(x, exponent):
    product = 1 << 127
    while exponent:
        if exponent & 1:
            product = times(product, x)
        x, exponent = times(x, x), exponent >> 1
    return product


def blocks(data):
    data += bytes(-len(data) % 16)
    return [int.from_bytes(data[at:at + 16], "big") for at in range(0, len(data), 16)]


def collide(keys, nonce, aads, size):
    """Nonce, ciphertext and tag that AES-GCM opens under both keys, each with its own additional data.
    Both additional data have the same size. size is that of the ciphertext, in whole blocks."""
    def encrypt(key, block):
        encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        return int.from_bytes(encryptor.update(block), "big")

    ciphertext = [int.from_bytes(os.urandom(16), "big") for _ in range(size // 16)]
    ciphertext[0] = 0  # the unknown that is solved for
    lengths = (len(aads[0]) * 8) << 64 | size * 8

    def tag_of(key, aad):
        subkey, value = encrypt(key, bytes(16)), 0
        for block in blocks(aad) + ciphertext + [lengths]:
            value = times(value ^ block, subkey)
        return value ^ encrypt(key, nonce + b"\0\0\0\1")

    total = tag_of(keys[0], aads[0]) ^ tag_of(keys[1], aads[1])
    factor = 0
    for key in keys:
        factor ^= power(encrypt(key, bytes(16)), len(ciphertext) + 1)
    ciphertext[0] = times(total, power(factor, (1 << 128) - 2))
    tag = tag_of(keys[0], aads[0])
    sealed = nonce + b"".join(block.to_bytes(16, "big") for block in ciphertext + [tag])
    for key, aad in zip(keys, aads):  # raises if the result is wrong
        AESGCM(key).decrypt(nonce, sealed[12:], aad)
    return sealed


class Trap:
    """A copy of a volume, whose keyring an attacker without any secret changes."""

    def __init__(self, volume, name, genuine):
        self.volume, self.path = volume, os.path.join(volume.work, name)
        shutil.copytree(genuine, self.path)
        self.volume.environment["XDG_CONFIG_HOME"] = os.path.join(volume.work, "config " + name)

    def change(self, change):
        keyring = load_keyring(self.path)
        change(keyring["recipients"][0], bytes.fromhex(keyring["volume_id"]))
        save_keyring(self.path, keyring)

    def said_to(self, passphrase):
        file = os.path.join(self.volume.work, "typed")
        with open(file, "w", encoding="utf-8") as typed:
            typed.write(passphrase)
        status, text = self.volume.run("nacre", "key", "list", self.path, "--passphrase-file", file,
                                       expect=None)
        return status, text.replace(self.path, "VOLUME")


def format_1(volume, genuine):
    def change(recipient, _):
        keys = [argon2id(guess.encode(), recipient["kdf"])[:32] for guess in GUESSES]
        sealed = collide(keys, os.urandom(12), [b"nacre private key"] * 2, 1200)
        recipient["private_key"] = base64.b64encode(sealed).decode()
        recipient.pop("mac")

    trap = Trap(volume, "trap 1", genuine)
    trap.change(change)
    wrong = trap.said_to(OTHER)
    if wrong[0] != 16:
        raise support.Failure(f"a wrong passphrase is not called that: {wrong}")
    for guess in GUESSES:
        if trap.said_to(guess) != wrong:
            raise support.Failure(f"'{guess}' is told from other passphrases: {trap.said_to(guess)}, "
                                  f"not {wrong}")


def format_2(volume, genuine, right):
    wrong = Trap(volume, "sound 2", genuine).said_to(OTHER)
    if wrong[0] != 16:
        raise support.Failure(f"a wrong passphrase is not called that: {wrong}")

    # The seal opens under both guesses. The check is still that of the right passphrase.
    def collision(recipient, volume_id):
        keys, bindings = [], []
        for guess in GUESSES:
            seal, check = seal_and_check(recipient, volume_id, guess)
            keys.append(seal)
            bindings.append(b"nacre passphrase recipient" + volume_id
                            + hashlib.sha256(b"nacre passphrase recipient" + check).digest() + check)
        recipient["sealed_volume_key"] = base64.b64encode(
            collide(keys, os.urandom(12), bindings, 32)).decode()

    def checked(recipient, check):
        recipient["check"] = check.hex()
        recipient["fingerprint"] = hashlib.sha256(b"nacre passphrase recipient" + check).hexdigest()

    def salted(recipient, _):
        recipient["kdf"]["salt"] = base64.b64encode(os.urandom(32)).decode()

    def costlier(recipient, _):
        recipient["kdf"]["passes"] += 1

    def another_seal(recipient, _):
        recipient["sealed_volume_key"] = base64.b64encode(os.urandom(60)).decode()

    def another_word(recipient, _):
        recipient["follows"] = "ab" * 32

    def another_check(recipient, _):
        checked(recipient, os.urandom(32))

    # The check and the fingerprint are made for one guess. The seal is bound to other values.
    def check_of_a_guess(recipient, volume_id):
        checked(recipient, seal_and_check(recipient, volume_id, GUESSES[0])[1])

    for name, change in (("collision", collision), ("salt", salted), ("cost", costlier),
                         ("seal", another_seal), ("follows", another_word), ("check", another_check),
                         ("check of a guess", check_of_a_guess)):
        trap = Trap(volume, f"trap 2 {name}", genuine)
        trap.change(change)
        for passphrase in (right, *GUESSES, OTHER):
            if trap.said_to(passphrase) != wrong:
                raise support.Failure(f"{name}: '{passphrase}' is told from other passphrases: "
                                      f"{trap.said_to(passphrase)}, not {wrong}")


def main():
    if not has_argon2():
        support.skip(TEST, "libargon2.so.1 is not there")
    with support.Volume(TEST) as volume:
        with open(volume.passphrase, encoding="utf-8") as file:
            right = file.read().rstrip("\n")
        for number in (1, 2):
            genuine = os.path.join(volume.work, f"genuine {number}")
            volume.run("mkfs.nacre", "--passphrase-file", volume.passphrase, "--format", str(number),
                       *support.CHEAP_KDF, genuine)
            if number == 1:
                format_1(volume, genuine)
            else:
                format_2(volume, genuine, right)
    print("nothing tells a guessed passphrase from another wrong one")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
