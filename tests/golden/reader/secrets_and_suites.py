# SPDX-License-Identifier: Apache-2.0
"""Keys, cipher suites, sealed secrets, and passphrases."""

import ctypes
import ctypes.util
import hashlib
import hmac
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .basics import VolumeError, require
from .derivations import DERIVATIONS, OTHER_SUBKEYS

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES  # newer versions
except ImportError:
    TripleDES = algorithms.TripleDES


class Suite:
    """A line of the table in FORMAT.md, "Cipher suites"."""

    def __init__(self, number, name, mode, cipher, encryption_key_size):
        self.number, self.name, self.mode, self.cipher = number, name, mode, cipher
        self.encryption_key_size = encryption_key_size
        self.key_size = {"gcm": encryption_key_size, "ctr": encryption_key_size + 32,
                         "cbc": 2 * encryption_key_size + 32}[mode]
        self.tag_size = 16 if mode == "gcm" else 32
        self.block = 1 if mode != "cbc" else 16 if cipher == "aes" else 8


SUITES = [
    Suite(1, "aes-256-gcm", "gcm", "aes", 32), Suite(2, "aes-192-gcm", "gcm", "aes", 24),
    Suite(3, "aes-128-gcm", "gcm", "aes", 16), Suite(4, "aes-256-ctr", "ctr", "aes", 32),
    Suite(5, "aes-192-ctr", "ctr", "aes", 24), Suite(6, "aes-128-ctr", "ctr", "aes", 16),
    Suite(7, "aes-256-cbc", "cbc", "aes", 32), Suite(8, "aes-192-cbc", "cbc", "aes", 24),
    Suite(9, "aes-128-cbc", "cbc", "aes", 16), Suite(10, "des-ede3-cbc", "cbc", "des", 24),
    Suite(11, "des-cbc", "cbc", "des", 8),
]
SUITES_BY_NAME = {suite.name: suite for suite in SUITES}


def derive(key, salt, info, size):
    """FORMAT.md, Keys: HKDF-SHA256 (RFC 5869), extract and expand."""
    return HKDF(hashes.SHA256(), size, salt, info).derive(key)


def volume_subkey(volume_key, volume_id, purpose):
    """FORMAT.md, Keys, "volume subkey"."""
    info = DERIVATIONS.get(purpose) or OTHER_SUBKEYS[purpose]
    return derive(volume_key, volume_id, info, 32)


def write_session_key(epoch_key, salt, suite):
    """FORMAT.md, Keys, "write-session key"."""
    info = DERIVATIONS["write session"] + suite.name.encode()
    return derive(epoch_key, salt, info, suite.key_size)


def database_file_key(epoch_key, salt, name=None, is_padded=False):
    """FORMAT.md, Keys, "database file key"; with a name that of Format 2."""
    if name is None:
        return derive(epoch_key, salt, DERIVATIONS["database file"], 32)
    info = DERIVATIONS["padded database file 2" if is_padded else "database file 2"]
    return derive(epoch_key, salt, info + name.encode(), 32)


def open_gcm(key, nonce, ciphertext_and_tag, additional_data, what):
    try:
        return AESGCM(key).decrypt(nonce, ciphertext_and_tag, additional_data)
    except InvalidTag:
        raise VolumeError(f"{what}: the authentication tag is wrong") from None


def open_secret(key, sealed, additional_data, what):
    """FORMAT.md, keyring: a sealed secret is nonce [12], AES-256-GCM ciphertext, tag [16]."""
    require(len(sealed) >= 28, f"{what}: sealed secret is too short")
    return open_gcm(key, sealed[:12], sealed[12:], additional_data, what)


def block_cipher(suite, key):
    if suite.cipher == "aes":
        return algorithms.AES(key)
    # Single DES is EDE with three equal keys; the library takes no key of 8 bytes everywhere.
    return TripleDES(key * 3 if suite.encryption_key_size == 8 else key)


def open_sealed(suite, key, nonce, ciphertext, tag, additional_data, what):
    """FORMAT.md, Cipher suites: verify the tag, then decrypt."""
    if suite.mode == "gcm":
        return open_gcm(key, nonce, ciphertext + tag, additional_data, what)
    size = suite.encryption_key_size
    encryption_key, mac_key = key[:size], key[-32:]
    if suite.mode == "ctr":
        iv = nonce + bytes(4)
    else:
        # The IV of CBC: the block cipher under the IV key, of the nonce.
        seed = nonce + bytes(4) if suite.cipher == "aes" else nonce[4:]
        encryptor = Cipher(block_cipher(suite, key[size:2 * size]), modes.ECB()).encryptor()
        iv = encryptor.update(seed) + encryptor.finalize()
    sizes = struct.pack("<QQ", len(additional_data), len(ciphertext))
    wanted = hmac.new(mac_key, sizes + additional_data + iv + ciphertext, hashlib.sha256).digest()
    require(hmac.compare_digest(wanted, tag), f"{what}: the authentication tag is wrong")
    require(len(ciphertext) % suite.block == 0, f"{what}: the body is not whole blocks")
    mode = modes.CTR(iv) if suite.mode == "ctr" else modes.CBC(iv)
    decryptor = Cipher(block_cipher(suite, encryption_key), mode).decryptor()
    return decryptor.update(ciphertext) + decryptor.finalize()


def argon2id(passphrase, salt, memory_kib, passes, lanes, size):
    """FORMAT.md, keyring, "K1, K2": Argon2id, version 13 hexadecimal, by libargon2.

    python3-cryptography of Debian 12 has no Argon2id, so libargon2.so.1 is called by ctypes.
    """
    try:
        library = ctypes.CDLL(ctypes.util.find_library("argon2") or "libargon2.so.1")
    except OSError as error:
        raise VolumeError(f"Argon2id needs libargon2.so.1: {error}") from None
    output = ctypes.create_string_buffer(size)
    status = library.argon2id_hash_raw(
        ctypes.c_uint32(passes), ctypes.c_uint32(memory_kib), ctypes.c_uint32(lanes), passphrase,
        ctypes.c_size_t(len(passphrase)), salt, ctypes.c_size_t(len(salt)), output,
        ctypes.c_size_t(size))
    require(status == 0, f"Argon2id failed with status {status}")
    return output.raw
