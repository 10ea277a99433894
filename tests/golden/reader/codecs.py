# SPDX-License-Identifier: Apache-2.0
"""Streams of the codecs. FORMAT: "Codec streams". Each decoder takes a piece of known plain size and
refuses one that gives more bytes, or fewer, or has bytes left over."""
import ctypes

from .binary import Damage, Fields, require, u16, u32
from .gdeflate import gdeflate_page

SUB_BLOCK = 65536


def lz4_block(data, size):
    """FORMAT: "LZ4 block". Also in RocksDB's tables."""
    out = bytearray()
    fields = Fields(data, "an LZ4 block")

    def long_number(number):
        while number >= 15:
            byte = fields.u8()
            number += byte
            if byte != 255:
                break
        return number

    while fields.left():
        token = fields.u8()
        out += fields.take(long_number(token >> 4))
        if not fields.left():
            break
        distance = u16(fields.take(2))
        length = long_number(token & 15) + 4
        require(1 <= distance <= len(out) and len(out) + length <= size,
                "an LZ4 match leads out of its block")
        start = len(out) - distance
        match = out[start:start + length]
        while len(match) < length:  # it repeats itself
            match += match[:length - len(match)]
        out += match
    require(len(out) == size, "an LZ4 block has another size than it should")
    return bytes(out)


def parts(data, size, part_size):
    """FORMAT: "PackBits", "TIFF LZW": u16 sizes of all parts, then the parts. Gives (part, plain size)."""
    count = -(-size // part_size)
    at = 2 * count
    require(at <= len(data), "a piece ends within its sizes")
    for i in range(count):
        part = data[at:at + u16(data, 2 * i)]
        require(len(part) == u16(data, 2 * i), "a piece ends within a part")
        at += len(part)
        yield part, min(part_size, size - i * part_size)
    require(at == len(data), "a piece has bytes left over")


def packbits(data, size):
    out = bytearray()
    for part, plain_size in parts(data, size, 4096):
        start, fields = len(out), Fields(part, "a PackBits part")
        while fields.left():
            head = fields.u8()
            if head <= 127:
                out += fields.take(head + 1)
            elif head >= 129:
                out += fields.take(1) * (257 - head)
        require(len(out) - start == plain_size, "a PackBits part has another size than it should")
    return bytes(out)


def lzw(data, size):
    """FORMAT: "TIFF LZW"."""
    return b"".join(lzw_part(part, plain_size) for part, plain_size in parts(data, size, 8192))


def lzw_part(data, size):
    bits, bit_count, at = int.from_bytes(data, "big"), 8 * len(data), 0
    out, strings, previous, since_clear = bytearray(), [], None, None
    while True:
        j = since_clear or 0
        width = 9 if j < 254 else 10 if j < 766 else 11 if j < 1790 else 12
        require(at + width <= bit_count, "an LZW part ends without its last code")
        code = bits >> (bit_count - at - width) & ((1 << width) - 1)
        at += width
        if code == 257:
            break
        if code == 256:
            strings, previous, since_clear = [], None, 0
            continue
        require(since_clear is not None and j < 3837, "an LZW code is not possible here")
        if code < 256:
            string = bytes([code])
        elif code - 258 < len(strings):
            string = strings[code - 258]
        else:  # the string that it makes
            require(previous is not None and code - 258 == len(strings), "an LZW code has no string")
            string = previous + previous[:1]
        if previous is not None:
            strings.append(previous + string[:1])
        out += string
        require(len(out) <= size, "an LZW part is too long")
        previous, since_clear = string, j + 1
    require(len(out) == size and bit_count - at < 8 and bits & ((1 << (bit_count - at)) - 1) == 0,
            "an LZW part does not end where it should")
    return bytes(out)


def zstd(stream, size):
    """FORMAT: "zstd": one frame of RFC 8878 that takes up the stream and names its content size."""
    library = ctypes.CDLL("libzstd.so.1")
    number, text = ctypes.c_size_t, ctypes.c_char_p
    library.ZSTD_findFrameCompressedSize.restype = number
    library.ZSTD_findFrameCompressedSize.argtypes = [text, number]
    library.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    library.ZSTD_getFrameContentSize.argtypes = [text, number]
    library.ZSTD_decompress.restype = number
    library.ZSTD_decompress.argtypes = [text, number, text, number]
    require(stream[:4] == bytes.fromhex("28b52ffd") and
            library.ZSTD_findFrameCompressedSize(stream, len(stream)) == len(stream) and
            library.ZSTD_getFrameContentSize(stream, len(stream)) == size,
            "a zstd stream is not one frame of its size")
    out = ctypes.create_string_buffer(size)
    got = library.ZSTD_decompress(ctypes.cast(out, text), size, stream, len(stream))
    require(got == size, "a zstd frame is corrupt")
    return out.raw


PIECES = {1: lz4_block, 3: packbits, 4: gdeflate_page, 5: gdeflate_page, 6: lzw}


def sub_blocks(decode, stream, size):
    """FORMAT: "Sub-blocks"."""
    out, at = [], 0
    for begin in range(0, size, SUB_BLOCK):
        piece_size = min(SUB_BLOCK, size - begin)
        require(at + 4 <= len(stream), "a stream ends within a sub-block")
        head = u32(stream, at)
        is_stored, stored_size = head >> 31, head & 0x7FFFFFFF
        piece = stream[at + 4:at + 4 + stored_size]
        require(len(piece) == stored_size, "a stream ends within a sub-block")
        at += 4 + stored_size
        if is_stored:
            require(stored_size == piece_size, "a stored sub-block has another size than it should")
            out.append(piece)
        else:
            require(1 <= stored_size < piece_size, "a sub-block's code is larger than its content")
            out.append(decode(piece, piece_size))
    require(at == len(stream), "a stream has bytes left over")
    return b"".join(out)


def decode_stream(codec, stream, size):
    if size == 0 or codec == 0:
        require(len(stream) == size, "a stream of codec none has another size than it should")
        return stream
    if codec == 2:
        return zstd(stream, size)
    if codec not in PIECES:
        raise Damage(f"codec {codec} is not valid")
    return sub_blocks(PIECES[codec], stream, size)
