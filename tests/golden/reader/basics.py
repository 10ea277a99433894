# SPDX-License-Identifier: Apache-2.0
"""What all other modules need: the error, a cursor over bytes, checksums, and small hashes."""

import struct
import sys
import zlib


class VolumeError(Exception):
    """The volume breaks a rule of FORMAT.md: damaged, tampered with, or not readable at all."""


def warn(text):
    print("warning: " + text, file=sys.stderr)


def require(condition, message):
    if not condition:
        raise VolumeError(message)


def crc32(*pieces):
    """CRC-32 of IEEE 802.3, as zlib's, over pieces that follow each other (FORMAT.md, Record)."""
    value = 0
    for piece in pieces:
        value = zlib.crc32(piece, value)
    return value


class Cursor:
    """Reads fields from bytes, each behind the other; `what` names them in error messages."""

    def __init__(self, data, what):
        self.data = data
        self.what = what
        self.place = 0

    def left(self):
        return len(self.data) - self.place

    def take(self, size):
        require(size <= self.left(), f"{self.what}: ends too early")
        piece = self.data[self.place:self.place + size]
        self.place += size
        return piece

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack("<H", self.take(2))[0]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def reserved(self, size):
        # FORMAT.md, head of the page: reserved bytes must be zero when read.
        require(not any(self.take(size)), f"{self.what}: reserved bytes are not zero")

    def varint(self):
        """FORMAT.md, Tables: `v`, an unsigned LEB128 varint in its shortest form (64 bits)."""
        value = 0
        for index in range(10):
            byte = self.u8()
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                require(byte != 0 or index == 0, f"{self.what}: varint is not in its shortest form")
                require(value < 1 << 64, f"{self.what}: varint exceeds 64 bits")
                return value
        raise VolumeError(f"{self.what}: varint is too long")

    def signed(self):
        """FORMAT.md, Tables: `s`, zigzag-coded."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def text(self):
        """FORMAT.md, RocksDB's files: a text is its size v and its bytes."""
        return self.take(self.varint())

    def end(self):
        require(self.left() == 0, f"{self.what}: {self.left()} bytes are left over")


MASK64 = (1 << 64) - 1


def rotate_left(value, count):
    return ((value << count) | (value >> (64 - count))) & MASK64


def siphash_2_4(key, data):
    """SipHash-2-4 with 64 bits (Aumasson and Bernstein); FORMAT.md, Tables, "Name hash"."""
    k0, k1 = struct.unpack("<QQ", key)
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rounds(count, v0, v1, v2, v3):
        for _ in range(count):
            v0 = (v0 + v1) & MASK64
            v1 = rotate_left(v1, 13) ^ v0
            v0 = rotate_left(v0, 32)
            v2 = (v2 + v3) & MASK64
            v3 = rotate_left(v3, 16) ^ v2
            v0 = (v0 + v3) & MASK64
            v3 = rotate_left(v3, 21) ^ v0
            v2 = (v2 + v1) & MASK64
            v1 = rotate_left(v1, 17) ^ v2
            v2 = rotate_left(v2, 32)
        return v0, v1, v2, v3

    whole = len(data) // 8 * 8
    last = data[whole:].ljust(7, b"\0") + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", data[:whole] + last):
        v0, v1, v2, v3 = rounds(2, v0, v1, v2, v3 ^ word)
        v0 ^= word
    v0, v1, v2, v3 = rounds(4, v0, v1, v2 ^ 0xFF, v3)
    return v0 ^ v1 ^ v2 ^ v3


def name_hash(key, name):
    """FORMAT.md, Tables: the top bit cleared, raised to 3 where it would be lower."""
    return max(siphash_2_4(key, name) & (MASK64 >> 1), 3)


def make_crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C_TABLE = make_crc32c_table()


def masked_crc32c(data):
    """FORMAT.md, RocksDB's files, "Logs and manifests": Castagnoli, rotated and displaced."""
    value = 0xFFFFFFFF
    for byte in data:
        value = CRC32C_TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    value ^= 0xFFFFFFFF
    return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF
