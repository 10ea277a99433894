# SPDX-License-Identifier: Apache-2.0
"""The sealed files of db/ (FORMAT.md, Files under db/)."""

import os
import re
import struct

from .basics import Cursor, VolumeError, crc32, require
from .secrets_and_suites import database_file_key, open_gcm

CLASS_TABLE, CLASS_LOG, CLASS_MANIFEST, CLASS_OTHER, CLASS_INFO_LOG = 1, 2, 3, 4, 5
HEADER_SIZE = 64
PAGE_SIZE = 4096
FRAME_COMPLETE, FRAME_WITNESS = 1, 2
FRAME_SIZE_MAX, PADDED_FRAME_SIZE_MAX = 65536, 67584
PAGE_CONTENT_SIZE = 4072


def class_and_number(name):
    """FORMAT.md, Files under db/: class, and the number in the name (0 for classes 4 and 5)."""
    for pattern, file_class in ((r"(\d+)\.sst", CLASS_TABLE), (r"(\d+)\.log", CLASS_LOG),
                                (r"MANIFEST-(\d+)", CLASS_MANIFEST)):
        match = re.fullmatch(pattern, name)
        if match:
            return file_class, int(match[1])
    return (CLASS_INFO_LOG if name.startswith("LOG") else CLASS_OTHER), 0


def lasting_name(name):
    """FORMAT.md, Format 2, "Files under db/": the name that a file has for good."""
    file_class, number = class_and_number(name)
    return {CLASS_TABLE: f"{number:06d}.sst", CLASS_LOG: f"{number:06d}.log",
            CLASS_MANIFEST: f"MANIFEST-{number:06d}", CLASS_INFO_LOG: "LOG"}.get(file_class, name)


class FileHeader:
    """FORMAT.md, Files under db/, the first table."""

    def __init__(self, data, name, volume_id, keys):
        what = f"db/{name}"
        self.file_class, self.number = class_and_number(name)
        cursor = Cursor(data[:HEADER_SIZE], what)
        require(cursor.take(4) == b"NDBF", f"{what}: not a database file")
        version, own_class = cursor.u8(), cursor.u8()
        require(version in (1, 2), f"{what}: version {version} is not known")
        # FORMAT.md, Format 2, "Padding".
        padded = cursor.u8()
        require(padded <= (version == 2), f"{what}: byte 6 of the header is {padded}")
        self.is_padded = bool(padded)
        cursor.reserved(1)
        self.epoch, page_size = cursor.u32(), cursor.u32()
        own_volume_id, self.salt = cursor.take(16), cursor.take(16)
        cursor.reserved(12)
        require(cursor.u32() == crc32(data[:60]), f"{what}: CRC of the header is wrong")
        require(own_class == self.file_class, f"{what}: class {own_class} is not that of its name")
        wanted = PAGE_SIZE if self.file_class == CLASS_TABLE else 0
        require(page_size == wanted, f"{what}: page size is {page_size}")
        require(own_volume_id == volume_id, f"{what}: of another volume")
        # The key is the database file key; the suite is always AES-256-GCM.
        _, epoch_key = keys.epoch(self.epoch, what)
        self.format = keys.formats[self.epoch]
        require(version == self.format, f"{what}: tampered with, of another format than its epoch")
        # FORMAT.md, Format 2, "The beginning of a rotation": no file of an older epoch counts.
        require(keys.formats[keys.newest_epoch] == 1 or self.epoch == keys.newest_epoch,
                f"{what}: tampered with, sealed under an older key")
        self.key = database_file_key(epoch_key, self.salt,
                                     lasting_name(name) if self.format == 2 else None,
                                     self.is_padded)
        self.additional = volume_id + self.salt + struct.pack("<QB7x", self.number, self.file_class)


def padme(size):
    """FORMAT.md, Record: the Padmé length of a size."""
    exponent = size.bit_length() - 1
    cleared = exponent - exponent.bit_length()
    return size if size < 2 or cleared <= 0 else -(-size >> cleared) << cleared


