# SPDX-License-Identifier: Apache-2.0
"""Records, and the tree that the tables make of them. FORMAT: "Record", "Segment", "Tables"."""
import base64
import hashlib
import os
import stat
import struct
import zlib
from collections import namedtuple

from .binary import Damage, Fields, require, u32, u64, value_fields
from .codecs import decode_stream
from .database import Database
from .keyring import Keys
from .suites import open_suite

KIND_CHUNK, KIND_PATCH = 1, 2
HOLE, WITHOUT_BASE, WITH_BASE, LOST, LOST_RANGES = range(5)
RECORD_HEADER, SEGMENT_HEADER, BODY_HEADER = 40, 64, 44
ROOT = 1

Inode = namedtuple("Inode", "number mode uid gid links flags rdev size data parent "
                            "accessed modified changed born target")
Piece = namedtuple("Piece", "offset plain_size valid_size version location")


def open_record(record, volume_id, keys, what):
    """A whole record's (identity, plain bytes). keys: session(epoch, salt) gives suite and key."""
    require(len(record) >= RECORD_HEADER + BODY_HEADER and record[:8] == b"NREC\1\0\0\0",
            f"{what} is no record")
    require(u32(record, 8) == len(record), f"{what} has another size than its row says")
    require(zlib.crc32(record[:36] + record[40:]) == u32(record, 36), f"{what}: the CRC is wrong")
    suite, key = keys.session(u32(record, 12), record[16:32])
    nonce = struct.pack("<4xQ", u32(record, 32))
    body = open_suite(suite, key, nonce, volume_id + record[:36],
                      record[40:-suite.tag_size], record[-suite.tag_size:], what)
    return open_body(body, what)


def open_body(body, what):
    """FORMAT: "The body, once decrypted"."""
    codec, plain_size, stream_size = body[0], u32(body, 4), u32(body, 8)
    identity, stream = body[12:44], body[44:44 + stream_size]
    require(len(stream) == stream_size and not any(body[1:4] + body[44 + stream_size:]),
            f"{what}: the body is not valid")
    return identity, decode_stream(codec, stream, plain_size)


def siphash_2_4(key, message):
    """Aumasson and Bernstein, 2012."""
    mask = (1 << 64) - 1
    k0, k1 = u64(key), u64(key, 8)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261,
         k1 ^ 0x7465646279746573]

    def rotate(value, count):
        return (value << count | value >> (64 - count)) & mask

    def rounds(count):
        for _ in range(count):
            for a, b, c, d, first, second in ((0, 1, 2, 3, 13, 16), (2, 1, 0, 3, 17, 21)):
                v[a] = (v[a] + v[b]) & mask
                v[b] = rotate(v[b], first) ^ v[a]
                v[a] = rotate(v[a], 32)
                v[c] = (v[c] + v[d]) & mask
                v[d] = rotate(v[d], second) ^ v[c]

    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 0xFF])
    for at in range(0, len(padded), 8):
        v[3] ^= u64(padded, at)
        rounds(2)
        v[0] ^= u64(padded, at)
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def name_hash(key, name):
    value = siphash_2_4(key, name) & ((1 << 63) - 1)
    return value + 3 if value < 3 else value


