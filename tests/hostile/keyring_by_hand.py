# SPDX-License-Identifier: Apache-2.0
"""Reads and writes keyrings by docs/FORMAT.md alone, for tests that change them without the programs."""
import base64
import ctypes
import ctypes.util
import hashlib
import hmac
import json
import os
import zlib


def hkdf(key, salt, info):
    """HKDF-SHA256, 32 bytes."""
    extracted = hmac.digest(salt, key, "sha256")
    return hmac.digest(extracted, info + b"\1", "sha256")


def has_argon2():
    return bool(ctypes.util.find_library("argon2"))


def argon2id(passphrase, kdf):
    """Returns 64 bytes. kdf is the object of that name in a keyring."""
    library = ctypes.CDLL(ctypes.util.find_library("argon2"))
    salt, output = base64.b64decode(kdf["salt"]), ctypes.create_string_buffer(64)
    status = library.argon2id_hash_raw(
        ctypes.c_uint32(kdf["passes"]), ctypes.c_uint32(kdf["memory_kib"]),
        ctypes.c_uint32(kdf["lanes"]), passphrase, ctypes.c_size_t(len(passphrase)), salt,
        ctypes.c_size_t(len(salt)), output, ctypes.c_size_t(64))
    if status != 0:
        raise RuntimeError(f"Argon2id failed with status {status}")
    return output.raw


def seal_and_check(recipient, volume_id, passphrase):
    """The two values of a passphrase of format 2: the key that seals, and the check."""
    root = argon2id(passphrase.encode(), recipient["kdf"])
    return (hkdf(root, volume_id, b"nacre passphrase seal"),
            hkdf(root, volume_id, b"nacre passphrase check"))


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def load_keyring(volume):
    with open(os.path.join(volume, "keyring"), encoding="utf-8") as file:
        return json.load(file)


def save_keyring(volume, keyring, volume_key=None):
    """Writes both copies with a right CRC, and with a right MAC if volume_key is given."""
    keyring.pop("crc32")
    if volume_key:
        keyring.pop("mac")
        subkey = hkdf(volume_key, bytes.fromhex(keyring["volume_id"]), b"nacre keyring mac")
        keyring["mac"] = hmac.new(subkey, canonical(keyring), hashlib.sha256).hexdigest()
    keyring["crc32"] = f"{zlib.crc32(canonical(keyring)):08x}"
    for name in ("keyring", "keyring.copy"):
        with open(os.path.join(volume, name), "w", encoding="utf-8") as file:
            file.write(json.dumps(keyring, sort_keys=True, indent=2, ensure_ascii=False) + "\n")
