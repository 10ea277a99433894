# SPDX-License-Identifier: Apache-2.0
"""XXH3 with 64 bits and seed 0, from its public description (xxHash, doc/xxhash_spec.md).

FORMAT.md, RocksDB's files: the blocks of tables carry the lower half of it.
"""

import struct

MASK64 = (1 << 64) - 1
PRIME32_1, PRIME32_2, PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
PRIME64_1, PRIME64_2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
PRIME64_3, PRIME64_4, PRIME64_5 = 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
PRIME_MX1, PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b"
    "16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e")


def read32(data, place):
    return struct.unpack_from("<I", data, place)[0]


def read64(data, place):
    return struct.unpack_from("<Q", data, place)[0]


def swap64(value):
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def rotate_left(value, count):
    return ((value << count) | (value >> (64 - count))) & MASK64


def multiply_fold(left, right):
    product = left * right
    return (product & MASK64) ^ (product >> 64)


def avalanche(value):
    value ^= value >> 37
    value = value * PRIME_MX1 & MASK64
    return value ^ (value >> 32)


def xxh64_avalanche(value):
    value ^= value >> 33
    value = value * PRIME64_2 & MASK64
    value ^= value >> 29
    value = value * PRIME64_3 & MASK64
    return value ^ (value >> 32)


def mix16(data, place, secret_place):
    return multiply_fold(read64(data, place) ^ read64(SECRET, secret_place),
                         read64(data, place + 8) ^ read64(SECRET, secret_place + 8))


def short_hash(data):
    size = len(data)
    if size == 0:
        return xxh64_avalanche(read64(SECRET, 56) ^ read64(SECRET, 64))
    if size <= 3:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        return xxh64_avalanche(combined ^ read32(SECRET, 0) ^ read32(SECRET, 4))
    if size <= 8:
        value = read32(data, size - 4) + (read32(data, 0) << 32)
        value ^= read64(SECRET, 8) ^ read64(SECRET, 16)
        value ^= rotate_left(value, 49) ^ rotate_left(value, 24)
        value = value * PRIME_MX2 & MASK64
        value ^= ((value >> 35) + size) & MASK64
        value = value * PRIME_MX2 & MASK64
        return value ^ (value >> 28)
    low = read64(data, 0) ^ read64(SECRET, 24) ^ read64(SECRET, 32)
    high = read64(data, size - 8) ^ read64(SECRET, 40) ^ read64(SECRET, 48)
    return avalanche((size + swap64(low) + high + multiply_fold(low, high)) & MASK64)


def middle_hash(data):
    size = len(data)
    total = size * PRIME64_1
    if size <= 128:
        for index in reversed(range((size - 1) // 32 + 1)):
            total += mix16(data, 16 * index, 32 * index)
            total += mix16(data, size - 16 * (index + 1), 32 * index + 16)
        return avalanche(total & MASK64)
    for index in range(8):
        total += mix16(data, 16 * index, 16 * index)
    total = avalanche(total & MASK64)
    for index in range(8, size // 16):
        total += mix16(data, 16 * index, 16 * (index - 8) + 3)
    total += mix16(data, size - 16, 136 - 17)
    return avalanche(total & MASK64)


def accumulate(lanes, data, place, secret_place):
    words = struct.unpack_from("<8Q", data, place)
    keys = struct.unpack_from("<8Q", SECRET, secret_place)
    for index in range(8):
        mixed = words[index] ^ keys[index]
        lanes[index ^ 1] = (lanes[index ^ 1] + words[index]) & MASK64
        lanes[index] = (lanes[index] + (mixed & 0xFFFFFFFF) * (mixed >> 32)) & MASK64


def long_hash(data):
    size = len(data)
    lanes = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1]
    for stripe in range((size - 1) // 64):
        accumulate(lanes, data, 64 * stripe, 8 * (stripe % 16))
        # The last block, even a whole one, is scrambled only when more data follows it.
        if stripe % 16 == 15:
            keys = struct.unpack_from("<8Q", SECRET, 192 - 64)
            for index in range(8):
                value = lanes[index] ^ (lanes[index] >> 47) ^ keys[index]
                lanes[index] = value * PRIME32_1 & MASK64
    accumulate(lanes, data, size - 64, 192 - 64 - 7)
    total = size * PRIME64_1
    for index in range(4):
        total += multiply_fold(lanes[2 * index] ^ read64(SECRET, 11 + 16 * index),
                               lanes[2 * index + 1] ^ read64(SECRET, 19 + 16 * index))
    return avalanche(total & MASK64)


def xxh3_64(data):
    if len(data) <= 16:
        return short_hash(data)
    return middle_hash(data) if len(data) <= 240 else long_hash(data)
