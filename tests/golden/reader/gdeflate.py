# SPDX-License-Identifier: Apache-2.0
"""A GDeflate page. FORMAT: "GDeflate page"; step numbers are those of that section."""
from .binary import Damage, require, u32

LANES = 32
# RFC 1951, 3.2.5; FORMAT: what DEFLATE64 changes of it (285; 30 and 31).
LENGTHS = [(3 + i, 0) for i in range(8)]
for extra in range(1, 6):
    LENGTHS += [((4 + i << extra) + 3, extra) for i in range(4)]
LENGTHS.append((3, 16))
DISTANCES = [(1 + i, 0) for i in range(4)]
for extra in range(1, 15):
    DISTANCES += [((2 + i << extra) + 1, extra) for i in range(2)]
# RFC 1951, 3.2.7
CODE_LENGTH_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]
END_OF_BLOCK = 256


class Lanes:
    """Words are dealt to lanes as these run dry."""

    def __init__(self, page):
        require(len(page) % 4 == 0 and len(page) >= 4 * LANES, "a page is not 32 words or more")
        self.words = [u32(page, at) for at in range(0, len(page), 4)]
        self.bits, self.counts = self.words[:LANES], [32] * LANES
        self.next = LANES

    def read(self, lane, count):
        if count == 0:
            return 0
        value = self.bits[lane] & ((1 << count) - 1)
        self.bits[lane] >>= count
        self.counts[lane] -= count
        if self.counts[lane] < 32:
            require(self.next < len(self.words), "a page ends too early")
            self.bits[lane] |= self.words[self.next] << self.counts[lane]
            self.counts[lane] += 32
            self.next += 1
        return value


class Code:
    """A canonical prefix code. RFC 1951, 3.2.2; complete, or of a single symbol with one bit."""

    def __init__(self, sizes, what, may_be_empty=False):
        used = sorted((size, symbol) for symbol, size in enumerate(sizes) if size)
        self.symbols, code, last = {}, 0, 0
        for size, symbol in used:
            code <<= size - last
            last = size
            self.symbols[size, code] = symbol
            code += 1
        is_complete = bool(used) and code == 1 << last
        is_single = len(used) == 1 and last == 1
        require(is_complete or is_single or (may_be_empty and not used),
                f"the code of {what} is not complete")

    def read(self, lanes, lane):
        code = 0
        # All of a code comes from bits that the lane has: a lane never has fewer than 32.
        for size in range(1, 16):
            code = code << 1 | lanes.bits[lane] >> (size - 1) & 1
            symbol = self.symbols.get((size, code))
            if symbol is not None:
                lanes.read(lane, size)
                return symbol
        raise Damage("a page has a code without a symbol")


FIXED_LENGTHS = Code([8] * 144 + [9] * 112 + [7] * 24 + [8] * 8, "lengths")
FIXED_DISTANCES = Code([5] * 32, "distances")


def read_dynamic_codes(lanes):
    """Step 3."""
    length_count = lanes.read(0, 5) + 257
    distance_count = lanes.read(0, 5) + 1
    size_count = lanes.read(0, 4) + 4
    sizes = [0] * 19
    for lane in range(size_count):
        sizes[CODE_LENGTH_ORDER[lane]] = lanes.read(lane, 3)
    code = Code(sizes, "code lengths")
    lengths, item = [], 0
    while len(lengths) < length_count + distance_count:
        lane = item % LANES
        item += 1
        symbol = code.read(lanes, lane)
        if symbol < 16:
            lengths.append(symbol)
        elif symbol == 16:
            require(lengths, "a page repeats a code length that is not there")
            lengths += [lengths[-1]] * (3 + lanes.read(lane, 2))
        elif symbol == 17:
            lengths += [0] * (3 + lanes.read(lane, 3))
        else:
            lengths += [0] * (11 + lanes.read(lane, 7))
    require(len(lengths) == length_count + distance_count, "a page has too many code lengths")
    return (Code(lengths[:length_count], "lengths"),
            Code(lengths[length_count:], "distances", may_be_empty=True))


def read_rounds(lanes, length_code, distance_code, items):
    """Step 4. items: bytes and [length, distance], in the order in which they begin."""
    waiting = [None] * LANES  # the match of which a lane gave the length
    ended = False
    while not ended or any(waiting):
        for lane in range(LANES):
            if waiting[lane]:
                symbol = distance_code.read(lanes, lane)
                base, extra = DISTANCES[symbol]
                waiting[lane][1] = base + lanes.read(lane, extra)
                waiting[lane] = None
            elif not ended:
                symbol = length_code.read(lanes, lane)
                if symbol < 256:
                    items.append(symbol)
                elif symbol == END_OF_BLOCK:
                    ended = True
                else:
                    require(symbol <= 285, "a page has a length that means nothing")
                    base, extra = LENGTHS[symbol - 257]
                    waiting[lane] = [base + lanes.read(lane, extra), 0]
                    items.append(waiting[lane])


def gdeflate_page(page, size):
    lanes, items, is_last = Lanes(page), [], False
    while not is_last:
        is_last = lanes.read(0, 1)  # step 1
        kind = lanes.read(0, 2)
        if kind == 0:  # step 2
            count = lanes.read(0, 16)
            items += [lanes.read(i % LANES, 8) for i in range(count)]
        elif kind == 1:
            read_rounds(lanes, FIXED_LENGTHS, FIXED_DISTANCES, items)
        else:
            require(kind == 2, "a page has a block of no kind")
            read_rounds(lanes, *read_dynamic_codes(lanes), items)
    require(lanes.next == len(lanes.words), "a page has words left over")
    out = bytearray()
    for item in items:
        if isinstance(item, int):
            out.append(item)
            continue
        length, distance = item
        require(distance <= len(out) and len(out) + length <= size, "a match leads out of its page")
        for _ in range(length):
            out.append(out[-distance])
    require(len(out) == size, "a page has another size than it should")
    return bytes(out)
