#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/vectors/ from docs/FORMAT.md, by code of its own that writes what reader/ reads.

    make_vectors.py VOLUMES FOLDER

VOLUMES: the golden volumes' folder, of which one stream of each codec is taken. The files were made once
and are committed; they are what counts. Keys are hashes of their names, so that nobody takes them for
secrets; the RSA key and what OAEP draws are random and were kept.
"""
import base64
import collections
import hashlib
import hmac
import json
import os
import struct
import sys
import tarfile
import tempfile
import zlib

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
# pylint: disable=wrong-import-position
from read_volume import listing
from reader import records as records_module
from reader.basics import name_hash
from reader.derivations import DERIVATIONS, OTHER_SUBKEYS
from reader.documents import canonical_dump, file_text
from reader.secrets_and_suites import (SUITES, argon2id, block_cipher, database_file_key, derive,
                                       volume_subkey, write_session_key)
from reader.volume import open_volume

PASSPHRASE = "a passphrase of test vectors"
Epoch = collections.namedtuple("Epoch", ("number", "suite", "key"))


def test_bytes(name, size):
    return hashlib.shake_256(b"nacre test key: " + name.encode()).digest(size)


VOLUME_ID = test_bytes("volume id", 16)
VOLUME_KEY = test_bytes("volume key", 32)
SALT = test_bytes("session salt", 16)
FILE_SALT = test_bytes("file salt", 16)
EPOCHS = [Epoch(suite.number, suite, test_bytes(f"epoch key {suite.name}", suite.key_size))
          for suite in SUITES]


def hmac_sha256(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def keys_of(epoch):
    return {"volume_id": VOLUME_ID.hex(), "epoch": epoch.number, "suite": epoch.suite.name,
            "epoch_key": epoch.key.hex()}


def derivations():
    subkeys = {name: text for name, text in {**DERIVATIONS, **OTHER_SUBKEYS}.items()
               if name in ("superblock mac", "keyring mac", "epoch wrap", "previous volume key")
               or name in OTHER_SUBKEYS}
    hash_key = test_bytes("name hash key", 16)
    return {
        "volume_id": VOLUME_ID.hex(),
        "volume_key": VOLUME_KEY.hex(),
        "volume_subkeys": [
            {"purpose": purpose, "info": info.decode(),
             "key": volume_subkey(VOLUME_KEY, VOLUME_ID, purpose).hex()}
            for purpose, info in subkeys.items()],
        "write_sessions": [
            {**keys_of(epoch), "salt": SALT.hex(), "info": f"nacre write session {epoch.suite.name}",
             "key": write_session_key(epoch.key, SALT, epoch.suite).hex()} for epoch in EPOCHS],
        "database_files": [
            {**keys_of(epoch), "salt": FILE_SALT.hex(), "info": "nacre database file",
             "key": database_file_key(epoch.key, FILE_SALT).hex()} for epoch in EPOCHS[:4:3]],
        "name_hash_key": hash_key.hex(),
        "name_hashes": [{"name": name, "hash": name_hash(hash_key, name.encode())}
                        for name in ("a", "seven b", "eight by", "a longer name.txt", "ünïcödé", "n" * 255)],
    }


def seal_secret(key, nonce_name, aad, secret):
    nonce = test_bytes(nonce_name, 12)
    return base64.b64encode(nonce + AESGCM(key).encrypt(nonce, secret, aad)).decode()


def document(fields, subkey):
    fields["mac"] = hmac_sha256(subkey, canonical_dump(fields)).hex()
    fields["crc32"] = f"{zlib.crc32(canonical_dump(fields)):08x}"
    return file_text(fields).decode()


def keyring():
    private = rsa.generate_private_key(65537, 2048)
    pkcs8 = private.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8,
                                  serialization.NoEncryption())
    public = private.public_key().public_bytes(serialization.Encoding.DER,
                                               serialization.PublicFormat.SubjectPublicKeyInfo)
    kdf_salt = test_bytes("argon2 salt", 32)
    kdf = {"name": "argon2id", "memory_kib": 8192, "passes": 1, "lanes": 1}
    both = argon2id(PASSPHRASE.encode(), kdf_salt, kdf["memory_kib"], kdf["passes"], kdf["lanes"], 64)
    fingerprint = hashlib.sha256(public).digest()
    label = DERIVATIONS["oaep label"] + VOLUME_ID.hex().encode()
    wrapped = private.public_key().encrypt(VOLUME_KEY, padding.OAEP(
        mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label))
    wrap = volume_subkey(VOLUME_KEY, VOLUME_ID, "epoch wrap")
    previous = test_bytes("previous volume key", 32)
    moment = "2026-01-31T23:59:59Z"
    ring = {
        "format": "nacre keyring", "version": 1, "generation": 7, "volume_id": VOLUME_ID.hex(),
        "epochs": [{"number": epoch.number, "cipher": epoch.suite.name, "wrapped_key": seal_secret(
            wrap, f"nonce {epoch.number}",
            VOLUME_ID + struct.pack("<IB", epoch.number, epoch.suite.number), epoch.key)}
            for epoch in EPOCHS],
        "previous_volume_key": seal_secret(
            volume_subkey(VOLUME_KEY, VOLUME_ID, "previous volume key"), "nonce", VOLUME_ID, previous),
        "recipients": [{
            "kind": "passphrase", "label": "a test key", "created": moment,
            "fingerprint": fingerprint.hex(), "public_key": base64.b64encode(public).decode(),
            "wrapped_volume_key": base64.b64encode(wrapped).decode(),
            "kdf": {**kdf, "salt": base64.b64encode(kdf_salt).decode()},
            "private_key": seal_secret(both[:32], "private key's nonce", DERIVATIONS["private key"], pkcs8),
            "mac": hmac_sha256(both[32:], DERIVATIONS["recipient mac"] + VOLUME_ID + fingerprint +
                               wrapped).hex()}],
    }
    superblock = {
        "format": "nacre", "version": 1, "generation": 3, "volume_id": VOLUME_ID.hex(),
        "label": 'a "test" vector \\ ☃', "created": moment, "chunk_size_bytes": 65536,
        "padding": "padme", "codec": "auto", "level": 9, "cipher": "aes-256-gcm",
        "features": {"compatible": [], "incompatible": [], "read_only_compatible": []},
    }
    return {
        "passphrase": PASSPHRASE,
        "argon2id": {**kdf, "salt": kdf_salt.hex(), "k1_k2": both.hex()},
        "private_key_pkcs8": pkcs8.hex(),
        "wrapped_volume_key": wrapped.hex(),
        "oaep_label": label.decode(),
        "volume_id": VOLUME_ID.hex(),
        "volume_key": VOLUME_KEY.hex(),
        "previous_volume_key": previous.hex(),
        "epochs": [keys_of(epoch) for epoch in EPOCHS],
        "keyring": document(ring, volume_subkey(VOLUME_KEY, VOLUME_ID, "keyring mac")),
        "superblock": document(superblock, volume_subkey(VOLUME_KEY, VOLUME_ID, "superblock mac")),
        "superblock_under_previous_key": document(
            {name: value for name, value in superblock.items() if name not in ("mac", "crc32")},
            volume_subkey(previous, VOLUME_ID, "superblock mac")),
    }


def keyring_of_format_2():
    """A passphrase that seals the volume key, one whose key pair has it, and a kind of another version."""
    private = rsa.generate_private_key(65537, 2048)
    pkcs8 = private.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8,
                                  serialization.NoEncryption())
    public = private.public_key().public_bytes(serialization.Encoding.DER,
                                               serialization.PublicFormat.SubjectPublicKeyInfo)
    kdf = {"name": "argon2id", "memory_kib": 8192, "passes": 1, "lanes": 1}
    moment, passphrases = "2026-01-31T23:59:59Z", (PASSPHRASE, "another " + PASSPHRASE)
    label = DERIVATIONS["oaep label"] + VOLUME_ID.hex().encode()
    wrapped = private.public_key().encrypt(VOLUME_KEY, padding.OAEP(
        mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label))
    previous = test_bytes("previous volume key", 32)
    follows = hashlib.sha256(VOLUME_ID + volume_subkey(previous, VOLUME_ID, "fingerprint")).digest()
    recipients, derived = [], []
    for number, passphrase in enumerate(passphrases):
        salt = test_bytes(f"argon2 salt of format 2, {number}", 32)
        root = argon2id(passphrase.encode(), salt, 8192, 1, 1, 64)
        check = derive(root, VOLUME_ID, DERIVATIONS["passphrase check"], 32)
        seal = derive(root, VOLUME_ID, DERIVATIONS["passphrase seal"], 32)
        named = DERIVATIONS["passphrase recipient"] + check if number == 0 else public
        fingerprint = hashlib.sha256(named).digest()
        binding = DERIVATIONS["passphrase recipient"] + VOLUME_ID + fingerprint + check
        recipient = {"kind": "passphrase", "label": f"passphrase {number}", "created": moment,
                     "fingerprint": fingerprint.hex(), "check": check.hex(),
                     "kdf": {**kdf, "salt": base64.b64encode(salt).decode()}}
        if number == 0:
            recipient["follows"] = follows.hex()
            recipient["sealed_volume_key"] = seal_secret(seal, "volume key's nonce", binding + follows,
                                                         VOLUME_KEY)
        else:
            recipient["public_key"] = base64.b64encode(public).decode()
            recipient["private_key"] = seal_secret(seal, "private key's nonce",
                                                   DERIVATIONS["private key"] + binding, pkcs8)
            recipient["wrapped_volume_key"] = base64.b64encode(wrapped).decode()
        recipients.append(recipient)
        derived.append({"passphrase": passphrase, "argon2id": {**kdf, "salt": salt.hex(), "x": root.hex()},
                        "check": check.hex(), "seal": seal.hex(), "fingerprint": fingerprint.hex(),
                        "binding": binding.hex()})
    recipients.append({"kind": 3, "label": "of a later version", "created": moment,
                       "fingerprint": test_bytes("another fingerprint", 32).hex(),
                       "body": base64.b64encode(test_bytes("body", 100)).decode()})
    epoch = EPOCHS[0]
    ring = {
        "format": "nacre keyring", "version": 1, "generation": 9, "volume_id": VOLUME_ID.hex(),
        "epochs": [{"number": epoch.number, "cipher": epoch.suite.name, "format": 2,
                    "wrapped_key": seal_secret(
                        volume_subkey(VOLUME_KEY, VOLUME_ID, "epoch wrap"), "nonce of format 2",
                        VOLUME_ID + struct.pack("<IB", epoch.number, epoch.suite.number) + b"\2",
                        epoch.key)}],
        "recipients": recipients,
    }
    return {
        "volume_id": VOLUME_ID.hex(),
        "volume_key": VOLUME_KEY.hex(),
        "previous_volume_key": previous.hex(),
        "follows": follows.hex(),
        "passphrases": derived,
        "epoch": keys_of(epoch),
        "keyring": document(ring, volume_subkey(VOLUME_KEY, VOLUME_ID, "keyring mac")),
    }


def seal_suite(suite, key, nonce, aad, plain):
    """Ciphertext and tag."""
    if suite.mode == "gcm":
        sealed = AESGCM(key).encrypt(nonce, plain, aad)
        return sealed[:-16], sealed[-16:]
    size = suite.encryption_key_size
    iv = nonce + bytes(4)
    if suite.mode == "cbc":
        seed = iv if suite.cipher == "aes" else nonce[4:]
        iv = Cipher(block_cipher(suite, key[size:2 * size]), modes.ECB()).encryptor().update(seed)
    mode = modes.CTR(iv) if suite.mode == "ctr" else modes.CBC(iv)
    encryptor = Cipher(block_cipher(suite, key[:size]), mode).encryptor()
    ciphertext = encryptor.update(plain) + encryptor.finalize()
    sizes = struct.pack("<QQ", len(aad), len(ciphertext))
    return ciphertext, hmac_sha256(key[-32:], sizes + aad + iv + ciphertext)


def padme(size):
    e = size.bit_length() - 1
    bits = e - e.bit_length()  # the last ones, that carry no information
    return (size + (1 << bits) - 1) >> bits << bits


def record(epoch, counter, identity, plain, rounded):
    body = bytes([0, 0, 0, 0]) + struct.pack("<II", len(plain), len(plain)) + identity + plain
    size = padme(len(body)) if rounded else len(body)
    body += bytes(-(-size // epoch.suite.block) * epoch.suite.block - len(body))
    stored_size = 40 + len(body) + epoch.suite.tag_size
    header = b"NREC\1\0\0\0" + struct.pack("<II", stored_size, epoch.number) + SALT + struct.pack("<I", counter)
    ciphertext, tag = seal_suite(epoch.suite, write_session_key(epoch.key, SALT, epoch.suite),
                                 struct.pack("<4xQ", counter),
                                 VOLUME_ID + header, body)
    return header + struct.pack("<I", zlib.crc32(header + ciphertext + tag)) + ciphertext + tag


def records():
    made = []
    for epoch in EPOCHS:
        counter = 1000 + epoch.number
        fields = {"inode": 17, "chunk_index": epoch.number, "version": (3 << 40) + counter,
                  "offset": 512 * (epoch.number % 2), "kind": 1 + epoch.number % 2}
        identity = struct.pack("<QQQIB3x", *fields.values())
        plain = f"the plain bytes of a record under {epoch.suite.name}".encode() * (epoch.number % 3 + 1)
        rounded = epoch.number % 4 == 3
        made.append({**keys_of(epoch), "salt": SALT.hex(), "counter": counter, "identity": fields,
                     "codec": "none", "padding": "padme" if rounded else "none", "plain": plain.hex(),
                     "record": record(epoch, counter, identity, plain, rounded).hex()})
    return {"records": made}


def streams(volumes):
    """Of each codec the shortest stream of a golden volume that is worth looking at."""
    found, numbers = {}, {"lz77": 1, "zstd": 2, "rle": 3, "huffman": 4, "gdeflate": 5, "lzw": 6}
    decode = records_module.decode

    def note(codec, stream, size):
        plain = decode(codec, stream, size)
        if size >= 600 and len(stream) < len(found.get(codec, (plain,))[0]):
            found[codec] = stream, plain
        return plain

    records_module.decode = note
    for name in sorted(os.listdir(volumes)):
        if name.endswith(".tar.xz"):
            with tempfile.TemporaryDirectory() as folder:
                with tarfile.open(os.path.join(volumes, name)) as archive:
                    archive.extractall(folder)
                listing(open_volume(folder, os.path.join(volumes, "golden_passphrase")))
    records_module.decode = decode
    return {"streams": [{"codec": name, "number": number, "plain_size": len(found[number][1]),
                         "plain_sha256": hashlib.sha256(found[number][1]).hexdigest(),
                         "stream": found[number][0].hex()} for name, number in numbers.items()]}


def file_header(file_class, epoch):
    header = b"NDBF\1" + bytes([file_class, 0, 0]) + struct.pack("<II", epoch.number,
                                                                 4096 if file_class == 1 else 0)
    header += VOLUME_ID + FILE_SALT + bytes(12)
    return header + struct.pack("<I", zlib.crc32(header))


def database_files():
    epoch = EPOCHS[6]  # whatever the epoch's suite, pages and frames are of aes-256-gcm
    key = database_file_key(epoch.key, FILE_SALT)
    page_plain, generation = test_bytes("page", 100), 2
    state = struct.pack("<I", generation | 1 << 31)
    binding = VOLUME_ID + FILE_SALT + struct.pack("<QB7x", 12, 1)
    sealed = AESGCM(key).encrypt(struct.pack("<QI", 0, generation), page_plain,
                                 binding + struct.pack("<Q", 0) + state)
    page = sealed + state + struct.pack("<I", zlib.crc32(FILE_SALT + bytes(8) + sealed + state))
    witness, frame_plain = (5, 40, 3, 6, 9), test_bytes("frame", 60)
    binding = VOLUME_ID + FILE_SALT + struct.pack("<QB7x", 7, 2)
    frames = b""
    for sequence, plain, flags in ((0, struct.pack("<5Q", *witness), 2), (1, frame_plain, 0)):
        header = b"NFRM" + struct.pack("<IQQI", len(plain), sequence, sequence, flags)
        sealed = AESGCM(key).encrypt(struct.pack("<Q4x", sequence), plain, binding + header)
        frames += header + struct.pack("<I", zlib.crc32(FILE_SALT + header + sealed)) + sealed
    names = ("previous_log", "previous_frames", "done_log", "manifest", "manifest_frames")
    return {
        **keys_of(epoch), "salt": FILE_SALT.hex(), "key": key.hex(),
        "page": {"name": "000012.sst", "file": (file_header(1, epoch) + page).hex(), "page_index": 0,
                 "generation": generation, "plain": page_plain.hex()},
        "frames": {"name": "000007.log", "file": (file_header(2, epoch) + frames + bytes(32)).hex(),
                   "witness": dict(zip(names, witness)), "plain": frame_plain.hex()},
    }


def main():
    volumes, folder = sys.argv[1:]
    for name, content in (("derivations", derivations()), ("keyring", keyring()),
                          ("keyring_format_2", keyring_of_format_2()), ("records", records()), ("streams", streams(volumes)),
                          ("database_files", database_files())):
        with open(os.path.join(folder, name + ".json"), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")


if __name__ == "__main__":
    main()
