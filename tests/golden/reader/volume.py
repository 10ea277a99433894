# SPDX-License-Identifier: Apache-2.0
"""Rows and what they mean: the tree, and the content of files (FORMAT.md, Tables)."""

import hashlib
import os
import stat
import struct

from .basics import Cursor, VolumeError, crc32, name_hash, require
from .database_files import Database
from .documents import open_documents
from .records import (KIND_CHECKPOINT_PART, KIND_CHECKPOINT_ROOT, KIND_CHUNK, KIND_PATCH, Identity,
                      RecordHeader, Segment, open_record)
from .rocksdb import read_rows

TABLE_NAMES = ("inodes", "dentries", "chunks", "inlined", "xattrs", "segments", "orphans", "system")
ROOT_INODE = 1


def value_cursor(value, what):
    """FORMAT.md, Tables: every value begins with a version byte, 1."""
    cursor = Cursor(value, what)
    version = cursor.u8()
    require(version == 1, f"{what}: value version {version} is not known")
    return cursor


class Inode:
    def __init__(self, number, value):
        cursor = value_cursor(value, f"inode {number}")
        self.number = number
        (self.mode, self.uid, self.gid, self.links, self.flags, self.rdev, self.size,
         self.data_bytes, self.parent) = (cursor.varint() for _ in range(9))
        self.accessed, self.modified, self.changed, self.born = (
            (cursor.signed(), cursor.varint()) for _ in range(4))
        self.target = cursor.text()
        cursor.end()


class SegmentRow:
    def __init__(self, number, value):
        cursor = value_cursor(value, f"segment row {number}")
        self.committed_size, self.live_bytes, self.epoch = (cursor.varint() for _ in range(3))
        self.salt = cursor.take(16)
        cursor.end()


class Location:
    """FORMAT.md, Tables, "location": segment 0 stands for an inlined patch."""

    def __init__(self, cursor):
        self.segment = cursor.varint()
        self.offset, self.stored_size = (0, 0) if self.segment == 0 else (
            cursor.varint(), cursor.varint())


def read_version(cursor, what):
    """FORMAT.md, Tables, "version": in keys and identities one u64."""
    ordinal, place = cursor.varint(), cursor.varint()
    require(ordinal < 1 << 24 and place < 1 << 40, f"{what}: a version out of range")
    return ordinal << 40 | place


class Piece:
    """The base of a chunk, or a patch."""

    def __init__(self, offset, location, version, plain_size, cut_size, what):
        self.offset, self.location, self.version = offset, location, version
        self.plain_size, self.cut_size = plain_size, cut_size
        require(cut_size <= plain_size, f"{what}: cut by more than it has")
        self.valid_size = plain_size - cut_size


class ChunkRow:
    """FORMAT.md, Tables, "chunks value"."""

    def __init__(self, inode, index, value):
        self.inode, self.index = inode, index
        self.what = what = f"inode {inode}, chunk {index}"
        cursor = value_cursor(value, what)
        self.count, self.base, self.patches, self.lost_ranges = 1, None, [], []
        self.kind = cursor.u8()
        if self.kind in (0, 3):     # a hole, or lost chunks
            self.count = cursor.varint()
            require(self.count > 0, f"{what}: a row of no chunks")
        else:
            kind = self.kind
            if kind == 4:
                self.read_lost_ranges(cursor)
                kind = cursor.u8()
            require(kind in (1, 2), f"{what}: a row of kind {kind}")
            if kind == 2:
                location = Location(cursor)
                require(location.segment != 0, f"{what}: a base that is inlined")
                version = read_version(cursor, what)
                self.base = Piece(0, location, version, cursor.varint(), cursor.varint(), what)
            count = cursor.varint()
            require(count <= 32, f"{what}: more than 32 patches")
            for _ in range(count):
                offset, plain_size, cut_size = (cursor.varint() for _ in range(3))
                version = read_version(cursor, what)
                self.patches.append(Piece(offset, Location(cursor), version, plain_size, cut_size,
                                          what))
        cursor.end()

    def read_lost_ranges(self, cursor):
        count = cursor.varint()
        require(count > 0, f"{self.what}: no lost ranges")
        place = 0
        for index in range(count):
            gap, size = cursor.varint(), cursor.varint()
            require(size > 0 and (gap > 0 or index == 0), f"{self.what}: lost ranges")
            self.lost_ranges.append((place + gap, place + gap + size))
            place += gap + size

    def pieces(self):
        return ([self.base] if self.base else []) + self.patches


