# SPDX-License-Identifier: Apache-2.0
"""RocksDB's files, once opened. FORMAT: "RocksDB's files"."""
import ctypes

from .binary import Damage, Fields, require, u16, u32, u64
from .codecs import lz4_block

LOG_BLOCK = 32768
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
DELETE, PUT = 0, 1


def _crc32c_table():
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        yield value


CRC32C = list(_crc32c_table())


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def log_records(stream, name, may_be_cut):
    """The records of a log or manifest."""
    at, record = 0, None
    while at < len(stream):
        left = LOG_BLOCK - at % LOG_BLOCK
        if left < 7:
            require(not any(stream[at:at + left]), f"{name}: a block ends in something")
            at += left
            continue
        if at + 7 > len(stream):
            break
        size, kind = u16(stream, at + 4), stream[at + 6]
        require(7 + size <= left, f"{name}: a fragment crosses its block's end")
        if at + 7 + size > len(stream):
            break
        require(masked_crc32c(stream[at + 6:at + 7 + size]) == u32(stream, at),
                f"{name}: the CRC of a record is wrong")
        content = stream[at + 7:at + 7 + size]
        at += 7 + size
        require(kind in (WHOLE, FIRST, MIDDLE, LAST), f"{name}: a fragment of kind {kind}")
        require((record is None) == (kind in (WHOLE, FIRST)), f"{name}: fragments out of order")
        record = content if record is None else record + content
        if kind in (WHOLE, LAST):
            yield record
            record = None
    require(may_be_cut or (record is None and at >= len(stream)), f"{name} ends within a record")


class Manifest:
    """Which tables there are, of which family, and which logs count for whom."""

    def __init__(self, stream, name):
        self.families, self.tables, self.first_log = {0: b"default"}, {}, {}
        group = []
        for record in log_records(stream, name, may_be_cut=True):
            edit, left_in_group = self.read_edit(record, name)
            group.append(edit)
            if left_in_group == 0:
                for each in group:
                    self.apply(each)
                group = []

    @staticmethod
    def read_edit(record, name):
        fields = Fields(record, f"{name}: an edit")
        edit = {"family": 0, "gone": [], "new": []}
        left_in_group = 0
        while fields.left():
            tag = fields.v()
            if tag == 1:
                require(fields.text() == b"leveldb.BytewiseComparator", f"{name}: another order of keys")
            elif tag == 2:
                edit["first_log"] = fields.v()
            elif tag in (3, 4, 9, 10, 203):
                fields.v()
            elif tag == 5:
                fields.v(), fields.text()
            elif tag == 6:
                fields.v()
                edit["gone"].append(fields.v())
            elif tag == 103:
                fields.v()
                edit["new"].append((fields.v(), fields.v()))
                fields.text(), fields.text(), fields.v(), fields.v()
                while (field := fields.v()) != 1:
                    require(not field & 1 << 6, f"{name}: a table has a field that is not known: {field}")
                    fields.text()
            elif tag == 200:
                edit["family"] = fields.v()
            elif tag == 201:
                edit["name"] = fields.text()
            elif tag == 202:
                edit["drop"] = True
            elif tag == 300:
                left_in_group = fields.v()
            else:
                require(tag & 1 << 13, f"{name}: an edit has a field that is not known: {tag}")
                fields.text()
        return edit, left_in_group

    def apply(self, edit):
        family = edit["family"]
        if "name" in edit:
            self.families[family] = edit["name"]
        if "drop" in edit:
            del self.families[family]
        if "first_log" in edit:
            self.first_log[family] = edit["first_log"]
        for number in edit["gone"]:
            self.tables.pop(number, None)
        for number, size in edit["new"]:
            self.tables[number] = family, size


def batch_entries(record, name):
    """A record of a log: (family, key, sequence, value or None)."""
    fields = Fields(record, f"{name}: a batch")
    sequence, left = fields.u64(), fields.u32()
    while fields.left():
        tag = fields.u8()
        if tag == 13:
            continue
        if tag == 3:
            fields.text()
            continue
        require(tag in (0, 1, 4, 5), f"{name}: an entry that is not known: {tag}")
        family = fields.v() if tag >= 4 else 0
        key = fields.text()
        yield family, key, sequence, fields.text() if tag in (1, 5) else None
        sequence += 1
        left -= 1
    require(left == 0, f"{name}: a batch has another number of entries than it says")


def block_checksum(stored, compression):
    """XXH3 of the block, and its last byte mixed in."""
    library = ctypes.CDLL("libxxhash.so.0")
    library.XXH3_64bits.restype = ctypes.c_uint64
    library.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    low = library.XXH3_64bits(stored, len(stored)) & 0xFFFFFFFF
    return low ^ (compression * 0x6B9083D9 & 0xFFFFFFFF)


def read_block(data, offset, size, name):
    require(offset + size + 5 <= len(data), f"{name}: a block leads out of the file")
    stored, compression = data[offset:offset + size], data[offset + size]
    require(block_checksum(stored, compression) == u32(data, offset + size + 1),
            f"{name}: the checksum of the block at {offset} is wrong")
    if compression == 4:
        fields = Fields(stored, f"{name}: a block")
        plain_size = fields.v()
        return lz4_block(fields.rest(), plain_size)
    require(compression == 0, f"{name}: compression {compression} is not known")
    return stored


def entries_of(content):
    """The bytes of a block's entries, without its restarts."""
    require(len(content) >= 4, "a block is too short")
    end = len(content) - 4 - 4 * u32(content, len(content) - 4)
    require(end >= 0, "a block has more restarts than bytes")
    return Fields(content[:end], "a block")


def table_rows(data, name):
    """The rows of a table: (key, sequence, value or None)."""
    footer = data[-53:]
    require(len(footer) == 53 and u64(footer, 45) == 0x88E241B785F4CFF7, f"{name} is no table")
    require(u32(footer, 41) == 5 and footer[0] == 4, f"{name}: another format of tables")
    handles = Fields(footer[1:41], f"{name}: the footer")
    meta = handles.v(), handles.v()
    index = entries_of(read_block(data, handles.v(), handles.v(), name))
    read_block(data, *meta, name)
    while index.left():
        require(index.v() == 0, f"{name}: an entry of the index shares its key")
        index.text()
        block = entries_of(read_block(data, index.v(), index.v(), name))
        key = b""
        while block.left():
            shared, rest, value_size = block.v(), block.v(), block.v()
            require(shared <= len(key), f"{name}: a row shares more than there is")
            key = key[:shared] + block.take(rest)
            value = block.take(value_size)
            require(len(key) >= 8, f"{name}: a key is too short")
            suffix = u64(key, len(key) - 8)
            if suffix & 0xFF not in (DELETE, PUT):
                raise Damage(f"{name}: a row of kind {suffix & 0xFF}")
            yield key[:-8], suffix >> 8, value if suffix & 0xFF == PUT else None