class Volume:
    """A volume that is not mounted, opened for reading."""

    def __init__(self, path, passphrase):
        self.path = path
        self.keys = Keys(path, passphrase)
        self.chunk_size = self.keys.superblock["chunk_size_bytes"]
        self.rows = Database(path, self.keys).rows
        self.name_hash_key = self.rows["system"].get(b"name_hash_key", b"")
        require(len(self.name_hash_key) == 16, "the row name_hash_key is not there")
        newest = value_fields(self.rows["system"].get(b"keyring_generation", b"\1\0"), "a row").v()
        require(self.keys.keyring["generation"] >= newest, "an older keyring was put back")
        self.children, self.chunks, self.xattrs = {}, {}, {}
        for key, value in self.rows["dentries"].items():
            parent, hashed, name = *struct.unpack_from(">QQ", key), key[16:]
            require(name and name_hash(self.name_hash_key, name) == hashed,
                    f"the entry {name!r} lies under another name's hash")
            fields = value_fields(value, "an entry")
            self.children.setdefault(parent, {})[name] = fields.u8(), fields.v()
            fields.end()
        for key, value in self.rows["chunks"].items():
            inode, index = struct.unpack(">QQ", key)
            self.chunks.setdefault(inode, {})[index] = value
        for key, value in self.rows["xattrs"].items():
            attributes = self.xattrs.setdefault(struct.unpack_from(">Q", key)[0], {})
            attributes[key[8:]] = value_fields(value, "an attribute").rest()
        self.segments = {}

    # The tree.

    def inode(self, number):
        value = self.rows["inodes"].get(struct.pack(">Q", number))
        require(value is not None, f"inode {number} is not there")
        fields = value_fields(value, f"inode {number}")
        numbers = [fields.v() for _ in range(9)]
        times = [fields.s() * 10**9 + fields.v() for _ in range(4)]
        target = fields.text()
        fields.end()
        return Inode(number, *numbers, *times, target)

    def walk(self):
        """(path, inode) of everything but the root, by the bytes of the paths."""
        waiting = [(b"", ROOT)]
        found = []
        while waiting:
            folder, number = waiting.pop()
            for name, (entry_type, child) in self.children.get(number, {}).items():
                inode = self.inode(child)
                require(entry_type == stat.S_IFMT(inode.mode) >> 12,
                        f"the entry {folder + name!r} has another type than its inode")
                is_directory = stat.S_ISDIR(inode.mode)
                found.append((folder + name + (b"/" if is_directory else b""), inode))
                if is_directory:
                    waiting.append((folder + name + b"/", child))
        return sorted(found, key=lambda each: each[0])

    def find(self, path):
        number = ROOT
        for name in path.strip(b"/").split(b"/"):
            if number not in self.children or name not in self.children[number]:
                raise Damage(f"{os.fsdecode(path)}: there is no such file")
            number = self.children[number][name][1]
        return self.inode(number)

    def describe(self, path, inode):
        kind = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}.get(
            stat.S_IFMT(inode.mode), "special")
        said = {"path": os.fsdecode(path), "kind": kind, "mode": f"{stat.S_IMODE(inode.mode):04o}",
                "modified": inode.modified}
        if kind != "directory":
            said["links"] = inode.links
        if kind == "file":
            said["size"] = inode.size
            said["sha256"] = hashlib.sha256(self.read(inode)).hexdigest()
        elif kind == "link":
            said["target"] = os.fsdecode(inode.target)
        elif kind == "special":
            said["rdev"] = inode.rdev
        if inode.number in self.xattrs:
            said["xattrs"] = {os.fsdecode(name): base64.b64encode(value).decode()
                              for name, value in sorted(self.xattrs[inode.number].items())}
        return said

    # Contents. FORMAT: "Tables", "Invariants".

    def read(self, inode):
        if stat.S_ISLNK(inode.mode):
            return inode.target
        require(stat.S_ISREG(inode.mode), f"inode {inode.number} has no content")
        content = bytearray()
        count, index = -(-inode.size // self.chunk_size), 0
        chunks = self.chunks.get(inode.number, {})
        require(all(row < count for row in chunks), f"inode {inode.number} has chunks past its end")
        while index < count:
            require(index in chunks, f"inode {inode.number}: chunk {index} has no row")
            fields = value_fields(chunks[index], f"inode {inode.number}, chunk {index}")
            kind = fields.u8()
            require(kind not in (LOST, LOST_RANGES), f"inode {inode.number}: bytes are lost")
            if kind == HOLE:
                run = fields.v()
                require(0 < run <= count - index, f"inode {inode.number}: a hole is too long")
                content += bytes(run * self.chunk_size)
                index += run
            else:
                content += self.read_chunk(inode.number, index, kind, fields)
                index += 1
            fields.end()
        return bytes(content[:inode.size])

    @staticmethod
    def read_version(fields):
        ordinal, place = fields.v(), fields.v()
        require(ordinal < 1 << 24 and place < 1 << 40, "a version is too large")
        return ordinal << 40 | place

    @staticmethod
    def read_location(fields):
        segment = fields.v()
        return (segment, fields.v(), fields.v()) if segment else None

    def read_pieces(self, kind, fields):
        """Base and patches, in order."""
        require(kind in (WITHOUT_BASE, WITH_BASE), f"{fields.what}: kind {kind} is not known")
        pieces = []
        if kind == WITH_BASE:
            location, version = self.read_location(fields), self.read_version(fields)
            size, cut = fields.v(), fields.v()
            pieces.append(Piece(0, size, size - cut, version, location))
        count = fields.v()
        require(count <= 32, f"{fields.what} has too many patches")
        for _ in range(count):
            offset, size, cut = fields.v(), fields.v(), fields.v()
            version = self.read_version(fields)
            pieces.append(Piece(offset, size, size - cut, version, self.read_location(fields)))
        return pieces

    def read_chunk(self, inode, index, kind, fields):
        """FORMAT: "The content of a chunk"."""
        chunk = bytearray(self.chunk_size)
        for number, piece in enumerate(self.read_pieces(kind, fields)):
            require(0 <= piece.valid_size and piece.offset + piece.plain_size <= self.chunk_size,
                    f"{fields.what} has a piece that does not fit")
            record_kind = KIND_CHUNK if kind == WITH_BASE and number == 0 else KIND_PATCH
            plain = self.read_piece(inode, index, record_kind, piece, fields.what)
            require(len(plain) == piece.plain_size, f"{fields.what}: a piece has another size")
            chunk[piece.offset:piece.offset + piece.valid_size] = plain[:piece.valid_size]
        return chunk

    def read_piece(self, inode, index, record_kind, piece, what):
        if piece.location is None:
            key = struct.pack(">QQQI", inode, index, piece.version, piece.offset)
            require(key in self.rows["inlined"], f"{what}: an inlined patch is not there")
            return self.rows["inlined"][key]
        segment, offset, stored_size = piece.location
        file, committed, epoch = self.segment(segment)
        require(SEGMENT_HEADER <= offset and offset + stored_size <= committed,
                f"{what} names a record outside its segment")
        record = os.pread(file, stored_size, offset)
        require(len(record) == stored_size, f"segment {segment} was cut")
        require(u32(record, 12) == epoch, f"{what}: the record is of another epoch than its segment")
        found, plain = open_record(record, self.keys.volume_id, self.keys, what)
        wanted = struct.pack("<QQQIB3x", inode, index, piece.version, piece.offset, record_kind)
        require(found == wanted, f"{what}: the record is another one's")
        return plain

    def segment(self, number):
        """FORMAT: "Segment". Its file, committed size and epoch; the header agrees with the row."""
        if number not in self.segments:
            value = self.rows["segments"].get(struct.pack(">Q", number))
            require(value is not None, f"segment {number} has no row")
            fields = value_fields(value, f"the row of segment {number}")
            committed, _, epoch, salt = fields.v(), fields.v(), fields.v(), fields.take(16)
            fields.end()
            self.segments[number] = self.open_segment(number, epoch, salt), committed, epoch
        return self.segments[number]

    def open_segment(self, number, epoch, salt):
        path = os.path.join(self.path, "segments", f"{number:012}.seg")
        wanted = (b"NSEG\1\0\0\0" + self.keys.volume_id + struct.pack("<Q", number) + salt +
                  struct.pack("<I", epoch))
        for name in (path + ".new", path):  # a backup brings .new, which counts if the row says so
            if not os.path.exists(name):
                continue
            file = os.open(name, os.O_RDONLY)
            header = os.pread(file, SEGMENT_HEADER, 0)
            if header[:52] == wanted:
                require(zlib.crc32(wanted) == u32(header, 52) and not any(header[56:]),
                        f"segment {number}: the header is damaged")
                return file
            os.close(file)
        raise Damage(f"segment {number} is missing, or another one than its row says")
