# SPDX-License-Identifier: Apache-2.0
"""Codec streams (FORMAT.md, Codec streams). Every decoder is told the plain size."""

import ctypes
import ctypes.util
import struct

from .basics import VolumeError, require

PIECE = 65536
NAMES = {0: "none", 1: "lz77", 2: "zstd", 3: "rle", 4: "huffman", 5: "gdeflate", 6: "lzw"}


def decode_lz4_block(code, plain_size):
    """FORMAT.md, Codec streams, "LZ4 block"."""
    out = bytearray()
    place = 0

    def byte():
        nonlocal place
        require(place < len(code), "LZ4 block: ends too early")
        place += 1
        return code[place - 1]

    def extended(value):
        if value == 15:
            while True:
                more = byte()
                value += more
                if more != 255:
                    break
        return value

    while True:
        token = byte()
        literals = extended(token >> 4)
        require(place + literals <= len(code), "LZ4 block: literals end too early")
        out += code[place:place + literals]
        place += literals
        require(len(out) <= plain_size, "LZ4 block: gives too many bytes")
        if place == len(code):
            # The token behind which the block ends has no match; its low four bits are 0.
            break
        distance = byte() | byte() << 8
        size = extended(token & 15) + 4
        require(1 <= distance <= len(out), "LZ4 block: match from before the beginning")
        require(len(out) + size <= plain_size, "LZ4 block: gives too many bytes")
        copy_match(out, distance, size)
    require(len(out) == plain_size, "LZ4 block: gives too few bytes")
    return bytes(out)


