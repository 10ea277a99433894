# SPDX-License-Identifier: Apache-2.0
"""Superblock and keyring (FORMAT.md, superblock; keyring)."""

import base64
import binascii
import hashlib
import hmac
import json
import os
import re
import struct

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from .basics import VolumeError, crc32, require, warn
from .codecs import NAMES as CODEC_NAMES
from .derivations import DERIVATIONS
from .secrets_and_suites import SUITES_BY_NAME, argon2id, derive, open_secret, volume_subkey

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def canonical_dump(value):
    """FORMAT.md, superblock: keys sorted by their bytes, no white space, UTF-8 as it is."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def file_text(value):
    """FORMAT.md, superblock: the same object with an indent of two and a newline at its end."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode("utf-8")


def parse_document(text, what):
    """Parses, refuses any text but the one of this object, and checks the CRC."""
    try:
        value = json.loads(text.decode("utf-8"))
        own_text = file_text(value)
    except (UnicodeError, ValueError, RecursionError):
        raise VolumeError(f"{what}: not JSON in UTF-8") from None
    require(isinstance(value, dict), f"{what}: not a JSON object")
    require(own_text == text, f"{what}: not the text that its object has")
    rest = {key: item for key, item in value.items() if key != "crc32"}
    require(value.get("crc32") == f"{crc32(canonical_dump(rest)):08x}", f"{what}: CRC is wrong")
    return value


def document_mac(value, key):
    """FORMAT.md, superblock: HMAC-SHA256 of the dump without `mac` and `crc32`."""
    rest = {name: item for name, item in value.items() if name not in ("mac", "crc32")}
    return hmac.new(key, canonical_dump(rest), hashlib.sha256).hexdigest()


def superblock_digest(value):
    """FORMAT.md, keyring, "previous_superblock"."""
    rest = {name: item for name, item in value.items() if name not in ("mac", "crc32")}
    return hashlib.sha256(canonical_dump(rest)).hexdigest()


def check_fields(value, wanted, optional, what):
    require(isinstance(value, dict), f"{what}: not an object")
    for name, test in wanted.items():
        if name not in value and name in optional:
            continue
        require(name in value, f"{what}: {name} is missing")
        require(test(value[name]), f"{what}: {name} is not valid")
    # FORMAT.md, superblock: a field that the table does not list is passed over.


def is_number(low, high):
    return lambda value: type(value) is int and low <= value <= high


def is_hex(digits):
    return lambda value: isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value)


def is_text(value):
    return isinstance(value, str) and len(value.encode("utf-8")) <= 255


def is_time(value):
    return isinstance(value, str) and TIME.fullmatch(value)


def is_list(value):
    return isinstance(value, list)


def is_base64(value):
    try:
        return base64.b64encode(from_base64(value)).decode() == value
    except (AttributeError, UnicodeError, binascii.Error):
        return False


def from_base64(value):
    return base64.b64decode(value.encode("ascii"), validate=True)


def is_features(value):
    names = {"compatible", "incompatible", "read_only_compatible"}
    return isinstance(value, dict) and set(value) == names and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names)
        for names in value.values())


FORMAT_2 = "format-2-draft"

SUPERBLOCK_FIELDS = {
    "format": lambda value: value == "nacre",
    "version": is_number(1, 1 << 32),
    "volume_id": is_hex(32),
    "generation": is_number(1, (1 << 64) - 2),
    "label": is_text,
    "created": is_time,
    "chunk_size_bytes": lambda value: is_number(4096, 1048576)(value) and not value & (value - 1),
    "padding": lambda value: value in ("none", "padme"),
    "codec": lambda value: value in [*CODEC_NAMES.values(), "auto"],
    "level": is_number(0, 9),
    "cipher": lambda value: value in SUITES_BY_NAME,
    "features": is_features,
    "crc32": is_hex(8),
    "mac": is_hex(64),
}


def parse_superblock(text, what):
    """FORMAT.md, superblock, and Version promise."""
    value = parse_document(text, what)
    require(value.get("format") == "nacre", f"{what}: not the superblock of a volume")
    require(value.get("version") == 1, f"{what}: version {value.get('version')} is not known")
    check_fields(value, SUPERBLOCK_FIELDS, (), what)
    # FORMAT.md, Format 2, "Which format".
    unknown = [name for name in value["features"]["incompatible"] if name != FORMAT_2]
    require(not unknown, f"{what}: incompatible features: {', '.join(unknown)}")
    return value


