# SPDX-License-Identifier: Apache-2.0
"""Bytes of a volume that lies in a folder: where they are (docs/FORMAT.md), and how to change them.

Nothing here has a key. Whoever changes bytes and puts the checksum right with seal_…() does what
anybody could do who can write to the folder.
"""
import json
import os
import shutil
import struct
import zlib
from typing import NamedTuple

SEGMENT_HEADER_SIZE = 64
RECORD_HEADER_SIZE, RECORD_CRC_AT = 40, 36
FILE_HEADER_SIZE, FILE_CRC_AT = 64, 60
FILE_SALT = slice(32, 48)
FRAME_HEADER_SIZE, FRAME_CRC_AT, FRAME_TAG_SIZE = 32, 28, 16
PAGE_SIZE = 4096


class Record(NamedTuple):
    file: str
    offset: int
    size: int

    def __str__(self):
        return f"{self.file} offset {self.offset}"


class Frame(NamedTuple):
    offset: int
    size: int  # with header and tag
    synced_up_to: int


def segment_file(number):
    return f"segments/{number:012}.seg"


class VolumeBytes:
    """records: the file's name in the volume -> its records, in the order of its bytes.
    specimens: the sound volumes by name, from which a defect may take what it needs.
    """

    def __init__(self, path, records, specimens=None):
        self.path = path
        self.records = records
        self.specimens = specimens

    def full(self, file):
        return os.path.join(self.path, file)

    def read(self, file):
        with open(self.full(file), "rb") as f:
            return bytearray(f.read())

    def write(self, file, content):
        with open(self.full(file), "wb") as f:
            f.write(content)

    def size(self, file):
        return os.path.getsize(self.full(file))

    def remove(self, *files):
        for file in files:
            if os.path.isdir(self.full(file)):
                shutil.rmtree(self.full(file))
            else:
                os.remove(self.full(file))

    def take(self, source, file):
        """The file, or folder, of another volume in the place of this one's."""
        shutil.rmtree(self.full(file), ignore_errors=True)
        if os.path.isdir(source.full(file)):
            shutil.copytree(source.full(file), self.full(file))
        else:
            shutil.copyfile(source.full(file), self.full(file))

    def swap(self, a, b):
        first, second = self.read(a), self.read(b)
        self.write(a, second)
        self.write(b, first)

    def put(self, file, offset, content):
        with open(self.full(file), "r+b") as f:
            f.seek(offset)
            f.write(content)

    def flip(self, file, offset):
        content = self.read(file)
        content[offset] ^= 1
        self.write(file, content)

    def cut(self, file, size):
        os.truncate(self.full(file), size)

    def append(self, file, content):
        with open(self.full(file), "ab") as f:
            f.write(content)

    # Segments and their records.

    def record(self, name, part):
        return self.records[name][part]

    def record_bytes(self, record):
        return self.read(record.file)[record.offset:record.offset + record.size]

    def put_record(self, record, content):
        self.put(record.file, record.offset, content)

    def swap_records(self, a, b):
        first, second = self.record_bytes(a), self.record_bytes(b)
        self.put_record(a, second)
        self.put_record(b, first)

    def flip_record(self, record, at, *, forged=False):
        self.flip(record.file, record.offset + at)
        if forged:
            content = self.record_bytes(record)
            crc = zlib.crc32(content[RECORD_HEADER_SIZE:], zlib.crc32(content[:RECORD_CRC_AT]))
            self.put(record.file, record.offset + RECORD_CRC_AT, struct.pack("<I", crc))

    def seal_segment_header(self, file):
        self.put(file, 52, struct.pack("<I", zlib.crc32(self.read(file)[:52])))

    # Superblock and keyring.

    def document(self, file):
        return json.loads(self.read(file))

    def edit_document(self, file, change):
        """change() gets the JSON object; the CRC-32 fits afterwards, the MAC does not."""
        fields = self.document(file)
        change(fields)
        covered = {key: value for key, value in fields.items() if key != "crc32"}
        text = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        fields["crc32"] = f"{zlib.crc32(text.encode()):08x}"
        text = json.dumps(fields, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
        self.write(file, text.encode())

    def flip_field(self, file, name):
        """A bit of a value of hexadecimal digits, which stay such: the CRC-32 alone is wrong."""
        content = self.read(file)
        at = content.index(f'"{name}": "'.encode()) + len(name) + 5
        content[at] ^= 2 if content[at] in b"af" else 1
        self.write(file, content)

    # Files under db/.

    def database_files(self, ending):
        return sorted(f"db/{name}" for name in os.listdir(self.full("db")) if name.endswith(ending))

    def table(self):
        """The largest: one whose rows every check reads."""
        return max(self.database_files(".sst"), key=self.size)

    def log(self):
        return self.database_files(".log")[-1]

    def manifest(self):
        return max(f"db/{name}" for name in os.listdir(self.full("db"))
                   if name.startswith("MANIFEST-"))

    def frames(self, file):
        content, at, found = self.read(file), FILE_HEADER_SIZE, []
        while content[at:at + 4] == b"NFRM":
            plain, _, synced_up_to = struct.unpack_from("<IQQ", content, at + 4)
            size = FRAME_HEADER_SIZE + plain + FRAME_TAG_SIZE
            found.append(Frame(at, size, synced_up_to))
            at += size
        return found

    def seal_frame(self, file, frame):
        content = self.read(file)
        bytes_ = content[frame.offset:frame.offset + frame.size]
        crc = zlib.crc32(bytes_[:FRAME_CRC_AT], zlib.crc32(content[FILE_SALT]))
        crc = zlib.crc32(bytes_[FRAME_HEADER_SIZE:], crc)
        self.put(file, frame.offset + FRAME_CRC_AT, struct.pack("<I", crc))

    def seal_page(self, file, page):
        content = self.read(file)
        begin = FILE_HEADER_SIZE + page * PAGE_SIZE
        end = min(begin + PAGE_SIZE, len(content)) - 4
        crc = zlib.crc32(struct.pack("<Q", page), zlib.crc32(content[FILE_SALT]))
        self.put(file, end, struct.pack("<I", zlib.crc32(content[begin:end], crc)))
