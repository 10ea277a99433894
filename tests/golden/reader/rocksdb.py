# SPDX-License-Identifier: Apache-2.0
"""What RocksDB wrote into the files of db/ (FORMAT.md, RocksDB's files)."""

import struct

from .basics import Cursor, masked_crc32c, require
from .codecs import decode_lz4_block
from .xxh3 import xxh3_64

BLOCK = 32768
WHOLE, FIRST, MIDDLE, LAST = 1, 2, 3, 4
PUT, DELETE = 1, 0


def log_records(content, what):
    """FORMAT.md, RocksDB's files, "Logs and manifests": the records of a stream of blocks."""
    place, parts = 0, None
    while place < len(content):
        left_in_block = BLOCK - place % BLOCK
        if left_in_block < 7:
            rest = content[place:place + left_in_block]
            require(not any(rest), f"{what}: no zeros at the end of a block")
            place += len(rest)
            continue
        if len(content) - place < 7:
            return  # cut off by the end: never confirmed
        crc, size, kind = struct.unpack_from("<IHB", content, place)
        require(size + 7 <= left_in_block, f"{what}: a fragment reaches beyond its block")
        if place + 7 + size > len(content):
            return
        fragment = content[place + 7:place + 7 + size]
        require(crc == masked_crc32c(content[place + 6:place + 7 + size]),
                f"{what}: CRC of the fragment at {place} is wrong")
        place += 7 + size
        if kind in (WHOLE, FIRST):
            require(parts is None, f"{what}: a record is not finished")
            parts = [fragment]
        else:
            require(kind in (MIDDLE, LAST), f"{what}: a fragment of kind {kind}")
            require(parts is not None, f"{what}: a record has no beginning")
            parts.append(fragment)
        if kind in (WHOLE, LAST):
            yield b"".join(parts)
            parts = None


class Family:
    def __init__(self, number, name):
        self.number, self.name = number, name
        self.log_number = 0
        self.tables = {}        # file number -> (file size, smallest key, largest key)


class Manifest:
    """FORMAT.md, RocksDB's files, "A record of a manifest"."""

    def __init__(self, content, what):
        self.what = what
        self.families = {0: Family(0, "default")}
        self.comparators = set()
        group = []
        for record in log_records(content, what):
            changes, remaining = self.parse_edit(record)
            group.append(changes)
            # Tag 300: edits that follow in this group; all edits of a group count, or none.
            if not remaining:
                for edit in group:
                    self.apply(*edit)
                group = []

    def parse_edit(self, record):
        cursor = Cursor(record, self.what)
        number, remaining, changes = 0, 0, []
        while cursor.left():
            tag = cursor.varint()
            if tag == 1:
                comparator = cursor.text()
                require(comparator == b"leveldb.BytewiseComparator",
                        f"{self.what}: another comparator")
            elif tag == 2:
                changes.append(("log", cursor.varint()))
            elif tag in (3, 4, 9, 10, 203):
                cursor.varint()
            elif tag == 5:
                cursor.varint()
                cursor.text()
            elif tag == 6:
                level, table = cursor.varint(), cursor.varint()
                changes.append(("gone", level, table))
            elif tag == 103:
                level, table, size = cursor.varint(), cursor.varint(), cursor.varint()
                smallest, largest = cursor.text(), cursor.text()
                cursor.varint()
                cursor.varint()
                while (pair := cursor.varint()) != 1:
                    require(not pair & 1 << 6, f"{self.what}: unknown field {pair} of a table")
                    cursor.text()
                changes.append(("new", level, table, size, smallest, largest))
            elif tag == 200:
                number = cursor.varint()
            elif tag == 201:
                changes.append(("made", cursor.text().decode("utf-8", "replace")))
            elif tag == 202:
                changes.append(("dropped",))
            elif tag == 300:
                remaining = cursor.varint()
            else:
                require(tag & 1 << 13, f"{self.what}: unknown field {tag}")
                cursor.text()
        return (number, changes), remaining

    def apply(self, number, changes):
        for change in changes:
            if change[0] == "made":
                require(number not in self.families, f"{self.what}: a family is made twice")
                self.families[number] = Family(number, change[1])
        require(number in self.families, f"{self.what}: family {number} is not known")
        family = self.families[number]
        for change in changes:
            if change[0] == "log":
                family.log_number = max(family.log_number, change[1])
            elif change[0] == "gone":
                require(change[1:3] in family.tables, f"{self.what}: an unknown table is gone")
                del family.tables[change[1:3]]
            elif change[0] == "dropped":
                del self.families[number]
        # A table may move between levels in one edit: what is gone goes before what is new.
        for change in changes:
            if change[0] == "new":
                family.tables[change[1:3]] = change[3:]


def batch_entries(record, what):
    """FORMAT.md, RocksDB's files, "A record of a log": (sequence, family, type, key, value)."""
    cursor = Cursor(record, what)
    sequence, count = cursor.u64(), cursor.u32()
    found = 0
    while cursor.left():
        tag = cursor.u8()
        if tag == 3:
            cursor.text()
            continue
        if tag == 13:
            continue
        require(tag in (0, 1, 4, 5), f"{what}: an entry of unknown tag {tag}")
        family = cursor.varint() if tag in (4, 5) else 0
        key = cursor.text()
        is_put = tag in (1, 5)
        yield sequence + found, family, PUT if is_put else DELETE, key, (
            cursor.text() if is_put else b"")
        found += 1
    require(found == count, f"{what}: a batch has another number of entries")