KEYRING_FIELDS = {
    "format": lambda value: value == "nacre keyring",
    "version": is_number(1, 1),
    "volume_id": is_hex(32),
    "generation": is_number(1, (1 << 64) - 2),
    "epochs": lambda value: is_list(value) and 1 <= len(value) <= 4096,
    "recipients": lambda value: is_list(value) and 1 <= len(value) <= 1000,
    "previous_volume_key": is_base64,
    "previous_superblock": is_hex(64),
    "crc32": is_hex(8),
    "mac": is_hex(64),
}
EPOCH_FIELDS = {
    "number": is_number(1, (1 << 32) - 1),
    "cipher": lambda value: value in SUITES_BY_NAME,
    "wrapped_key": is_base64,
    "format": is_number(2, 2),
}
RECIPIENT_FIELDS = {
    "kind": lambda value: value in ("passphrase", "rsa"),
    "label": is_text,
    "created": is_time,
    "fingerprint": is_hex(64),
    "public_key": is_base64,
    "wrapped_volume_key": is_base64,
}
PASSPHRASE_FIELDS = {
    **RECIPIENT_FIELDS,
    "kdf": lambda value: isinstance(value, dict),
    "private_key": is_base64,
    "mac": is_hex(64),
}
# FORMAT.md, Format 2, "Passphrases" and "Kinds of recipients".
SEALED_FIELDS = {
    **{name: RECIPIENT_FIELDS[name] for name in ("kind", "label", "created", "fingerprint")},
    "kdf": lambda value: isinstance(value, dict),
    "check": is_hex(64),
    "sealed_volume_key": lambda value: is_base64(value) and len(from_base64(value)) == 60,
    "follows": is_hex(64),
    "public_key": is_base64,
    "private_key": is_base64,
    "wrapped_volume_key": is_base64,
}
OTHER_KIND_FIELDS = {
    **{name: RECIPIENT_FIELDS[name] for name in ("label", "created", "fingerprint")},
    "kind": is_number(3, 65535),
    "body": lambda value: is_base64(value) and len(from_base64(value)) <= 16 << 10,
}
KDF_FIELDS = {
    "name": lambda value: value == "argon2id",
    "memory_kib": is_number(8 << 10, 4 << 20),
    "passes": is_number(1, 64),
    "lanes": is_number(1, 16),
    "salt": lambda value: is_base64(value) and 16 <= len(from_base64(value)) <= 64,
}


def check_sealed_recipient(recipient, place):
    """FORMAT.md, Format 2, "Passphrases": which fields go with which."""
    check_fields(recipient, SEALED_FIELDS, ("sealed_volume_key", "follows", "public_key",
                                            "private_key", "wrapped_volume_key"), place)
    has_pair, is_sealed = "public_key" in recipient, "sealed_volume_key" in recipient
    require(("private_key" in recipient) == has_pair, f"{place}: half a key pair")
    require(("wrapped_volume_key" in recipient) != is_sealed,
            f"{place}: the volume key is there twice, or not at all")
    require(is_sealed or has_pair, f"{place}: a wrapped key without a key pair")
    require(is_sealed or "follows" not in recipient, f"{place}: follows without a seal")
    require("mac" not in recipient, f"{place}: a MAC of format 1")
    fingerprint = (from_base64(recipient["public_key"]) if has_pair else
                   DERIVATIONS["passphrase recipient"] + bytes.fromhex(recipient["check"]))
    require(hashlib.sha256(fingerprint).hexdigest() == recipient["fingerprint"],
            f"{place}: fingerprint is wrong")


def parse_keyring(text, what):
    """FORMAT.md, keyring: its fields and its limits."""
    require(len(text) <= 16 << 20, f"{what}: larger than 16 MiB")
    value = parse_document(text, what)
    require(value.get("format") == "nacre keyring", f"{what}: not a keyring")
    require(value.get("version") == 1, f"{what}: version {value.get('version')} is not known")
    check_fields(value, KEYRING_FIELDS, ("previous_volume_key", "previous_superblock"), what)
    for epoch in value["epochs"]:
        check_fields(epoch, EPOCH_FIELDS, ("format",), f"{what}, an epoch")
    formats = [epoch.get("format", 1) for epoch in value["epochs"]]
    require(formats == sorted(formats), f"{what}: formats of epochs do not ascend")
    numbers = [epoch["number"] for epoch in value["epochs"]]
    require(numbers == sorted(set(numbers)), f"{what}: numbers of epochs do not ascend")
    is_format_2 = formats[-1] == 2
    require(not is_format_2 or "previous_volume_key" not in value or "previous_superblock" in value,
            f"{what}: a rotation that names no superblock")
    passphrases = 0
    for index, recipient in enumerate(value["recipients"]):
        place = f"{what}, recipient {index + 1}"
        require(isinstance(recipient, dict), f"{place}: not an object")
        if is_format_2 and type(recipient.get("kind")) is int:
            check_fields(recipient, OTHER_KIND_FIELDS, (), place)
            require(len(recipient) == len(OTHER_KIND_FIELDS), f"{place}: a field too many")
            continue
        require(is_format_2 or "check" not in recipient, f"{place}: of format 2")
        if recipient.get("kind") == "passphrase" and "check" in recipient:
            passphrases += 1
            check_sealed_recipient(recipient, place)
            check_fields(recipient["kdf"], KDF_FIELDS, (), f"{place}, kdf")
            continue
        if recipient.get("kind") == "passphrase":
            passphrases += 1
            check_fields(recipient, PASSPHRASE_FIELDS, ("mac",), place)
            check_fields(recipient["kdf"], KDF_FIELDS, (), f"{place}, kdf")
        else:
            check_fields(recipient, RECIPIENT_FIELDS, (), place)
        fingerprint = hashlib.sha256(from_base64(recipient["public_key"])).hexdigest()
        require(fingerprint == recipient["fingerprint"], f"{place}: fingerprint is wrong")
    require(passphrases <= 32, f"{what}: more than 32 passphrases")
    return value


