# SPDX-License-Identifier: Apache-2.0
"""Superblock, keyring and the keys. FORMAT: "superblock", "keyring", "Keys"."""
import base64
import ctypes
import hashlib
import hmac
import json
import os
import struct
import zlib
from collections import namedtuple

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding

from .binary import Damage, require
from .derivations import DERIVATIONS
from .suites import SUITES, hkdf_sha256, hmac_sha256, open_secret

Epoch = namedtuple("Epoch", "number suite key")


def volume_subkey(volume_key, volume_id, purpose):
    return hkdf_sha256(volume_key, volume_id, DERIVATIONS[purpose], 32)


def session_key(epoch, salt):
    """FORMAT: "Keys": the suite's name is part of the info, and its key size is the key's."""
    info = DERIVATIONS["write session"] + epoch.suite.name.encode()
    return hkdf_sha256(epoch.key, salt, info, epoch.suite.key_size)


def database_file_key(epoch, salt):
    return hkdf_sha256(epoch.key, salt, DERIVATIONS["database file"], 32)


def argon2id(passphrase, salt, kdf):
    """RFC 9106, version 0x13, 64 bytes: python3-cryptography of Debian 12 does not have it."""
    library = ctypes.CDLL("libargon2.so.1")
    out = ctypes.create_string_buffer(64)
    number, size, text = ctypes.c_uint32, ctypes.c_size_t, ctypes.c_char_p
    library.argon2id_hash_raw.argtypes = [number] * 3 + [text, size, text, size, text, size]
    failed = library.argon2id_hash_raw(kdf["passes"], kdf["memory_kib"], kdf["lanes"], passphrase,
                                       len(passphrase), salt, len(salt),
                                       ctypes.cast(out, text), 64)
    require(failed == 0, f"Argon2id: error {failed} of libargon2")
    return out.raw


def canonical(fields, without):
    """FORMAT: "superblock": sorted keys, no white space, UTF-8 as it is."""
    kept = {name: value for name, value in fields.items() if name not in without}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def parse_document(text, kind, name):
    try:
        fields = json.loads(text)
        require(fields["format"] == kind and fields["version"] == 1,
                f"{name} is no {kind} of version 1")
        crc, exact = fields["crc32"], canonical(fields, ("crc32",))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Damage(f"{name} is not a JSON object as it should be") from None
    require(f"{zlib.crc32(exact):08x}" == crc, f"{name}: the CRC is wrong")
    exact = json.dumps(fields, sort_keys=True, indent=2, ensure_ascii=False).encode() + b"\n"
    require(exact == text, f"{name} is not written as it should be")
    return fields


def read_document(volume, name, kind):
    """The copy with the higher generation counts when both are sound."""
    copies, errors = [], []
    for file in (name, name + ".copy"):
        try:
            with open(os.path.join(volume, file), "rb") as stored:
                copies.append(parse_document(stored.read(), kind, file))
        except (Damage, OSError) as error:
            errors.append(str(error))
    require(copies, "; ".join(errors))
    newest = max(copies, key=lambda fields: fields["generation"])
    for fields in copies:
        require(fields["generation"] < newest["generation"] or fields == newest,
                f"{name} and {name}.copy are different and of one generation")
    return newest


def is_mac(fields, key):
    mac = hmac_sha256(key, canonical(fields, ("mac", "crc32"))).hex()
    return hmac.compare_digest(mac, fields["mac"])