class CheckpointRow:
    def __init__(self, number, value):
        self.number = number
        self.what = f"checkpoint {number}"
        cursor = value_cursor(value, self.what)
        self.closed = cursor.varint()

        def piece():
            location = Location(cursor)
            version = read_version(cursor, self.what)
            return Piece(0, location, version, cursor.varint(), 0, self.what)

        self.root = piece()
        count = cursor.varint()
        require(count <= 65536, f"{self.what}: more than 65536 parts")
        self.parts = [piece() for _ in range(count)]
        cursor.end()


class Volume:
    def __init__(self, path, passphrase):
        self.path = path
        # FORMAT.md, Reading a volume, steps 1 to 3.
        self.superblock, self.keyring = open_documents(path, passphrase)
        self.volume_id = self.keyring.volume_id
        self.chunk_size = self.superblock["chunk_size_bytes"]
        self.database = Database(os.path.join(path, "db"), self.volume_id, self.keyring)
        self.tables = read_rows(self.database, TABLE_NAMES)
        self.read_system()
        self.inodes = {}
        for key, value in self.tables["inodes"].items():
            require(len(key) == 8, "inodes: a key of another size")
            number = int.from_bytes(key, "big")
            self.inodes[number] = Inode(number, value)
        self.segment_rows = {}
        for key, value in self.tables["segments"].items():
            require(len(key) == 8, "segments: a key of another size")
            number = int.from_bytes(key, "big")
            self.segment_rows[number] = SegmentRow(number, value)
        self.segments = {}
        self.read_chunks()
        self.read_tree()
        self.check_records()

    def read_system(self):
        """FORMAT.md, Tables, "system key"."""
        self.sessions, self.checkpoints, self.system, self.genuine = {}, {}, {}, {}
        for key, value in self.tables["system"].items():
            what = f"system row {key!r}"
            if key.startswith(b"session/"):
                cursor = value_cursor(value, what)
                salt = key[len(b"session/"):]
                require(len(salt) == 16, f"{what}: a salt of another size")
                self.sessions[salt] = (cursor.varint(), cursor.varint(), cursor.signed())
                cursor.end()
            elif key.startswith(b"genuine/"):
                # FORMAT.md, Format 2, "Records of older epochs".
                name = key[len(b"genuine/"):]
                require(len(name) == 20 and len(value) == 33 and value[0] == 1,
                        f"{what}: not a digest of a record")
                self.genuine[name] = value[1:]
            elif key.startswith(b"checkpoint/"):
                number = key[len(b"checkpoint/"):]
                require(len(number) == 8, f"{what}: a number of another size")
                number = int.from_bytes(number, "big")
                self.checkpoints[number] = CheckpointRow(number, value)
            elif key == b"name_hash_key":
                require(len(value) == 16, f"{what}: a key of another size")
                self.name_hash_key = value
            elif key in (b"next_inode", b"next_segment", b"next_session", b"inode_count",
                         b"data_bytes", b"keyring_generation", b"superblock_generation",
                         b"genuine"):
                cursor = value_cursor(value, what)
                self.system[key.decode()] = cursor.varint()
                cursor.end()
            else:
                # `scrub` and `rotation`: nothing that is read depends on them.
                require(key in (b"scrub", b"rotation"), f"{what}: not known")
        require(hasattr(self, "name_hash_key"), "system: name_hash_key is missing")
        generation = self.system.get("keyring_generation")
        require(generation is not None, "system: keyring_generation is missing")
        require(self.keyring.generation >= generation,
                f"keyring: rolled back, generation {self.keyring.generation} is older than "
                f"{generation} of the row")
        # FORMAT.md, Format 2, "The superblock's generation".
        generation = self.system.get("superblock_generation", 0)
        require(self.superblock["generation"] >= generation,
                f"superblock: rolled back, generation {self.superblock['generation']} is older than "
                f"{generation} of the row")

    def read_chunks(self):
        self.chunk_rows = {}        # inode -> rows by ascending index
        for key, value in sorted(self.tables["chunks"].items()):
            require(len(key) == 16, "chunks: a key of another size")
            inode, index = struct.unpack(">QQ", key)
            rows = self.chunk_rows.setdefault(inode, [])
            require(not rows or rows[-1].index + rows[-1].count <= index,
                    f"inode {inode}, chunk {index}: damaged, two rows cover it")
            rows.append(ChunkRow(inode, index, value))

    def read_tree(self):
        """FORMAT.md, Reading a volume, step 4: dentries from inode 1 on."""
        self.children = {}
        entries = {}
        for key, value in self.tables["dentries"].items():
            require(17 <= len(key) <= 16 + 255, "dentries: a key of another size")
            parent, own_hash, name = *struct.unpack(">QQ", key[:16]), key[16:]
            what = f"dentry {name!r} of inode {parent}"
            require(own_hash == name_hash(self.name_hash_key, name), f"{what}: name hash is wrong")
            require(b"/" not in name and b"\0" not in name and name not in (b".", b".."),
                    f"{what}: not a name")
            cursor = value_cursor(value, what)
            entry_type, number = cursor.u8(), cursor.varint()
            cursor.end()
            require(number in self.inodes, f"{what}: names inode {number}, which is not there")
            # DT_* is the type of the mode, shifted (dirent.h, IFTODT).
            require(entry_type == stat.S_IFMT(self.inodes[number].mode) >> 12,
                    f"{what}: another type than its inode")
            entries.setdefault(parent, []).append((name, self.inodes[number]))
        require(ROOT_INODE in self.inodes, "inode 1 is missing")
        require(stat.S_ISDIR(self.inodes[ROOT_INODE].mode), "inode 1 is no directory")
        self.paths = {}
        links, seen = {}, {ROOT_INODE}
        queue = [(b"", ROOT_INODE)]
        while queue:
            prefix, number = queue.pop()
            children = entries.get(number, [])
            # The size of a directory is the number of its entries.
            require(self.inodes[number].size == len(children),
                    f"inode {number}: the directory has {len(children)} entries")
            for name, inode in children:
                path = prefix + name
                self.paths[path] = inode
                links[inode.number] = links.get(inode.number, 0) + 1
                if stat.S_ISDIR(inode.mode):
                    require(inode.parent == number and inode.number not in seen,
                            f"inode {inode.number}: a directory in two places")
                    seen.add(inode.number)
                    queue.append((path + b"/", inode.number))
        for number, count in links.items():
            inode = self.inodes[number]
            require(stat.S_ISDIR(inode.mode) or inode.links == count,
                    f"inode {number}: has {count} names, but a link count of {inode.links}")
        for parent in entries:
            require(parent in seen, f"dentries of inode {parent}, which has no place in the tree")

    def check_records(self):
        """FORMAT.md, Tables, "Invariants": where records lie, and live bytes."""
        used = {number: [] for number in self.segment_rows}
        owners = [(row.what, row.pieces()) for rows in self.chunk_rows.values() for row in rows]
        owners += [(row.what, [row.root] + row.parts) for row in self.checkpoints.values()]
        versions = set()
        for what, pieces in owners:
            for piece in pieces:
                require(piece.version not in versions, f"{what}: a version that is used twice")
                versions.add(piece.version)
                location = piece.location
                if location.segment == 0:
                    continue
                require(location.segment in used, f"{what}: in segment {location.segment}, "
                                                  "which has no row")
                used[location.segment].append((location.offset, location.stored_size, what))
        for number, row in self.segment_rows.items():
            require(row.salt in self.sessions, f"segment {number}: of an unknown session")
            end = 64
            for offset, size, what in sorted(used[number]):
                require(offset >= end, f"{what}: its record overlaps another")
                end = offset + size
            require(end <= max(row.committed_size, 64),
                    f"segment {number}: a record above the committed size")
            live = sum(size for _, size, _ in used[number])
            require(live == row.live_bytes, f"segment {number}: {live} live bytes, "
                                            f"but its row says {row.live_bytes}")
            self.segment(number)
        for name in os.listdir(os.path.join(self.path, "segments")):
            self.check_segment_name(name)

    def check_segment_name(self, name):
        """FORMAT.md, Segment: one that no row names, of a session that no row knows."""
        if not name.endswith(".seg") or not name[:-4].isdigit():
            return
        if int(name[:-4]) in self.segment_rows:
            return
        with open(os.path.join(self.path, "segments", name), "rb") as file:
            head = file.read(64)
        whole = head[:4] == b"NSEG" and head[52:56] == struct.pack("<I", crc32(head[:52]))
        if whole:
            require(head[8:24] == self.volume_id and head[32:48] in self.sessions,
                    f"segments/{name}: of an unknown session, so db/ was put back")

    def segment(self, number):
        if number not in self.segments:
            self.segments[number] = Segment(os.path.join(self.path, "segments"), number,
                                            self.volume_id, self.segment_rows[number])
        return self.segments[number]

    def open_piece(self, piece, identity):
        """FORMAT.md, Reading a volume, step 5."""
        record, what = self.segment(piece.location.segment).record(
            piece.location.offset, piece.location.stored_size)
        header = RecordHeader(record, what)
        keys = self.keyring
        if keys.formats[keys.newest_epoch] == 2 and header.epoch < self.system.get("genuine", 0):
            name = header.salt + struct.pack(">I", header.counter)
            require(self.genuine.get(name) == hashlib.sha256(record).digest(),
                    f"{what}: tampered with, not there when the rotation of keys began")
        return open_record(record, self.volume_id, self.keyring, identity, piece.plain_size, what)

    def piece_bytes(self, row, piece):
        if piece.location.segment == 0:
            # An inlined patch is a row of the table inlined.
            key = struct.pack(">QQQI", row.inode, row.index, piece.version, piece.offset)
            plain = self.tables["inlined"].get(key)
            require(plain is not None, f"{row.what}: an inlined patch is missing")
            require(len(plain) == piece.plain_size, f"{row.what}: an inlined patch's size")
            return plain
        kind = KIND_CHUNK if piece is row.base else KIND_PATCH
        return self.open_piece(piece, Identity(row.inode, row.index, piece.version, piece.offset,
                                               kind))

    def chunk_bytes(self, row, size):
        """FORMAT.md, Tables, "Invariants": the content of a chunk, its first `size` bytes."""
        require(row.kind != 3, f"{row.what}: lost, a repair has stated it")
        require(not any(start < size for start, _ in row.lost_ranges),
                f"{row.what}: partly lost, a repair has stated it")
        content = bytearray(self.chunk_size)
        for piece in row.pieces():
            end = piece.offset + piece.valid_size
            require(end <= self.chunk_size, f"{row.what}: reaches beyond its chunk")
            content[piece.offset:end] = self.piece_bytes(row, piece)[:piece.valid_size]
        return bytes(content[:size])

    def file_pieces(self, inode):
        """Gives a file's bytes, a chunk at a time."""
        require(stat.S_ISREG(inode.mode), "not a file")
        count = -(-inode.size // self.chunk_size)
        rows = iter(self.chunk_rows.get(inode.number, []))
        row, index = None, 0
        for index in range(count):
            if row is None or row.index + row.count <= index:
                row = next(rows, None)
            # Every chunk below the size is covered by exactly one row.
            require(row and row.index <= index < row.index + row.count and
                    (row.index == index or row.kind in (0, 3)),
                    f"inode {inode.number}, chunk {index}: damaged, no row covers it")
            size = min(self.chunk_size, inode.size - index * self.chunk_size)
            yield bytes(size) if row.kind == 0 else self.chunk_bytes(row, size)

    def extended_attributes(self, inode):
        prefix = inode.number.to_bytes(8, "big")
        found = {}
        for key, value in self.tables["xattrs"].items():
            if key[:8] == prefix:
                cursor = value_cursor(value, f"xattr {key[8:]!r} of inode {inode.number}")
                found[key[8:]] = cursor.take(cursor.left())
        return found


def open_volume(path, passphrase_file):
    """FORMAT.md, keyring: of a file that holds one, a single newline at the end is no part."""
    try:
        with open(passphrase_file, "rb") as file:
            passphrase = file.read()
    except OSError as error:
        raise VolumeError(f"{passphrase_file}: {error.strerror}") from None
    return Volume(path, passphrase[:-1] if passphrase.endswith(b"\n") else passphrase)


def open_checkpoint(volume, row):
    """FORMAT.md, Checkpoint: opens root and parts, gives the root's bytes and the stream."""
    root = volume.open_piece(row.root, Identity(row.number, 0, row.root.version, 0,
                                                KIND_CHECKPOINT_ROOT))
    parts = [volume.open_piece(part, Identity(row.number, place, part.version, 0,
                                              KIND_CHECKPOINT_PART))
             for place, part in enumerate(row.parts)]
    return root, b"".join(parts)