def unwrap_volume_key(private_key, wrapped, volume_id_hex, what):
    """FORMAT.md, keyring: RSA-OAEP-SHA256, MGF1-SHA256, with its label."""
    scheme = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(),
                          DERIVATIONS["oaep label"] + volume_id_hex.encode())
    try:
        volume_key = private_key.decrypt(wrapped, scheme)
    except ValueError:
        raise VolumeError(f"{what}: the volume key cannot be unwrapped") from None
    require(len(volume_key) == 32, f"{what}: a volume key of another size")
    return volume_key


def open_sealed_recipient(recipient, keys, volume_id_hex, what):
    """FORMAT.md, Format 2, "Passphrases". None when anything fails: all failures are the same."""
    volume_id = bytes.fromhex(volume_id_hex)
    check = derive(keys, volume_id, DERIVATIONS["passphrase check"], 32)
    if not hmac.compare_digest(check.hex(), recipient["check"]):
        return None
    seal = derive(keys, volume_id, DERIVATIONS["passphrase seal"], 32)
    binding = (DERIVATIONS["passphrase recipient"] + volume_id
               + bytes.fromhex(recipient["fingerprint"]) + check)
    try:
        if "sealed_volume_key" in recipient:
            follows = bytes.fromhex(recipient.get("follows", ""))
            return open_secret(seal, from_base64(recipient["sealed_volume_key"]),
                               binding + follows, what)
        pkcs8 = open_secret(seal, from_base64(recipient["private_key"]),
                            DERIVATIONS["private key"] + binding, what)
        private_key = serialization.load_der_private_key(pkcs8, None)
        own_public = private_key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        require(own_public == from_base64(recipient["public_key"]), f"{what}: another public key")
        return unwrap_volume_key(private_key, from_base64(recipient["wrapped_volume_key"]),
                                 volume_id_hex, what)
    except (VolumeError, ValueError, TypeError):
        return None


def open_recipient(recipient, passphrase, volume_id_hex, what):
    """Gives the volume key, or None when the passphrase is not this recipient's."""
    kdf = recipient["kdf"]
    # FORMAT.md, keyring: K1 | K2 = Argon2id of passphrase and salt, 64 bytes, half each.
    keys = argon2id(passphrase, from_base64(kdf["salt"]), kdf["memory_kib"], kdf["passes"],
                    kdf["lanes"], 64)
    if "check" in recipient:
        return open_sealed_recipient(recipient, keys, volume_id_hex, what)
    try:
        pkcs8 = open_secret(keys[:32], from_base64(recipient["private_key"]),
                            DERIVATIONS["private key"], what)
    except VolumeError:
        return None
    # FORMAT.md, keyring, "mac" of a passphrase; it may be missing.
    public_key, wrapped = (from_base64(recipient[name])
                           for name in ("public_key", "wrapped_volume_key"))
    if "mac" in recipient:
        message = (DERIVATIONS["recipient mac"] + bytes.fromhex(volume_id_hex)
                   + hashlib.sha256(public_key).digest() + wrapped)
        wanted = hmac.new(keys[32:], message, hashlib.sha256).hexdigest()
        require(hmac.compare_digest(wanted, recipient["mac"]), f"{what}: MAC is wrong")
    try:
        private_key = serialization.load_der_private_key(pkcs8, None)
    except (ValueError, TypeError):
        raise VolumeError(f"{what}: the private key is not PKCS#8") from None
    require(isinstance(private_key, rsa.RSAPrivateKey) and 2048 <= private_key.key_size <= 8192,
            f"{what}: not an RSA key of 2,048 to 8,192 bits")
    own_public = private_key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    require(own_public == public_key, f"{what}: the private key is of another public key")
    return unwrap_volume_key(private_key, wrapped, volume_id_hex, what)