def copy_match(out, distance, size):
    start = len(out) - distance
    if distance >= size:
        out += out[start:start + size]
    else:
        pattern = bytes(out[start:])
        out += (pattern * (size // distance + 1))[:size]


def split_parts(code, plain_size, part_size, what):
    """FORMAT.md, Codec streams, "PackBits" and "TIFF LZW": u16 sizes of parts, then the parts."""
    count = -(-plain_size // part_size)
    require(2 * count <= len(code), f"{what}: ends too early")
    sizes = struct.unpack_from(f"<{count}H", code)
    require(2 * count + sum(sizes) == len(code), f"{what}: sizes of parts do not add up")
    place = 2 * count
    for index, size in enumerate(sizes):
        yield code[place:place + size], min(part_size, plain_size - index * part_size)
        place += size


def decode_packbits(code, plain_size):
    """FORMAT.md, Codec streams, "PackBits"."""
    out = bytearray()
    for part, part_plain in split_parts(code, plain_size, 4096, "PackBits"):
        end = len(out) + part_plain
        place = 0
        while place < len(part):
            head = part[place]
            place += 1
            if head <= 127:
                require(place + head + 1 <= len(part), "PackBits: a part ends too early")
                out += part[place:place + head + 1]
                place += head + 1
            elif head >= 129:
                require(place < len(part), "PackBits: a part ends too early")
                out += part[place:place + 1] * (257 - head)
                place += 1
        require(len(out) == end, "PackBits: a part has another size")
    return bytes(out)


def decode_lzw(code, plain_size):
    """FORMAT.md, Codec streams, "TIFF LZW"."""
    out = bytearray()
    for part, part_plain in split_parts(code, plain_size, 8192, "TIFF LZW"):
        out += decode_lzw_part(part, part_plain)
    return bytes(out)


def decode_lzw_part(part, plain_size):
    bits = int.from_bytes(part, "big")
    left = 8 * len(part)
    out = bytearray()
    strings, since_clear, previous, started = [], 0, b"", False
    while True:
        # Behind j codes since the clear: 9 bits for j < 254, 10 for j < 766, 11 for j < 1790.
        width = 9 if since_clear < 254 else 10 if since_clear < 766 else 11
        width = 12 if since_clear >= 1790 else width
        require(left >= width, "TIFF LZW: a part has no end code")
        left -= width
        code = (bits >> left) & ((1 << width) - 1)
        require(started or code == 256, "TIFF LZW: a part does not begin with a clear")
        started = True
        if code == 256:
            strings, since_clear, previous = [], 0, b""
            continue
        if code == 257:
            break
        require(since_clear < 3837, "TIFF LZW: too many codes without a clear")
        if code < 256:
            string = bytes([code])
        elif code - 258 < len(strings):
            string = strings[code - 258]
        else:
            require(code - 258 == len(strings) and previous, "TIFF LZW: unknown code")
            string = previous + previous[:1]
        if previous:
            strings.append(previous + string[:1])
        out += string
        require(len(out) <= plain_size, "TIFF LZW: a part gives too many bytes")
        previous = string
        since_clear += 1
    require(left < 8 and bits & ((1 << left) - 1) == 0, "TIFF LZW: bits are left over in a part")
    require(len(out) == plain_size, "TIFF LZW: a part gives too few bytes")
    return out


# GDeflate. The tables are those of RFC 1951, 3.2.5, with the changes that FORMAT.md names.

def make_length_symbols():
    table, base = [], 3
    for index in range(28):
        extra = 0 if index < 8 else index // 4 - 1
        table.append((base, extra))
        base += 1 << extra
    return table + [(3, 16)]


def make_distance_symbols():
    table, base = [], 1
    for index in range(32):
        extra = 0 if index < 4 else index // 2 - 1
        table.append((base, extra))
        base += 1 << extra
    return table


LENGTH_SYMBOLS = make_length_symbols()
DISTANCE_SYMBOLS = make_distance_symbols()
CODE_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]


class PrefixCode:
    """A canonical code of RFC 1951, 3.2.2."""

    def __init__(self, sizes, may_be_empty=False):
        self.symbols = {}
        code = 0
        for size in range(1, 16):
            for symbol, own_size in enumerate(sizes):
                if own_size == size:
                    self.symbols[(size, code)] = symbol
                    code += 1
            require(code <= 1 << size, "GDeflate: a code has too many symbols")
            code <<= 1
        # A code must be complete, or a single symbol with one bit; distances may have none.
        complete = code == 1 << 16
        single = len(self.symbols) == 1 and (1, 0) in self.symbols
        empty = may_be_empty and not self.symbols
        require(complete or single or empty, "GDeflate: a code is not complete")


class Lane:
    def __init__(self, page, word):
        self.page, self.bits, self.count = page, word, 32

    def read(self, size):
        if size == 0:
            return 0
        value = self.bits & ((1 << size) - 1)
        self.bits >>= size
        self.count -= size
        # FORMAT.md, "GDeflate page": with fewer than 32 bits left a lane takes the next word.
        if self.count < 32:
            self.bits |= self.page.next_word() << self.count
            self.count += 32
        return value

    def symbol(self, code):
        # A code begins with its highest bit. Looked at first, then read at once.
        value = 0
        for size in range(1, 16):
            value = value << 1 | (self.bits >> (size - 1)) & 1
            found = code.symbols.get((size, value))
            if found is not None:
                self.read(size)
                return found
        raise VolumeError("GDeflate: bits that are no code")


class GDeflatePage:
    """FORMAT.md, Codec streams, "GDeflate page"."""

    def __init__(self, code, plain_size):
        require(len(code) % 4 == 0 and len(code) >= 128, "GDeflate: a page is no 32 words or more")
        self.words = struct.unpack(f"<{len(code) // 4}I", code)
        self.taken = 32
        self.lanes = [Lane(self, word) for word in self.words[:32]]
        self.plain_size = plain_size
        self.given = 0          # plain bytes of all pieces so far
        self.pieces = []        # bytes, or [length, distance]; the distance comes a round later

    def next_word(self):
        require(self.taken < len(self.words), "GDeflate: a page ends too early")
        self.taken += 1
        return self.words[self.taken - 1]

    def give(self, piece, size):
        self.given += size
        require(self.given <= self.plain_size, "GDeflate: a page gives too many bytes")
        self.pieces.append(piece)

    def decode(self):
        last = False
        while not last:
            last = self.lanes[0].read(1) == 1
            kind = self.lanes[0].read(2)
            if kind == 0:
                self.stored_block()
            elif kind == 1:
                fixed = [8] * 144 + [9] * 112 + [7] * 24 + [8] * 8
                self.rounds(PrefixCode(fixed), PrefixCode([5] * 32))
            elif kind == 2:
                self.rounds(*self.described_codes())
            else:
                raise VolumeError("GDeflate: a block of an unknown kind")
        require(self.taken == len(self.words), "GDeflate: words are left over in a page")
        out = bytearray()
        for piece in self.pieces:
            if isinstance(piece, bytes):
                out += piece
            else:
                size, distance = piece
                require(distance <= len(out), "GDeflate: match from before the beginning")
                copy_match(out, distance, size)
        require(len(out) == self.plain_size, "GDeflate: a page gives too few bytes")
        return bytes(out)

    def stored_block(self):
        for index in range(self.lanes[0].read(16)):
            self.give(bytes([self.lanes[index % 32].read(8)]), 1)

    def described_codes(self):
        lane = self.lanes[0]
        literal_count, distance_count = lane.read(5) + 257, lane.read(5) + 1
        order = CODE_LENGTH_ORDER[:lane.read(4) + 4]
        sizes = [0] * 19
        for index, symbol in enumerate(order):
            sizes[symbol] = self.lanes[index].read(3)
        code = PrefixCode(sizes)
        lengths, item = [], 0
        while len(lengths) < literal_count + distance_count:
            lane = self.lanes[item % 32]
            item += 1
            symbol = lane.symbol(code)
            if symbol < 16:
                lengths.append(symbol)
            elif symbol == 16:
                require(lengths, "GDeflate: nothing to repeat")
                lengths += lengths[-1:] * (3 + lane.read(2))
            elif symbol == 17:
                lengths += [0] * (3 + lane.read(3))
            else:
                lengths += [0] * (11 + lane.read(7))
        require(len(lengths) == literal_count + distance_count, "GDeflate: too many code lengths")
        return PrefixCode(lengths[:literal_count]), PrefixCode(lengths[literal_count:], True)

    def rounds(self, literals, distances):
        waiting = [None] * 32
        ended = False
        while not ended or any(waiting):
            for index, lane in enumerate(self.lanes):
                if waiting[index]:
                    symbol = lane.symbol(distances)
                    base, extra = DISTANCE_SYMBOLS[symbol]
                    waiting[index][1] = base + lane.read(extra)
                    waiting[index] = None
                elif not ended:
                    symbol = lane.symbol(literals)
                    if symbol < 256:
                        self.give(bytes([symbol]), 1)
                    elif symbol == 256:
                        ended = True
                    else:
                        require(symbol <= 285, "GDeflate: a symbol that may not occur")
                        base, extra = LENGTH_SYMBOLS[symbol - 257]
                        match = [base + lane.read(extra), 0]
                        self.give(match, match[0])
                        waiting[index] = match


def decode_gdeflate(code, plain_size):
    return GDeflatePage(code, plain_size).decode()


def decode_sub_blocks(stream, plain_size, decode_piece):
    """FORMAT.md, Codec streams, "Sub-blocks"."""
    out = bytearray()
    place = 0
    while len(out) < plain_size:
        piece_size = min(PIECE, plain_size - len(out))
        require(place + 4 <= len(stream), "sub-blocks: the stream ends too early")
        (head,) = struct.unpack_from("<I", stream, place)
        size = head & 0x7FFFFFFF
        code = stream[place + 4:place + 4 + size]
        require(len(code) == size, "sub-blocks: the stream ends too early")
        place += 4 + size
        if head >> 31:
            require(size == piece_size, "sub-blocks: a stored piece has another size")
            out += code
        else:
            require(1 <= size < piece_size, "sub-blocks: a code is not smaller than its piece")
            out += decode_piece(code, piece_size)
    require(place == len(stream), "sub-blocks: bytes are left over")
    return bytes(out)


def decode_zstd(stream, plain_size):
    """FORMAT.md, Codec streams, "zstd": one frame, by libzstd; its header is checked here."""
    what = "zstd"
    require(len(stream) >= 6 and stream[:4] == b"\x28\xb5\x2f\xfd", f"{what}: no frame")
    descriptor = stream[4]
    single_segment = descriptor >> 5 & 1
    require(descriptor & 0x0F == 0, f"{what}: a dictionary, a checksum, or a reserved bit")
    place = 5
    window = plain_size
    if not single_segment:
        exponent, mantissa = stream[5] >> 3, stream[5] & 7
        window = (1 << (10 + exponent)) * (8 + mantissa) // 8
        place = 6
    require(window <= 1 << 20, f"{what}: the window is too large")
    field_size = [single_segment, 2, 4, 8][descriptor >> 6]
    require(field_size > 0, f"{what}: the frame does not name its content size")
    content_size = int.from_bytes(stream[place:place + field_size], "little")
    content_size += 256 if field_size == 2 else 0
    require(content_size == plain_size, f"{what}: another content size")
    try:
        library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    except OSError as error:
        raise VolumeError(f"zstd needs libzstd.so.1: {error}") from None
    for name in ("ZSTD_findFrameCompressedSize", "ZSTD_decompress"):
        getattr(library, name).restype = ctypes.c_size_t
    frame_size = library.ZSTD_findFrameCompressedSize(stream, ctypes.c_size_t(len(stream)))
    require(frame_size == len(stream), f"{what}: not a single whole frame")
    output = ctypes.create_string_buffer(plain_size)
    given = library.ZSTD_decompress(output, ctypes.c_size_t(plain_size), stream,
                                    ctypes.c_size_t(len(stream)))
    require(given == plain_size, f"{what}: the frame does not decode")
    return output.raw


def decode_none(stream, plain_size):
    require(len(stream) == plain_size, "codec none: the stream has another size")
    return stream


PIECE_DECODERS = {1: decode_lz4_block, 3: decode_packbits, 4: decode_gdeflate, 5: decode_gdeflate,
                  6: decode_lzw}


def decode(codec, stream, plain_size):
    """FORMAT.md, Codec streams, the table of numbers."""
    require(codec in NAMES, f"codec {codec} is not valid")
    if plain_size == 0:
        require(not stream, "an empty plain has a stream")
        return b""
    if codec == 0:
        return decode_none(stream, plain_size)
    # A record whose stream would not be smaller than its plain bytes uses codec 0.
    require(len(stream) < plain_size, "a stream is not smaller than its plain bytes")
    if codec == 2:
        return decode_zstd(stream, plain_size)
    return decode_sub_blocks(stream, plain_size, PIECE_DECODERS[codec])