def content_of_padded(content, what):
    """FORMAT.md, Format 2, "Padding": content is that of all pages of a padded table."""
    require(len(content) % PAGE_CONTENT_SIZE == 0, f"{what}: a page that is not full")
    size, = struct.unpack("<Q", content[-8:])
    needed = -(-(size + 8) // PAGE_CONTENT_SIZE) * PAGE_SIZE
    pages = -(-padme(needed) // PAGE_SIZE)
    require(pages * PAGE_CONTENT_SIZE == len(content),
            f"{what}: tampered with, its padding is not that of {size} bytes")
    last_page = len(content) - PAGE_CONTENT_SIZE
    require(not any(content[max(size, last_page):-8]),
            f"{what}: tampered with, something is in its padding")
    return content[:size]


def content_of_padded_frame(plain, position, what):
    """FORMAT.md, Format 2, "Padding": plain is what was sealed in a frame; position None: not known."""
    require(len(plain) >= 12, f"{what}: tampered with, no padded frame")
    size, own_position = struct.unpack_from("<IQ", plain)
    require(size <= FRAME_SIZE_MAX and 12 + size <= len(plain),
            f"{what}: tampered with, {size} bytes of content")
    require(position in (None, own_position), f"{what}: tampered with, of another position")
    require(not any(plain[12 + size:]), f"{what}: tampered with, something is in its padding")
    return plain[12:12 + size]


def open_pages(data, name, volume_id, keys):
    """FORMAT.md, Files under db/, "Tables": gives the content of a table file."""
    what = f"db/{name}"
    header = FileHeader(data, name, volume_id, keys)
    content = []
    index = 0
    place = HEADER_SIZE
    while True:
        stored = data[place:place + PAGE_SIZE]
        place += PAGE_SIZE
        page = f"{what}, page {index}"
        require(len(stored) >= 24, f"{page}: cut off")
        size = len(stored) - 24
        state, crc = struct.unpack_from("<II", stored, size + 16)
        require(crc == crc32(header.salt, struct.pack("<Q", index), stored[:size + 20]),
                f"{page}: CRC is wrong")
        last = place >= len(data)
        require(state >> 31 == last, f"{page}: cut off, or more follows the last page")
        nonce = struct.pack("<QI", index, state & 0x7FFFFFFF)
        content.append(open_gcm(header.key, nonce, stored[:size + 16],
                                header.additional + struct.pack("<QI", index, state), page))
        if last:
            break
        index += 1
    require(size > 0 or index == 0, f"{what}: an empty page behind others")
    return content_of_padded(b"".join(content), what) if header.is_padded else b"".join(content)


class Frame:
    def __init__(self, data, place, header, what):
        """FORMAT.md, Files under db/, "All other files"; VolumeError where no whole frame is."""
        size_max = PADDED_FRAME_SIZE_MAX if header.is_padded else FRAME_SIZE_MAX
        head = data[place:place + 32]
        require(len(head) == 32 and head[:4] == b"NFRM", f"{what}: no frame")
        (self.size, self.sequence, self.synced, self.flags,
         crc) = struct.unpack("<IQQII", head[4:])
        require(self.size <= size_max, f"{what}: a frame that is too large")
        require(self.synced <= self.sequence, f"{what}: a frame that vouches for later ones")
        require(not self.flags & ~(FRAME_COMPLETE | FRAME_WITNESS), f"{what}: flags of a frame")
        self.end = place + 32 + self.size + 16
        require(self.end <= len(data), f"{what}: a frame is cut off")
        self.head = head[:28]
        self.sealed = data[place + 32:self.end]
        require(crc == crc32(header.salt, self.head, self.sealed), f"{what}: CRC of a frame is wrong")


class FrameFile:
    """A log, manifest or small file: its content, witnesses, and number of frames."""

    def __init__(self, data, name, volume_id, keys):
        what = f"db/{name}"
        self.name = name
        self.header = header = FileHeader(data, name, volume_id, keys)
        self.content, self.witnesses, self.frame_count = b"", [], 0
        self.tags, self.link = [], None
        self.complete = False
        self.begins_with_witness = False
        pieces, position = [], 0
        place = HEADER_SIZE
        while place < len(data):
            frame_what = f"{what}, frame {self.frame_count}"
            try:
                frame = Frame(data, place, header, frame_what)
            except VolumeError as error:
                self.check_tail(data, place, error)
                break
            require(frame.sequence == self.frame_count,
                    f"{frame_what}: tampered with, out of order")
            require(not self.complete, f"{frame_what}: behind the last frame")
            plain = self.open_frame(frame, frame_what, position)
            if frame.flags & FRAME_WITNESS:
                self.note_witness(plain, frame_what)
            else:
                pieces.append(plain)
                position += len(plain)
            self.complete = bool(frame.flags & FRAME_COMPLETE)
            self.tags.append(frame.sealed[-16:])
            place = frame.end
            self.frame_count += 1
        self.content = b"".join(pieces)
        if header.file_class == CLASS_OTHER:
            require(self.complete, f"{what}: damaged, its last frame is missing")
        if header.file_class == CLASS_MANIFEST and header.format == 2:
            require(self.link, f"{what}: damaged, it has no link")

    def note_witness(self, plain, what):
        """A log's witness, or the link of a manifest of format 2."""
        if self.header.file_class == CLASS_MANIFEST and self.header.format == 2:
            require(self.frame_count == 0 and len(plain) == 24, f"{what}: not a link")
            self.link = struct.unpack("<Q16s", plain)
            return
        require(self.header.file_class == CLASS_LOG, f"{what}: a witness outside of a log")
        self.witnesses.append(Witness(plain, self.header.format, what))
        self.begins_with_witness |= self.frame_count == 0

    def id(self):
        return self.header.number, self.header.salt

    def open_frame(self, frame, what, position=None):
        plain = open_gcm(self.header.key, struct.pack("<Q4x", frame.sequence), frame.sealed,
                         self.header.additional + frame.head, what)
        return content_of_padded_frame(plain, position, what) if self.header.is_padded else plain

    def check_tail(self, data, place, error):
        """A bad frame below a later frame's "synced up to" is damage; any other is a torn tail.

        FORMAT.md, Files under db/: later frames are looked for at each byte behind it.
        """
        if not any(data[place:]):
            return
        while True:
            place = data.find(b"NFRM", place + 1)
            if place < 0:
                return
            try:
                frame = Frame(data, place, self.header, "")
            except VolumeError:
                continue
            self.open_frame(frame, f"db/{self.name}, offset {place}")
            if frame.synced > self.frame_count:
                raise error


class Witness:
    """FORMAT.md, Files under db/: a log's witness frame holds five u64; Format 2, "The chain"."""

    def __init__(self, plain, file_format, what):
        require(len(plain) == (40 if file_format == 1 else 104), f"{what}: a witness of another size")
        (self.previous_log, self.previous_frames, self.done_log, self.manifest,
         self.manifest_frames) = struct.unpack("<5Q", plain[:40])
        self.names_salts = file_format == 2
        if self.names_salts:
            (self.previous_salt, self.previous_tag, self.manifest_salt,
             self.manifest_tag) = struct.unpack("<16s16s16s16s", plain[40:])


class Database:
    """The files of db/ that count: the manifest, its tables, and the chain of logs."""

    def __init__(self, folder, volume_id, keys):
        self.folder, self.volume_id, self.keys = folder, volume_id, keys
        # FORMAT.md, Reading a volume, step 3, and RocksDB's files: CURRENT.
        current = self.frame_file("CURRENT").content
        match = re.fullmatch(rb"(MANIFEST-\d+)\n", current)
        require(match, "db/CURRENT: names no manifest")
        self.manifest = self.frame_file(match[1].decode())

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), "rb") as file:
                return file.read()
        except OSError as error:
            raise VolumeError(f"db/{name}: {error.strerror}") from None

    def frame_file(self, name, sealed_as=None):
        return FrameFile(self.read(name), sealed_as or name, self.volume_id, self.keys)

    def table(self, number):
        name = f"{number:06d}.sst"
        return open_pages(self.read(name), name, self.volume_id, self.keys)

    def log_file(self, name, sealed_as=None):
        """A log, or None: one without a whole header or a frame holds nothing."""
        data = self.read(name)
        header = data[:HEADER_SIZE]
        whole = header[:4] == b"NDBF" and header[60:] == struct.pack("<I", crc32(header[:60]))
        if not whole and b"NFRM" not in data:
            return None
        log = FrameFile(data, sealed_as or name, self.volume_id, self.keys)
        if log.frame_count == 0:
            return None
        require(log.begins_with_witness, f"db/{name}: does not begin with a witness")
        return log

    def logs(self):
        """FORMAT.md, Files under db/: the logs that count, oldest first, as (number, FrameFile)."""
        names, arriving = {}, []
        for name in sorted(os.listdir(self.folder)):
            if re.fullmatch(r"\d+\.log", name):
                names[int(name[:-4])] = name
            elif ".log.new" in name:
                arriving.append(name)
        self.newest_log = max(names, default=0)
        require(names, "db/: there is no log")
        chain, done, after = [], 0, None
        for number in sorted(names, reverse=True):
            if number <= done:
                break
            what = f"db/{names[number]}"
            log = self.log_file(names[number])
            if log is None:
                continue
            # Each log names the one before it, which must be there and as long.
            if after is not None:
                require(number >= after.previous_log,
                        f"db/{after.previous_log:06d}.log: missing, a later log names it")
                require(number == after.previous_log, f"{what}: put back, no later log names it")
                require(log.frame_count >= after.previous_frames,
                        f"{what}: cut, a later log knows of more frames")
                require(not after.names_salts or
                        (log.header.salt == after.previous_salt
                         and log.frame_count == after.previous_frames
                         and log.tags[-1] == after.previous_tag),
                        f"{what}: tampered with, of another branch of history")
            after = log.witnesses[-1]
            self.check_manifest(log, after)
            chain.append((number, log))
            done = max(done, after.done_log)
        require(chain, "db/: no log has a frame")
        stand_ins = self.stand_ins(arriving)
        require(self.is_vouched_for([log for _, log in chain]) or
                any(chain[0][0] <= log.witnesses[-1].done_log for log in stand_ins),
                f"db/{self.manifest.name}: tampered with, of another branch of history")
        require(after.previous_log <= done,
                f"db/{after.previous_log:06d}.log: missing, a later log names it")
        self.has_stand_in = bool(stand_ins)
        self.check_arriving(arriving, chain[0][1].witnesses[-1])
        return chain[::-1]

    def check_manifest(self, log, witness):
        own_number, own_frames = self.manifest.header.number, self.manifest.frame_count
        require(witness.manifest <= own_number,
                f"db/{self.manifest.name}: older than {log.name} says")
        # Sealed anew from format 1 it has got a link before them.
        counted = witness.manifest_frames
        if not witness.names_salts and self.manifest.header.format == 2:
            counted += 1
        require(witness.manifest < own_number or counted <= own_frames,
                f"db/{self.manifest.name}: cut, {log.name} knows of more frames")

    def names_manifest(self, witness):
        """FORMAT.md, The chain, 1: salt, and the tag of the last frame that was counted."""
        if not witness.names_salts or witness.manifest_salt != self.manifest.header.salt:
            return False
        count = witness.manifest_frames
        return 0 < count <= len(self.manifest.tags) and \
            self.manifest.tags[count - 1] == witness.manifest_tag

    def is_vouched_for(self, chain):
        """FORMAT.md, Format 2, "The chain", 1 to 3; chain has the newest log first."""
        witness, link = chain[0].witnesses[-1], self.manifest.link
        if witness.names_salts and witness.manifest_salt == self.manifest.header.salt:
            return self.names_manifest(witness)
        if link is None:
            return not witness.names_salts
        if witness.manifest == self.manifest.header.number:
            return link == chain[0].id()
        return any(link == log.id() for log in chain)

    def stands_in(self, log):
        """FORMAT.md, Files under db/, the logs of a backup, and The chain, 4."""
        last = log.witnesses[-1]
        have = (self.manifest.header.number, self.manifest.frame_count)
        if not last.names_salts and self.manifest.header.format == 1:
            return (last.manifest, last.manifest_frames) <= have
        if last.names_salts and last.manifest_salt == self.manifest.header.salt:
            return self.names_manifest(last)
        return last.manifest <= have[0] and self.manifest.link == log.id()

    def arriving_logs(self, names):
        for name in names:
            try:
                log = self.log_file(name, name[:name.index(".log.new")] + ".log")
            except VolumeError:
                continue
            if log is not None and not log.content:
                yield log

    def stand_ins(self, names):
        return [log for log in self.arriving_logs(names) if self.stands_in(log)]

    def check_arriving(self, names, newest):
        """FORMAT.md, Files under db/, the logs of a backup."""
        have = (self.manifest.header.number, self.manifest.frame_count)
        for log in self.arriving_logs(names):
            last = log.witnesses[-1]
            known = (last.manifest, last.manifest_frames)
            require(known <= have or known[0] != have[0]
                    or (last.names_salts and last.manifest_salt != self.manifest.header.salt)
                    or (newest.manifest, newest.manifest_frames) == have,
                    f"db/{self.manifest.name}: has another number of frames than its log says")