class Table:
    """FORMAT.md, RocksDB's files, "A table"."""

    def __init__(self, content, what):
        self.content, self.what = content, what
        require(len(content) >= 53, f"{what}: too short for a table")
        footer = Cursor(content[-53:], f"{what}, footer")
        checksum_kind = footer.u8()
        self.meta_index = self.handle(footer)
        self.index = self.handle(footer)
        footer.reserved(41 - footer.place)
        version, magic = footer.u32(), footer.u64()
        require(magic == 0x88E241B785F4CFF7, f"{what}: not a block-based table")
        require(version == 5 and checksum_kind == 4, f"{what}: another format version or checksum")

    def handle(self, cursor):
        offset, size = cursor.varint(), cursor.varint()
        require(offset + size + 5 <= len(self.content) - 53, f"{self.what}: a handle leads outside")
        return offset, size

    def block(self, handle):
        offset, size = handle
        what = f"{self.what}, block at {offset}"
        stored = self.content[offset:offset + size]
        compression, checksum = struct.unpack_from("<BI", self.content, offset + size)
        wanted = (xxh3_64(stored) ^ compression * 0x6B9083D9) & 0xFFFFFFFF
        require(checksum == wanted, f"{what}: checksum is wrong")
        if compression == 4:
            cursor = Cursor(stored, what)
            plain_size = cursor.varint()
            return decode_lz4_block(stored[cursor.place:], plain_size)
        require(compression == 0, f"{what}: compression {compression} is not known")
        return stored

    def entries(self, block, has_value_size, what):
        require(len(block) >= 4, f"{what}: too short for a block")
        (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
        end = len(block) - 4 - 4 * restarts
        require(end >= 0, f"{what}: too many restarts")
        cursor = Cursor(block[:end], what)
        key = b""
        while cursor.left():
            shared, rest = cursor.varint(), cursor.varint()
            value_size = cursor.varint() if has_value_size else None
            require(shared <= len(key), f"{what}: a key shares more than there is")
            key = key[:shared] + cursor.take(rest)
            if has_value_size:
                yield key, cursor.take(value_size)
            else:
                yield key, self.handle(cursor)

    def rows(self):
        """(user's key, sequence, type, value) of every entry, in order."""
        what = f"{self.what}, meta index"
        for _, handle in self.entries(self.block(self.meta_index), True, what):
            cursor = Cursor(handle, what)
            self.block(self.handle(cursor))
            cursor.end()
        previous = None
        what = f"{self.what}, data block"
        for _, handle in self.entries(self.block(self.index), False, f"{self.what}, index"):
            for key, value in self.entries(self.block(handle), True, what):
                require(len(key) >= 8, f"{what}: a key without sequence")
                user_key = key[:-8]
                sequence_and_type = int.from_bytes(key[-8:], "little")
                order = (user_key, -sequence_and_type)
                require(previous is None or previous < order, f"{what}: keys do not ascend")
                previous = order
                kind = sequence_and_type & 0xFF
                require(kind in (PUT, DELETE), f"{what}: an entry of type {kind}")
                yield user_key, sequence_and_type >> 8, kind, value


def read_rows(database, table_names):
    """FORMAT.md, Reading a volume, step 3: the rows of each table of section "Tables"."""
    manifest = Manifest(database.manifest.content, f"db/{database.manifest.name}")
    newest = {number: {} for number in manifest.families}   # key -> (sequence, type, value)

    def note(number, key, sequence, kind, value, what):
        known = newest[number].get(key)
        if known is None or known[0] < sequence:
            newest[number][key] = (sequence, kind, value)
        else:
            require(known[0] != sequence or known[1:] == (kind, value),
                    f"{what}: two entries of one sequence")

    for number, family in sorted(manifest.families.items()):
        for (_, table), (size, smallest, largest) in sorted(family.tables.items()):
            what = f"db/{table:06d}.sst"
            content = database.table(table)
            require(len(content) == size, f"{what}: has another size than the manifest says")
            for key, sequence, kind, value in Table(content, what).rows():
                require(smallest[:-8] <= key <= largest[:-8],
                        f"{what}: a key outside of what the manifest says")
                note(number, key, sequence, kind, value, what)
    logs = database.logs()
    # FORMAT.md, Files under db/: the log that the manifest asks for, or one that stands in for it.
    wanted = min(family.log_number for family in manifest.families.values())
    require(database.newest_log >= wanted or database.has_stand_in,
            f"db/: no log from number {wanted} on is there")
    for log_number, log in logs:
        what = f"db/{log.name}"
        for record in log_records(log.content, what):
            for sequence, number, kind, key, value in batch_entries(record, what):
                # An entry counts where the log's number is not below the family's log number.
                if number in newest and log_number >= manifest.families[number].log_number:
                    note(number, key, sequence, kind, value, what)
    tables = {}
    for number, family in manifest.families.items():
        rows = {key: value for key, (_, kind, value) in newest[number].items() if kind == PUT}
        if family.name == "default":
            require(not rows, "db: the family default is not empty")
        elif family.name in table_names:
            tables[family.name] = rows
        else:
            require(False, f"db: unknown table {family.name}")
    missing = [name for name in table_names if name not in tables]
    require(not missing, f"db: tables are missing: {', '.join(missing)}")
    return tables