def unwrap_volume_key(recipient, volume_id, passphrase):
    """None when the passphrase is not this recipient's."""
    passphrase_keys = argon2id(passphrase, base64.b64decode(recipient["kdf"]["salt"]),
                               recipient["kdf"])
    sealing, mac_key = passphrase_keys[:32], passphrase_keys[32:]
    try:
        pkcs8 = open_secret(sealing, DERIVATIONS["private key"],
                            base64.b64decode(recipient["private_key"]), "the private key")
    except Damage:
        return None
    private_key = serialization.load_der_private_key(pkcs8, None)
    public_key = private_key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    fingerprint = hashlib.sha256(public_key).digest()
    require(public_key == base64.b64decode(recipient["public_key"]) and
            fingerprint.hex() == recipient["fingerprint"], "a recipient has another's private key")
    wrapped = base64.b64decode(recipient["wrapped_volume_key"])
    if "mac" in recipient:
        message = DERIVATIONS["recipient mac"] + volume_id + fingerprint + wrapped
        require(hmac.compare_digest(hmac_sha256(mac_key, message).hex(), recipient["mac"]),
                "the MAC of a recipient is wrong")
    label = DERIVATIONS["oaep label"] + volume_id.hex().encode()
    try:
        return private_key.decrypt(wrapped, padding.OAEP(
            mgf=padding.MGF1(hashes.SHA256()), algorithm=hashes.SHA256(), label=label))
    except ValueError:
        raise Damage("the volume key was not wrapped for this recipient and volume") from None


class EpochKeys:
    """The epochs of a volume, by number, and what is derived of them."""

    def __init__(self, volume_id, epochs=()):
        self.volume_id = volume_id
        self.epochs = {epoch.number: epoch for epoch in epochs}
        self.sessions = {}

    def epoch(self, number):
        require(number in self.epochs, f"key epoch {number} is not in the keyring")
        return self.epochs[number]

    def session(self, number, salt):
        """Suite and key of the records of (epoch, salt)."""
        if (number, salt) not in self.sessions:
            epoch = self.epoch(number)
            self.sessions[number, salt] = epoch.suite, session_key(epoch, salt)
        return self.sessions[number, salt]


class Keys(EpochKeys):
    """What the passphrase opens: superblock and keyring, verified, and the epochs."""

    def __init__(self, volume, passphrase):
        self.superblock = read_document(volume, "superblock", "nacre")
        require(not self.superblock["features"]["incompatible"], "the volume needs a newer reader")
        self.keyring = read_document(volume, "keyring", "nacre keyring")
        super().__init__(bytes.fromhex(self.superblock["volume_id"]))
        require(self.keyring["volume_id"] == self.superblock["volume_id"],
                "the keyring is another volume's")

        self.volume_key = self.open_volume_key(passphrase)
        subkey = volume_subkey(self.volume_key, self.volume_id, "keyring mac")
        require(is_mac(self.keyring, subkey), "the MAC of the keyring is wrong")
        self.check_superblock()
        wrap = volume_subkey(self.volume_key, self.volume_id, "epoch wrap")
        for epoch in self.keyring["epochs"]:
            suite = SUITES[epoch["cipher"]]
            aad = self.volume_id + struct.pack("<IB", epoch["number"], suite.number)
            key = open_secret(wrap, aad, base64.b64decode(epoch["wrapped_key"]), "an epoch key")
            require(len(key) == suite.key_size, "an epoch key has not the size of its suite's")
            self.epochs[epoch["number"]] = Epoch(epoch["number"], suite, key)

    def open_volume_key(self, passphrase):
        for recipient in self.keyring["recipients"]:
            if recipient["kind"] != "passphrase":
                continue
            volume_key = unwrap_volume_key(recipient, self.volume_id, passphrase)
            if volume_key:
                return volume_key
        raise Damage("the passphrase does not open this volume")

    def check_superblock(self):
        """While the volume is rotated it may be under the volume key before this one."""
        keys = [self.volume_key]
        if "previous_volume_key" in self.keyring:
            sealing = volume_subkey(self.volume_key, self.volume_id, "previous volume key")
            keys.append(open_secret(sealing, self.volume_id,
                                    base64.b64decode(self.keyring["previous_volume_key"]),
                                    "the previous volume key"))
        subkeys = [volume_subkey(key, self.volume_id, "superblock mac") for key in keys]
        require(any(is_mac(self.superblock, subkey) for subkey in subkeys),
                "the MAC of the superblock is wrong")
