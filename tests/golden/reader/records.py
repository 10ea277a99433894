# SPDX-License-Identifier: Apache-2.0
"""Records and segments (FORMAT.md, Record; Segment)."""

import os
import struct

from .basics import Cursor, VolumeError, crc32, require
from .codecs import decode
from .secrets_and_suites import open_sealed, write_session_key

KIND_CHUNK, KIND_PATCH, KIND_CHECKPOINT_PART, KIND_CHECKPOINT_ROOT = 1, 2, 3, 4


class RecordHeader:
    """FORMAT.md, Record, the first table."""

    def __init__(self, record, what):
        cursor = Cursor(record, what)
        require(cursor.take(4) == b"NREC", f"{what}: no record is there")
        version = cursor.u8()
        require(version == 1, f"{what}: record version {version} is not known")
        cursor.reserved(3)
        self.stored_size = cursor.u32()
        self.epoch = cursor.u32()
        self.salt = cursor.take(16)
        self.counter = cursor.u32()
        self.crc = cursor.u32()


class Identity:
    """FORMAT.md, Record, "Identity"."""

    def __init__(self, inode, chunk_index, version, offset, kind):
        self.fields = (inode, chunk_index, version, offset, kind)

    def packed(self):
        return struct.pack("<QQQIB3x", *self.fields)


def open_record(record, volume_id, keys, identity, plain_size, what):
    """Gives the plain bytes of a record; `keys.epoch(number)` gives (suite, epoch key)."""
    header = RecordHeader(record, what)
    require(header.stored_size == len(record), f"{what}: another stored size")
    require(header.crc == crc32(record[:36], record[40:]), f"{what}: CRC is wrong")
    suite, epoch_key = keys.epoch(header.epoch, what)
    key = write_session_key(epoch_key, header.salt, suite)
    # FORMAT.md, Record: nonce of 12 bytes; additional data: volume id, header bytes 0..35.
    nonce = bytes(4) + struct.pack("<Q", header.counter)
    require(len(record) >= 40 + 44 + suite.tag_size, f"{what}: too short")
    sealed, tag = record[40:-suite.tag_size], record[-suite.tag_size:]
    body = open_sealed(suite, key, nonce, sealed, tag, volume_id + record[:36], what)
    return open_body(body, identity, plain_size, what)


def open_body(body, identity, plain_size, what):
    """FORMAT.md, Record, "The body, once decrypted"."""
    cursor = Cursor(body, what)
    codec = cursor.u8()
    cursor.reserved(3)
    own_plain_size, stream_size = cursor.u32(), cursor.u32()
    require(cursor.take(32) == identity.packed(), f"{what}: tampered with, of another identity")
    require(plain_size in (None, own_plain_size), f"{what}: tampered with, another plain size")
    stream = cursor.take(stream_size)
    # FORMAT.md, Record, "Padding": a reader only checks that zeros follow the stream.
    cursor.reserved(cursor.left())
    try:
        return decode(codec, stream, own_plain_size)
    except VolumeError as error:
        raise VolumeError(f"{what}: {error}") from None


class Segment:
    """FORMAT.md, Segment."""

    def __init__(self, folder, number, volume_id, row):
        self.number = number
        name = f"{number:012d}.seg"
        self.what = f"segments/{name}"
        path = None
        # A backup's `.seg.new` counts if it has what the row says and the segment does not.
        for candidate in (name, name + ".new"):
            candidate_path = os.path.join(folder, candidate)
            if not os.path.exists(candidate_path):
                continue
            with open(candidate_path, "rb") as file:
                head = file.read(64)
            fits = head[32:48] == row.salt and os.path.getsize(candidate_path) >= row.committed_size
            if path is None or fits:
                path, self.what = candidate_path, f"segments/{candidate}"
            if fits:
                break
        require(path, f"{self.what}: missing")
        with open(path, "rb") as file:
            self.data = file.read()
        cursor = Cursor(self.data, self.what)
        require(cursor.take(4) == b"NSEG", f"{self.what}: no segment")
        version = cursor.u8()
        require(version == 1, f"{self.what}: segment version {version} is not known")
        cursor.reserved(3)
        own_volume_id, own_number = cursor.take(16), cursor.u64()
        salt, epoch, crc = cursor.take(16), cursor.u32(), cursor.u32()
        require(crc == crc32(self.data[:52]), f"{self.what}: CRC of the header is wrong")
        cursor.reserved(8)
        require(own_volume_id == volume_id, f"{self.what}: of another volume")
        require(own_number == number, f"{self.what}: has number {own_number}")
        require(salt == row.salt and epoch == row.epoch,
                f"{self.what}: of another session or epoch than its row says")
        require(len(self.data) >= row.committed_size, f"{self.what}: shorter than was committed")
        self.row = row

    def record(self, offset, stored_size):
        what = f"{self.what}, record at {offset}"
        require(64 <= offset and offset + stored_size <= self.row.committed_size,
                f"{what}: not below the committed size")
        record = self.data[offset:offset + stored_size]
        # FORMAT.md, Segment: all records of a segment are of its epoch.
        require(RecordHeader(record, what).epoch == self.row.epoch, f"{what}: of another epoch")
        return record, what
