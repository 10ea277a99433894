# SPDX-License-Identifier: Apache-2.0
"""Numbers, as FORMAT writes them: little-endian fields, varints, tables' keys in big-endian."""
import struct


class Damage(Exception):
    """What FORMAT calls corrupt or tampered, or what this reader does not know."""


def require(holds, what):
    if not holds:
        raise Damage(what)


def u16(data, at=0):
    return struct.unpack_from("<H", data, at)[0]


def u32(data, at=0):
    return struct.unpack_from("<I", data, at)[0]


def u64(data, at=0):
    return struct.unpack_from("<Q", data, at)[0]


class Fields:
    """Fields one behind the other. FORMAT: "Tables" ("Fields of values follow each other …")."""

    def __init__(self, data, what="a value"):
        self.data, self.at, self.what = bytes(data), 0, what

    def left(self):
        return len(self.data) - self.at

    def take(self, size):
        require(size <= self.left(), f"{self.what} ends too early")
        self.at += size
        return self.data[self.at - size:self.at]

    def u8(self):
        return self.take(1)[0]

    def u32(self):
        return u32(self.take(4))

    def u64(self):
        return u64(self.take(8))

    def v(self):
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                require(byte != 0 or shift == 7, f"{self.what}: a varint is longer than it need be")
                require(value < 1 << 64, f"{self.what}: a varint is too large")
                return value

    def s(self):
        value = self.v()
        return value >> 1 ^ -(value & 1)

    def text(self):
        return self.take(self.v())

    def rest(self):
        return self.take(self.left())

    def end(self):
        require(self.left() == 0, f"{self.what} has bytes left over")


def value_fields(value, what):
    """FORMAT: "Tables": every value begins with a version byte, 1."""
    fields = Fields(value, what)
    require(fields.u8() == 1, f"{what} is of another version")
    return fields
