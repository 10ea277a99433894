# SPDX-License-Identifier: Apache-2.0
"""Sealing: cipher suites, HKDF, sealed secrets. FORMAT: "Cipher suites", "Keys"."""
import hashlib
import hmac
import struct
from collections import namedtuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from .binary import Damage, require

try:  # where newer versions keep it
    from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
except ImportError:
    from cryptography.hazmat.primitives.ciphers.algorithms import TripleDES

# cipher_size: of the encryption key; key_size: of everything that a session derives.
Suite = namedtuple("Suite", "number name mode cipher_size key_size tag_size block")
HMAC_SIZE = 32


def _suites():
    for number, bits in ((1, 256), (2, 192), (3, 128)):
        yield Suite(number, f"aes-{bits}-gcm", "gcm", bits // 8, bits // 8, 16, 1)
    for number, bits in ((4, 256), (5, 192), (6, 128)):
        yield Suite(number, f"aes-{bits}-ctr", "ctr", bits // 8, bits // 8 + HMAC_SIZE, 32, 1)
    for number, bits in ((7, 256), (8, 192), (9, 128)):
        yield Suite(number, f"aes-{bits}-cbc", "cbc", bits // 8, 2 * bits // 8 + HMAC_SIZE, 32, 16)
    yield Suite(10, "des-ede3-cbc", "cbc", 24, 2 * 24 + HMAC_SIZE, 32, 8)
    yield Suite(11, "des-cbc", "cbc", 8, 2 * 8 + HMAC_SIZE, 32, 8)


SUITES = {suite.name: suite for suite in _suites()}


def hmac_sha256(key, message):
    return hmac.new(key, message, hashlib.sha256).digest()


def hkdf_sha256(key, salt, info, size):
    """RFC 5869, extract and expand."""
    extracted = hmac_sha256(salt, key)
    block, out = b"", b""
    while len(out) < size:
        block = hmac_sha256(extracted, block + info + bytes([len(out) // 32 + 1]))
        out += block
    return out[:size]


def open_gcm(key, nonce, aad, ciphertext, tag, what):
    try:
        return AESGCM(key).decrypt(nonce, bytes(ciphertext) + bytes(tag), bytes(aad))
    except InvalidTag:
        raise Damage(f"{what}: the tag is wrong") from None


def open_secret(key, aad, sealed, what):
    """FORMAT: "keyring": a sealed secret is nonce, ciphertext, tag."""
    require(len(sealed) >= 12 + 16, f"{what} is too short")
    return open_gcm(key, sealed[:12], aad, sealed[12:-16], sealed[-16:], what)


def block_cipher(suite, key, mode):
    if suite.block == 8:
        # One DES key is 3DES with three equal ones. FORMAT: K1, K2, K3.
        return Cipher(TripleDES(key * 3 if len(key) == 8 else key), mode)
    return Cipher(algorithms.AES(key), mode)


def iv_of(suite, iv_key, nonce):
    if suite.mode == "ctr":
        return nonce + bytes(4)
    plain = nonce[4:] if suite.block == 8 else nonce + bytes(4)
    encryptor = block_cipher(suite, iv_key, modes.ECB()).encryptor()
    return encryptor.update(plain) + encryptor.finalize()


def open_suite(suite, key, nonce, aad, ciphertext, tag, what):
    """Checks the tag, then decrypts."""
    require(len(key) == suite.key_size and len(tag) == suite.tag_size, f"{what}: sizes do not fit")
    if suite.mode == "gcm":
        return open_gcm(key, nonce, aad, ciphertext, tag, what)
    size = suite.cipher_size
    cipher_key, iv_key, hmac_key = key[:size], key[size:-HMAC_SIZE], key[-HMAC_SIZE:]
    iv = iv_of(suite, iv_key, nonce)
    message = struct.pack("<QQ", len(aad), len(ciphertext)) + aad + iv + ciphertext
    require(hmac.compare_digest(hmac_sha256(hmac_key, message), tag), f"{what}: the tag is wrong")
    require(len(ciphertext) % suite.block == 0, f"{what} is not whole blocks")
    mode = modes.CTR(iv) if suite.mode == "ctr" else modes.CBC(iv)
    decryptor = block_cipher(suite, cipher_key, mode).decryptor()
    return decryptor.update(ciphertext) + decryptor.finalize()
