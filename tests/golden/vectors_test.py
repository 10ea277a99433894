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
from reader.binary import Damage
from reader.codecs import decode_stream
from reader.database import SealedFile
from reader.derivations import DERIVATIONS
from reader.keyring import Epoch, EpochKeys, Keys, argon2id, database_file_key, session_key, volume_subkey
from reader.suites import SUITES, hkdf_sha256
from reader.volume import name_hash, open_record


def load(name):
    with open(os.path.join(GOLDEN, "../../docs/vectors", name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def epoch_of(vector):
    return Epoch(vector["epoch"], SUITES[vector["suite"]], bytes.fromhex(vector["epoch_key"]))


class Vectors(unittest.TestCase):
    def test_derivations(self):
        vectors = load("derivations")
        volume_id, volume_key = bytes.fromhex(vectors["volume_id"]), bytes.fromhex(vectors["volume_key"])
        for vector in vectors["volume_subkeys"]:
            key = hkdf_sha256(volume_key, volume_id, vector["info"].encode(), 32)
            self.assertEqual(key.hex(), vector["key"])
            if vector["purpose"] in DERIVATIONS:
                self.assertEqual(volume_subkey(volume_key, volume_id, vector["purpose"]), key)
        self.assertEqual({vector["suite"] for vector in vectors["write_sessions"]}, set(SUITES))
        for name, derive in (("write_sessions", session_key), ("database_files", database_file_key)):
            for vector in vectors[name]:
                key = derive(epoch_of(vector), bytes.fromhex(vector["salt"]))
                self.assertEqual(key.hex(), vector["key"], vector["suite"])
        for vector in vectors["name_hashes"]:
            key = bytes.fromhex(vectors["name_hash_key"])
            self.assertEqual(name_hash(key, vector["name"].encode()), vector["hash"])

    def test_keyring(self):
        vector = load("keyring")
        kdf = vector["argon2id"]
        both = argon2id(vector["passphrase"].encode(), bytes.fromhex(kdf["salt"]), kdf)
        self.assertEqual(both.hex(), kdf["k1_k2"])
        for superblock in ("superblock", "superblock_under_previous_key"):
            with tempfile.TemporaryDirectory() as folder:
                for name, text in (("superblock", vector[superblock]), ("keyring", vector["keyring"])):
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write(text)
                keys = Keys(folder, vector["passphrase"].encode())
                self.assertRaises(Damage, Keys, folder, b"another passphrase")
            self.assertEqual(keys.volume_key.hex(), vector["volume_key"])
            for epoch in vector["epochs"]:
                self.assertEqual(keys.epoch(epoch["epoch"]), epoch_of(epoch))

    def test_records(self):
        vectors = load("records")["records"]
        self.assertEqual({vector["suite"] for vector in vectors}, set(SUITES))
        for vector in vectors:
            with self.subTest(vector["suite"]):
                keys = EpochKeys(bytes.fromhex(vector["volume_id"]), [epoch_of(vector)])
                record = bytes.fromhex(vector["record"])
                identity, plain = open_record(record, keys.volume_id, keys, "the vector")
                fields = vector["identity"]
                self.assertEqual(identity, struct.pack(
                    "<QQQIB3x", *(fields[name] for name in
                                  ("inode", "chunk_index", "version", "offset", "kind"))))
                self.assertEqual(plain.hex(), vector["plain"])
                for at in range(0, len(record), 7):  # and nothing else opens
                    bad = record[:at] + bytes([record[at] ^ 1]) + record[at + 1:]
                    self.assertRaises(Damage, open_record, bad, keys.volume_id, keys, "the vector")

    def test_streams(self):
        for vector in load("streams")["streams"]:
            with self.subTest(vector["codec"]):
                plain = decode_stream(vector["number"], bytes.fromhex(vector["stream"]), vector["plain_size"])
                self.assertEqual(hashlib.sha256(plain).hexdigest(), vector["plain_sha256"])

    def test_database_files(self):
        vectors = load("database_files")
        keys = EpochKeys(bytes.fromhex(vectors["volume_id"]), [epoch_of(vectors)])
        with tempfile.TemporaryDirectory() as folder:
            def opened(vector, stored):
                with open(os.path.join(folder, vector["name"]), "wb") as file:
                    file.write(stored)
                return SealedFile(folder, vector["name"], keys)

            for vector in (vectors["page"], vectors["frames"]):
                file = opened(vector, bytes.fromhex(vector["file"]))
                self.assertEqual(file.key.hex(), vectors["key"])
                self.assertEqual(file.plain.hex(), vector["plain"])
            self.assertEqual(file.witness._asdict(), vectors["frames"]["witness"])
            stored = bytearray.fromhex(vectors["page"]["file"])
            stored[100] ^= 1
            self.assertRaises(Damage, opened, vectors["page"], bytes(stored))


if __name__ == "__main__":
    unittest.main()
