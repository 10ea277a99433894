# SPDX-License-Identifier: Apache-2.0
"""The sealed files of db/ and the rows in them. FORMAT: "Files under db/", "RocksDB's files"."""
import os
import re
import struct
import zlib
from collections import namedtuple

from .binary import Damage, require, u32, u64
from .keyring import database_file_key
from .rocksdb import Manifest, batch_entries, log_records, table_rows
from .suites import open_gcm

TABLE, LOG, MANIFEST, OTHER, INFO_LOG = 1, 2, 3, 4, 5
HEADER = 64
PAGE = 4096
FRAME_HEADER, TAG = 32, 16
COMPLETE, WITNESS = 1, 2
Witness = namedtuple("Witness", "previous_log previous_frames done_log manifest manifest_frames")


def class_and_number(name):
    for pattern, file_class in ((r"(\d+)\.sst", TABLE), (r"(\d+)\.log", LOG),
                                (r"MANIFEST-(\d+)", MANIFEST)):
        found = re.fullmatch(pattern, name)
        if found:
            return file_class, int(found.group(1))
    return (INFO_LOG if name == "LOG" or name.startswith("LOG.old") else OTHER), 0


class SealedFile:
    """One file: its header is checked, the key derived; content() opens all of it."""

    def __init__(self, folder, name, keys):
        self.name = f"db/{name}"
        try:
            with open(os.path.join(folder, name), "rb") as file:
                self.stored = file.read()
        except FileNotFoundError:
            raise Damage(f"{self.name} is missing") from None
        self.file_class, number = class_and_number(name)
        header = self.stored[:HEADER]
        self.is_unborn = (self.file_class == LOG and b"NFRM" not in self.stored and
                          (len(header) < HEADER or zlib.crc32(header[:60]) != u32(header, 60)))
        self.frames, self.witness, self.plain = 0, None, b""
        if self.is_unborn:
            return
        require(len(header) == HEADER and header[:4] == b"NDBF" and header[4] == 1,
                f"{self.name} does not begin as a sealed file does")
        require(zlib.crc32(header[:60]) == u32(header, 60), f"{self.name}: the header's CRC is wrong")
        require(header[5] == self.file_class, f"{self.name} was written as another class of file")
        require(header[16:32] == keys.volume_id, f"{self.name} belongs to another volume")
        require(u32(header, 12) == (PAGE if self.file_class == TABLE else 0) and
                not any(header[6:8] + header[48:60]), f"{self.name}: the header is not valid")
        self.salt = header[32:48]
        self.key = database_file_key(keys.epoch(u32(header, 8)), self.salt)
        self.binding = keys.volume_id + self.salt + struct.pack("<QB7x", number, self.file_class)
        self.plain = self.pages() if self.file_class == TABLE else self.joined_frames()

    def pages(self):
        """FORMAT: "Tables are pages"."""
        plain, page_count = [], -(-(len(self.stored) - HEADER) // PAGE)
        require(page_count > 0, f"{self.name} has no page")
        for index in range(page_count):
            page = self.stored[HEADER + index * PAGE:HEADER + (index + 1) * PAGE]
            what = f"{self.name}: page {index}"
            plain.append(self.open_page(index, page, index == page_count - 1, what))
        return b"".join(plain)

    def open_page(self, index, page, is_last, what):
        require(len(page) >= 24, f"{what} is too short")
        ciphertext, tag, state = page[:-24], page[-24:-8], page[-8:-4]
        crc = zlib.crc32(self.salt + struct.pack("<Q", index) + ciphertext + tag + state)
        require(crc == u32(page, len(page) - 4), f"{what}: the CRC is wrong")
        require(u32(state) >> 31 == is_last, f"{what}: the file was cut or is too long")
        nonce = struct.pack("<QI", index, u32(state) & 0x7FFFFFFF)
        aad = self.binding + struct.pack("<Q", index) + state
        return open_gcm(self.key, nonce, aad, ciphertext, tag, what)

    def frame_at(self, at):
        """The frame there, when its CRC is right: sequence, synced up to, flags, its size."""
        header = self.stored[at:at + FRAME_HEADER]
        if len(header) < FRAME_HEADER or header[:4] != b"NFRM":
            return None
        size, flags = u32(header, 4), u32(header, 24)
        sequence, synced = u64(header, 8), u64(header, 16)
        body = self.stored[at + FRAME_HEADER:at + FRAME_HEADER + size + TAG]
        if size > 65536 or len(body) < size + TAG or synced > sequence or flags > 3:
            return None
        if zlib.crc32(self.salt + header[:28] + body) != u32(header, 28):
            return None
        return sequence, synced, flags, FRAME_HEADER + size + TAG

    def open_frame(self, at, sequence, size):
        frame = self.stored[at:at + size]
        return open_gcm(self.key, struct.pack("<Q4x", sequence), self.binding + frame[:28],
                        frame[FRAME_HEADER:-TAG], frame[-TAG:], f"{self.name}: frame {sequence}")

    def joined_frames(self):
        """FORMAT: "All other files are frames"."""
        plain, at, is_complete = [], HEADER, False
        while (frame := self.frame_at(at)) is not None:
            sequence, _, flags, size = frame
            require(sequence == self.frames, f"{self.name}: frame {sequence} is out of place")
            content = self.open_frame(at, sequence, size)
            if flags & WITNESS:
                require(len(content) == 40, f"{self.name}: a witness has another size")
                self.witness = Witness(*struct.unpack("<5Q", content))
            else:
                plain.append(content)
            is_complete = bool(flags & COMPLETE)
            self.frames += 1
            at += size
        self.look_behind(at)
        require(is_complete or self.file_class != OTHER, f"{self.name} was cut")
        return b"".join(plain)

    def look_behind(self, at):
        """Does a later frame say that the bad one here was on the medium?"""
        while (at := self.stored.find(b"NFRM", at)) >= 0:
            frame = self.frame_at(at)
            if frame:
                sequence, synced, _, size = frame
                self.open_frame(at, sequence, size)
                require(synced <= self.frames, f"{self.name}: frame {self.frames} is damaged")
            at += 1


class Database:
    """rows[table]: {key: value}, of the newest sequence each."""

    def __init__(self, volume, keys):
        self.folder, self.keys = os.path.join(volume, "db"), keys
        current = SealedFile(self.folder, "CURRENT", keys).plain
        name = current.decode("ascii", "replace").rstrip("\n")
        file_class, self.manifest_number = class_and_number(name)
        require(file_class == MANIFEST, "db/CURRENT names no manifest")
        self.manifest_file = SealedFile(self.folder, name, keys)
        self.manifest = Manifest(self.manifest_file.plain, self.manifest_file.name)
        self.newest = {family: {} for family in self.manifest.families}
        for number, (family, size) in sorted(self.manifest.tables.items()):
            table = SealedFile(self.folder, f"{number:06}.sst", keys)
            require(len(table.plain) == size, f"{table.name}: the manifest knows of another size")
            for key, sequence, value in table_rows(table.plain, table.name):
                self.add(family, key, sequence, value)
        for number, log in self.logs():
            for record in log_records(log.plain, log.name, may_be_cut=True):
                for family, key, sequence, value in batch_entries(record, log.name):
                    if number >= self.manifest.first_log.get(family, 0):
                        self.add(family, key, sequence, value)
        self.rows = {}
        for family, table in self.manifest.families.items():
            self.rows[table.decode()] = {key: value for key, (_, value)
                                         in sorted(self.newest[family].items()) if value is not None}

    def add(self, family, key, sequence, value):
        require(family in self.newest, f"db: a row of family {family}, which is not there")
        known = self.newest[family].get(key)
        if known is None or sequence > known[0]:
            self.newest[family][key] = sequence, value

    def logs(self):
        """The logs that count, oldest first. FORMAT: "A log's witness frame …" and what follows it."""
        numbers = [number for file_class, number in map(class_and_number, os.listdir(self.folder))
                   if file_class == LOG]
        require(numbers or any(".log.new" in name for name in os.listdir(self.folder)),
                "db: the log is missing, and with it the last changes")
        chain, done, newer = [], 0, None
        for number in sorted(numbers, reverse=True):
            if number <= done:
                break
            log = SealedFile(self.folder, f"{number:06}.log", self.keys)
            if log.frames == 0:  # it was just being made
                continue
            require(log.witness, f"{log.name} does not say what came before it")
            if newer:
                require(number == newer.previous_log,
                        f"{log.name}: a log was put back, or is missing before a newer one")
                require(log.frames >= newer.previous_frames, f"{log.name} was cut")
            newer = log.witness
            done = max(done, newer.done_log)
            require(newer.manifest <= self.manifest_number, "db/CURRENT names an older manifest")
            require(newer.manifest < self.manifest_number or
                    newer.manifest_frames <= self.manifest_file.frames,
                    f"{self.manifest_file.name} was cut")
            chain.append((number, log))
        if newer and newer.previous_log > done:
            raise Damage(f"db: log {newer.previous_log} is missing, and with it changes that were safe")
        return reversed(chain)