class Keyring:
    """A keyring that a passphrase has opened, and whose MAC is right."""

    def __init__(self, document, passphrase, what):
        self.document = document
        self.generation = document["generation"]
        self.volume_id = bytes.fromhex(document["volume_id"])
        self.volume_key = None
        for index, recipient in enumerate(document["recipients"]):
            if recipient["kind"] == "passphrase" and self.volume_key is None:
                self.volume_key = open_recipient(recipient, passphrase, document["volume_id"],
                                                 f"{what}, recipient {index + 1}")
        require(self.volume_key, f"{what}: the passphrase is wrong")
        mac_key = volume_subkey(self.volume_key, self.volume_id, "keyring mac")
        require(hmac.compare_digest(document_mac(document, mac_key), document["mac"]),
                f"{what}: MAC is wrong")
        # FORMAT.md, keyring, "wrapped_key".
        wrap_key = volume_subkey(self.volume_key, self.volume_id, "epoch wrap")
        self.epochs, self.formats = {}, {}
        for epoch in document["epochs"]:
            suite, number = SUITES_BY_NAME[epoch["cipher"]], epoch["number"]
            place = f"{what}, epoch {number}"
            self.formats[number] = epoch.get("format", 1)
            additional = self.volume_id + struct.pack("<IB", number, suite.number)
            if self.formats[number] == 2:
                additional += b"\2"
            key = open_secret(wrap_key, from_base64(epoch["wrapped_key"]), additional, place)
            require(len(key) == suite.key_size, f"{place}: a key of another size")
            self.epochs[number] = (suite, key)
        self.newest_epoch = max(self.epochs)
        # FORMAT.md, keyring, "previous_volume_key".
        self.previous_volume_key = None
        if "previous_volume_key" in document:
            key = volume_subkey(self.volume_key, self.volume_id, "previous volume key")
            sealed = from_base64(document["previous_volume_key"])
            self.previous_volume_key = open_secret(key, sealed, self.volume_id,
                                                   f"{what}, previous volume key")
            require(len(self.previous_volume_key) == 32, f"{what}: previous key of another size")

    def epoch(self, number, what):
        require(number in self.epochs,
                f"{what}: of epoch {number}, which the keyring does not have")
        return self.epochs[number]

    def superblock_mac_is_right(self, superblock):
        """FORMAT.md, superblock, and keyring, "previous_volume_key"."""
        for volume_key in filter(None, (self.volume_key, self.previous_volume_key)):
            key = volume_subkey(volume_key, self.volume_id, "superblock mac")
            if not hmac.compare_digest(document_mac(superblock, key), superblock["mac"]):
                continue
            # Under the key before, only the one counts that the keyring names.
            named = self.document.get("previous_superblock")
            return (volume_key == self.volume_key or named is None
                    or named == superblock_digest(superblock))
        return False


def read_copies(volume, name, parse):
    """Both copies that are sound as far as can be seen without keys, newest first."""
    found, errors = [], []
    for copy in (name, name + ".copy"):
        try:
            with open(os.path.join(volume, copy), "rb") as file:
                found.append((copy, parse(file.read(), copy)))
        except FileNotFoundError:
            errors.append(f"{copy}: missing")
        except VolumeError as error:
            errors.append(str(error))
    require(found, "; ".join(errors))
    for error in errors:
        warn(f"{error}; the other copy is used")
    return sorted(found, key=lambda item: -item[1]["generation"])


def newest(copies):
    """FORMAT.md, superblock: which of the copies counts."""
    if len(copies) == 2 and copies[0][1] != copies[1][1]:
        same = copies[0][1]["generation"] == copies[1][1]["generation"]
        require(not same, f"{copies[0][0]}: tampered with, two different copies of one generation")
        warn(f"{copies[1][0]} is older than {copies[0][0]}")
    return copies[0]


def open_documents(volume, passphrase):
    """FORMAT.md, Reading a volume, steps 1 and 2. Gives superblock and keyring."""
    name, superblock = newest(read_copies(volume, "superblock", parse_superblock))
    keyring_name, document = newest(read_copies(volume, "keyring", parse_keyring))
    # FORMAT.md, superblock: of the copy that counts the MAC must be right; the other is not tried.
    keyring = Keyring(document, passphrase, keyring_name)
    require(superblock["volume_id"] == document["volume_id"],
            f"{name}: of another volume than the keyring")
    require(keyring.superblock_mac_is_right(superblock), f"{name}: MAC is wrong")
    require(keyring.formats[keyring.newest_epoch] == 1
            or FORMAT_2 in superblock["features"]["incompatible"],
            f"{name}: tampered with, an older one without {FORMAT_2}")
    return superblock, keyring
