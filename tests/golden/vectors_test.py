#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/vectors/ from the side of tests/golden/reader; format_vectors_test.cpp is the other one.

    vectors_test.py
"""
import hashlib
import json
import os
import struct
import sys
import tempfile
import unittest

GOLDEN = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, GOLDEN)
# pylint: disable=wrong-import-position
from needs import need_reader

need_reader("vectors_test")
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from reader import codecs, documents, records, secrets_and_suites
from reader.basics import VolumeError, crc32, masked_crc32c, name_hash
from reader.database_files import FrameFile, open_pages
from reader.derivations import DERIVATIONS
from reader.rocksdb import log_records
from reader.secrets_and_suites import SUITES_BY_NAME


def padded_size(size, padding, block):
    """docs/FORMAT.md, Record, "Padding": of a body of `size` bytes."""
    if padding == "padme":
        exponent = size.bit_length() - 1
        significant = exponent.bit_length()  # floor(log2 E) + 1
        step = 1 << max(exponent - significant, 0)
        size = -(-size // step) * step
    return -(-size // block) * block


def load(name):
    with open(os.path.join(GOLDEN, "../../docs/vectors", name + ".json"), encoding="utf-8") as file:
        return json.load(file)


class VectorKeys:
    """Stands in for a keyring: one epoch, of format 1 unless the vector says more."""

    def __init__(self, vector):
        self.number = self.newest_epoch = vector["epoch"]
        self.formats = {self.number: vector.get("format", 1)}
        self.pair = SUITES_BY_NAME[vector["suite"]], bytes.fromhex(vector["epoch_key"])

    def epoch(self, number, what):
        if number != self.number:
            raise VolumeError(f"{what}: another epoch")
        return self.pair


class Vectors(unittest.TestCase):
    def test_derivations(self):
        vectors = load("derivations")
        volume_id, volume_key = (bytes.fromhex(vectors[name]) for name in ("volume_id", "volume_key"))
        purposes = {vector["purpose"] for vector in vectors["volume_subkeys"]}
        self.assertLessEqual({name for name in DERIVATIONS if name in purposes}, purposes)
        for vector in vectors["volume_subkeys"]:
            key = secrets_and_suites.derive(volume_key, volume_id, vector["info"].encode(), 32)
            self.assertEqual(key.hex(), vector["key"])
            self.assertEqual(
                secrets_and_suites.volume_subkey(volume_key, volume_id, vector["purpose"]), key)
        self.assertEqual({vector["suite"] for vector in vectors["write_sessions"]}, set(SUITES_BY_NAME))
        for vector in vectors["write_sessions"]:
            suite, epoch_key = VectorKeys(vector).pair
            key = secrets_and_suites.write_session_key(epoch_key, bytes.fromhex(vector["salt"]), suite)
            self.assertEqual(key.hex(), vector["key"], vector["suite"])
        for vector in vectors["database_files"]:
            key = secrets_and_suites.database_file_key(bytes.fromhex(vector["epoch_key"]),
                                                       bytes.fromhex(vector["salt"]))
            self.assertEqual(key.hex(), vector["key"], vector["suite"])
        for vector in vectors["name_hashes"]:
            key = bytes.fromhex(vectors["name_hash_key"])
            self.assertEqual(name_hash(key, vector["name"].encode()), vector["hash"])

    def test_keyring_of_format_2(self):
        vector = load("keyring_format_2")
        volume_id = bytes.fromhex(vector["volume_id"])
        subkey = secrets_and_suites.volume_subkey(bytes.fromhex(vector["previous_volume_key"]), volume_id,
                                                  "fingerprint")
        self.assertEqual(hashlib.sha256(volume_id + subkey).hexdigest(), vector["follows"])
        document = documents.parse_keyring(vector["keyring"].encode(), "the vector")
        for number, known in enumerate(vector["passphrases"]):
            passphrase, kdf = known["passphrase"].encode(), known["argon2id"]
            root = secrets_and_suites.argon2id(passphrase, bytes.fromhex(kdf["salt"]), kdf["memory_kib"],
                                               kdf["passes"], kdf["lanes"], 64)
            self.assertEqual(root.hex(), kdf["x"])
            for name in ("check", "seal"):
                info = f"nacre passphrase {name}".encode()
                self.assertEqual(secrets_and_suites.derive(root, volume_id, info, 32).hex(), known[name])
            recipient = document["recipients"][number]
            self.assertEqual(recipient["check"], known["check"])
            self.assertEqual(recipient["fingerprint"], known["fingerprint"])
            self.assertEqual(known["binding"], (b"nacre passphrase recipient" + volume_id).hex()
                             + known["fingerprint"] + known["check"])
            keyring = documents.Keyring(document, passphrase, "the vector")
            self.assertEqual(keyring.volume_key.hex(), vector["volume_key"])
            self.assertEqual(keyring.epoch(vector["epoch"]["epoch"], "the vector"),
                             VectorKeys(vector["epoch"]).pair)
        self.assertRaises(VolumeError, documents.Keyring, document, b"a wrong one", "the vector")
        for change in ({"check": "00" * 32}, {"follows": "00" * 32}, {"label": "x"},
                       {"sealed_volume_key": document["recipients"][0]["sealed_volume_key"][::-1]}):
            other = json.loads(vector["keyring"])
            other["recipients"][0].update(change)
            self.assertRaises(VolumeError, documents.Keyring, other,
                              vector["passphrases"][0]["passphrase"].encode(), "the vector")

    def test_keyring(self):
        vector = load("keyring")
        kdf, passphrase = vector["argon2id"], vector["passphrase"].encode()
        both = secrets_and_suites.argon2id(passphrase, bytes.fromhex(kdf["salt"]), kdf["memory_kib"],
                                           kdf["passes"], kdf["lanes"], 64)
        self.assertEqual(both.hex(), kdf["k1_k2"])
        private_key = serialization.load_der_private_key(
            bytes.fromhex(vector["private_key_pkcs8"]), None)
        volume_key = documents.unwrap_volume_key(
            private_key, bytes.fromhex(vector["wrapped_volume_key"]), vector["volume_id"], "the vector")
        self.assertEqual(volume_key.hex(), vector["volume_key"])
        for superblock in ("superblock", "superblock_under_previous_key"):
            with tempfile.TemporaryDirectory() as folder:
                for name, text in (("superblock", vector[superblock]), ("keyring", vector["keyring"])):
                    for copy in (name, name + ".copy"):
                        with open(os.path.join(folder, copy), "w", encoding="utf-8") as file:
                            file.write(text)
                found, keyring = documents.open_documents(folder, passphrase)
                self.assertRaises(VolumeError, documents.open_documents, folder, b"another passphrase")
            self.assertEqual(keyring.volume_key.hex(), vector["volume_key"])
            self.assertEqual(keyring.previous_volume_key.hex(), vector["previous_volume_key"])
            self.assertEqual(len(keyring.epochs), len(vector["epochs"]))
            for epoch in vector["epochs"]:
                self.assertEqual(keyring.epoch(epoch["epoch"], "the vector"), VectorKeys(epoch).pair)
            found["label"] += "x"
            self.assertFalse(keyring.superblock_mac_is_right(found))
        text = vector["keyring"].encode()
        self.assertRaises(VolumeError, documents.parse_keyring, text.replace(b"\n", b" \n", 1), "")

    def test_records(self):
        vectors = load("records")["records"]
        self.assertEqual({vector["suite"] for vector in vectors}, set(SUITES_BY_NAME))
        for vector in vectors:
            with self.subTest(vector["suite"]):
                fields, keys = vector["identity"], VectorKeys(vector)
                identity = records.Identity(*(fields[name] for name in (
                    "inode", "chunk_index", "version", "offset", "kind")))
                volume_id, record = bytes.fromhex(vector["volume_id"]), bytes.fromhex(vector["record"])

                def opened(record, identity=identity, size=None):
                    return records.open_record(record, volume_id, keys, identity, size, "the vector")

                self.assertEqual(opened(record, size=len(vector["plain"]) // 2).hex(), vector["plain"])
                suite = keys.pair[0]
                self.assertEqual(len(record) - 40 - suite.tag_size, padded_size(
                    44 + len(vector["plain"]) // 2, vector["padding"], suite.block))
                header = records.RecordHeader(record, "the vector")
                self.assertEqual((header.counter, header.salt.hex()), (vector["counter"], vector["salt"]))
                # And nothing else opens: whatever its CRC says, and under no other identity or size.
                for at in range(0, len(record), 7):
                    bad = bytearray(record)
                    bad[at] ^= 1
                    self.assertRaises(VolumeError, opened, bytes(bad))
                    if not 36 <= at < 40:
                        bad[36:40] = struct.pack("<I", crc32(bad[:36], bad[40:]))
                        self.assertRaises(VolumeError, opened, bytes(bad))
                for name in fields:
                    other = records.Identity(*({**fields, name: fields[name] + 1}[each] for each in (
                        "inode", "chunk_index", "version", "offset", "kind")))
                    self.assertRaises(VolumeError, opened, record, other)
                self.assertRaises(VolumeError, opened, record, identity, len(vector["plain"]) // 2 + 1)

    def test_streams(self):
        for vector in load("streams")["streams"]:
            with self.subTest(vector["codec"]):
                number, stream = vector["number"], bytes.fromhex(vector["stream"])
                plain = codecs.decode(number, stream, vector["plain_size"])
                self.assertEqual(hashlib.sha256(plain).hexdigest(), vector["plain_sha256"])
                self.assertEqual(codecs.NAMES[number], vector["codec"])
                for bad in (stream[:-1], stream + b"\0"):
                    self.assertRaises(VolumeError, codecs.decode, number, bad, vector["plain_size"])
                self.assertRaises(VolumeError, codecs.decode, number, stream, vector["plain_size"] - 1)

    def test_database_files(self):
        vectors = load("database_files")
        volume_id, keys = bytes.fromhex(vectors["volume_id"]), VectorKeys(vectors)
        key = secrets_and_suites.database_file_key(keys.pair[1], bytes.fromhex(vectors["salt"]))
        self.assertEqual(key.hex(), vectors["key"])
        page, frames = vectors["page"], vectors["frames"]
        stored = bytes.fromhex(page["file"])
        self.assertEqual(open_pages(stored, page["name"], volume_id, keys).hex(), page["plain"])
        self.assertEqual(struct.unpack("<I", stored[-8:-4])[0], page["generation"] | 1 << 31)
        self.assertRaises(VolumeError, open_pages, stored, "000013.sst", volume_id, keys)
        bad = stored[:100] + bytes([stored[100] ^ 1]) + stored[101:]
        self.assertRaises(VolumeError, open_pages, bad, page["name"], volume_id, keys)
        stored = bytes.fromhex(frames["file"])
        log = FrameFile(stored, frames["name"], volume_id, keys)
        self.assertEqual(log.content.hex(), frames["plain"])
        self.assertEqual([{name: value for name, value in vars(witness).items() if name != "names_salts"}
                          for witness in log.witnesses], [frames["witness"]])
        self.assertEqual(log.frame_count, 2)
        self.assertRaises(VolumeError, FrameFile, stored, "000008.log", volume_id, keys)


class MadeHere(unittest.TestCase):
    """What neither vectors nor golden volumes have, made here along docs/FORMAT.md."""

    def setUp(self):
        self.big = hashlib.shake_256(b"larger than a block").digest(80000)

    def test_record_in_fragments(self):
        stream, place = b"", 0
        while place < len(self.big):
            size = min(32768 - 7 - len(stream) % 32768, len(self.big) - place)
            kind = 2 if place == 0 else 4 if place + size == len(self.big) else 3
            body = bytes([kind]) + self.big[place:place + size]
            stream += struct.pack("<IH", masked_crc32c(body), size) + body
            place += size
        self.assertEqual(list(log_records(stream, "made here")), [self.big])
        self.assertEqual(list(log_records(stream[:-1], "made here")), [])

    def test_table_of_three_pages(self):
        vectors = load("database_files")
        volume_id, keys = bytes.fromhex(vectors["volume_id"]), VectorKeys(vectors)
        header = bytes.fromhex(vectors["page"]["file"])[:64]
        salt, key = header[32:48], bytes.fromhex(vectors["key"])
        plain, table = self.big[:4072 * 2 + 5], header
        for index, size in enumerate((4072, 4072, 5)):
            state = 1 | (1 << 31 if index == 2 else 0)
            additional = volume_id + salt + struct.pack("<QB7xQI", 12, 1, index, state)
            sealed = AESGCM(key).encrypt(struct.pack("<QI", index, 1),
                                         plain[4072 * index:4072 * index + size], additional)
            crc = crc32(salt, struct.pack("<Q", index), sealed, struct.pack("<I", state))
            table += sealed + struct.pack("<II", state, crc)
        self.assertEqual(open_pages(table, "000012.sst", volume_id, keys), plain)
        for end in (64 + 4096, 64 + 8192, len(table) - 1):
            self.assertRaises(VolumeError, open_pages, table[:end], "000012.sst", volume_id, keys)


if __name__ == "__main__":
    unittest.main()
