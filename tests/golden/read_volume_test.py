#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""read_volume.py can fail, and reads a volume of more than 1,000 files that was made just now.

    read_volume_test.py [--files N] [--seed S]

First on golden volumes (two of them, all with NACRE_LONG): with any text of its table of derivations
changed it opens none, and with another passphrase neither. A volume in which one byte of any file was
changed never gives other bytes; what counts of db/ and segments/ is refused when it is changed or
missing. Of superblock and keyring one damaged copy is passed over, and a forged one is not. Checkpoints
hold the rows that they say. Then on a mount of this build: each file compared byte for byte, while the
daemon was killed, after the volume was closed, and after a repair. That volume is made so that it has
what the golden ones are too small for, and the test says what of it there was.
"""
import argparse
import contextlib
import functools
import glob
import io
import json
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import tempfile

from golden_test import GOLDEN, PASSPHRASE, archives, unpack
from needs import need_reader

sys.path.insert(0, os.path.join(GOLDEN, "../support"))
# pylint: disable=wrong-import-position
need_reader("read_volume_test")
from read_volume import listing
from reader import codecs, documents
from reader.basics import Cursor, VolumeError, crc32
from reader.derivations import DERIVATIONS
from reader.records import RecordHeader
from reader.rocksdb import Manifest
from reader.volume import open_checkpoint, open_volume
from volume import CHEAP_KDF, PATIENCE, Failure, Volume, full_counts, skip_part

CLOSED = os.path.join(GOLDEN, "gcm256_lz77_closed.tar.xz")
IN_ROTATION = os.path.join(GOLDEN, "cbc192_zstd_in_rotation.tar.xz")  # has a previous volume key
# Volumes are opened hundreds of times here, with few keys.
documents.argon2id = functools.lru_cache(maxsize=64)(documents.argon2id)
documents.serialization.load_der_private_key = functools.lru_cache(maxsize=64)(
    documents.serialization.load_der_private_key)


def require(condition, what):
    if not condition:
        raise Failure(what)


def quietly(action):
    """The warnings of action()."""
    with contextlib.redirect_stderr(io.StringIO()) as said:
        action()
    return said.getvalue()


def check_refused(action, what):
    try:
        quietly(action)
    except VolumeError:
        return
    raise Failure(f"{what}: the reader does not refuse it")


@contextlib.contextmanager
def replaced(path, content):
    """The file has this content for a while; none, and it is not there."""
    with open(path, "rb") as file:
        before = file.read()
    os.remove(path)
    try:
        if content is not None:
            with open(path, "wb") as file:
                file.write(content)
        yield
    finally:
        with open(path, "wb") as file:
            file.write(before)


def changed(content, at, mask):
    return content[:at] + bytes([content[at] ^ mask]) + content[at + 1:]


def content_of(path):
    return listing(open_volume(path, PASSPHRASE))


def read_everything(path, passphrase=PASSPHRASE):
    volume = open_volume(path, passphrase)
    for inode in volume.paths.values():
        if stat.S_ISREG(inode.mode):
            for _ in volume.file_pieces(inode):
                pass
    for row in volume.checkpoints.values():
        open_checkpoint(volume, row)


def run_reader(folder, passphrase, volume):
    return subprocess.run([sys.executable, os.path.join(folder, "read_volume.py"), "list",
                           "--passphrase-file", passphrase, volume], capture_output=True, text=True,
                          timeout=300 * PATIENCE, check=False)


def copy_reader(folder):
    shutil.copy(os.path.join(GOLDEN, "read_volume.py"), folder)
    shutil.copytree(os.path.join(GOLDEN, "reader"), os.path.join(folder, "reader"),
                    ignore=shutil.ignore_patterns("__pycache__"))


# Of format 2, a draft: no golden volume has it.
FORMAT_2_TEXTS = ("database file 2", "padded database file 2", "passphrase check", "passphrase seal",
                  "passphrase recipient")


def check_changed_text(work, name, passphrase, volume):
    """A copy of the reader, in which that text differs in its last letter, does not open the volume."""
    info = DERIVATIONS[name].decode()
    table = os.path.join(work, "reader", "derivations.py")
    with open(table, encoding="utf-8") as file:
        text = file.read()
    right, wrong = f"b\"{info}\"", f"b\"{info[:-1]}?\""
    if text.count(right) != 1:
        raise Failure(f"{name}: the table of derivations does not have it once")
    with open(table, "w", encoding="utf-8") as file:
        file.write(text.replace(right, wrong))
    done = run_reader(work, passphrase, volume)
    if done.returncode != 1 or not done.stderr.startswith("read_volume.py: "):
        raise Failure(f"with another text for {name} the reader ends with {done.returncode}: "
                      f"{done.stdout[:200]}{done.stderr[-500:]}")
    print(f"ok      another text for {name}: {done.stderr.strip()}")
    with open(table, "w", encoding="utf-8") as file:
        file.write(text)


def check_changed_texts(closed, in_rotation, work):
    copy_reader(work)
    for name in DERIVATIONS:
        if name not in FORMAT_2_TEXTS:
            check_changed_text(work, name, PASSPHRASE,
                               in_rotation if name == "previous volume key" else closed)
    for volume in (closed, in_rotation):
        if run_reader(work, PASSPHRASE, volume).returncode != 0:
            raise Failure("the copy of the reader does not read the volume")


def check_other_passphrase(volume, work):
    other = os.path.join(work, "other")
    with open(other, "w", encoding="utf-8") as file:
        file.write("another passphrase\n")
    done = run_reader(GOLDEN, other, volume)
    if done.returncode != 1 or "the passphrase is wrong" not in done.stderr:
        raise Failure(f"another passphrase: {done.stdout[:200]}{done.stderr[-500:]}")


def check_changed_bytes(volume, chance):
    """One byte of each file: damage is said, or nothing that counts has changed."""
    right, said, silent = content_of(volume), 0, []
    for folder, _, names in os.walk(volume):
        for name in sorted(names):
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                content = file.read()
            if not content:
                continue
            for at in (chance.randrange(len(content)), len(content) - 1):
                with replaced(path, changed(content, at, 1 << chance.randrange(8))):
                    try:
                        with contextlib.redirect_stderr(io.StringIO()):
                            require(content_of(volume) == right,
                                    f"{path}, byte {at}: other content is given out")
                        silent.append(f"{os.path.relpath(path, volume)}:{at}")
                    except VolumeError:
                        said += 1
    require(said >= 20, f"only {said} changed bytes were noticed")
    print(f"ok      changed bytes: {said} said, {len(silent)} in what does not count: {' '.join(silent)}")


def check_refusals(volume, name):
    """Each file of db/ and segments/: a changed byte in what counts, and the file missing."""
    read, count = open_volume(volume, PASSPHRASE), 0
    for relative in sorted(glob.glob("db/*", root_dir=volume) + glob.glob("segments/*", root_dir=volume)):
        if os.path.basename(relative) == "IDENTITY":
            continue
        path = os.path.join(volume, relative)
        with open(path, "rb") as file:
            content = file.read()
        places = [20, 120]
        if relative.startswith("segments/"):
            live = [piece.location.offset for rows in read.chunk_rows.values() for row in rows
                    for piece in row.pieces() if piece.location.segment == int(relative[9:-4])]
            places = [50] + [offset + 60 for offset in live[:1]]
        for at in places:
            with replaced(path, changed(content, at, 4)):
                check_refused(lambda: read_everything(volume), f"{name}: {relative} changed at {at}")
        with replaced(path, None):
            check_refused(lambda: read_everything(volume), f"{name}: {relative} missing")
        count += len(places) + 1
    print(f"ok      {name}: {count} changed or missing files of db/ and segments/ are refused")


def check_copies(volume, name):
    """A damaged copy of superblock or keyring is passed over with a warning. One whose CRC is right
    counts when its generation is the higher one, and is refused for its MAC."""
    for document in ("superblock", "keyring"):
        paths = [os.path.join(volume, document + end) for end in ("", ".copy")]
        with open(paths[0], "rb") as file:
            text = file.read()
        value = json.loads(text)
        forged = {key: item for key, item in value.items() if key != "crc32"}

        def forge(more, forged=forged, value=value):
            made = {**forged, "mac": "00" * 32, "generation": value["generation"] + more}
            crc = f"{crc32(documents.canonical_dump(made)):08x}"
            return documents.file_text({**made, "crc32": crc})

        damaged = text.replace(b'"mac": "', b'"mac": "0', 1)
        older = forge(-1) if value["generation"] > 1 else damaged
        for path in paths:
            for bad in (damaged, None, older):
                with replaced(path, bad):
                    require("warning: " in quietly(lambda: open_volume(volume, PASSPHRASE)),
                            f"{name}: nothing is said of a bad {os.path.basename(path)}")
            for bad in (forge(0), forge(1)):
                with replaced(path, bad):
                    check_refused(lambda: open_volume(volume, PASSPHRASE),
                                  f"{name}: {os.path.basename(path)} forged")
        with replaced(paths[0], damaged), replaced(paths[1], None):
            check_refused(lambda: open_volume(volume, PASSPHRASE), f"{name}: no sound {document}")


def sections_of(stream):
    """docs/FORMAT.md, Checkpoint: the rows of each section, by its number."""
    cursor, sections = Cursor(stream, "a checkpoint"), {}
    while (number := cursor.u8()) != 0:
        rows, key = [], b""
        while True:
            shared, rest = cursor.varint(), cursor.varint()
            if rest == 0:
                require(shared == 0, "the end of a section shares something")
                break
            key = key[:shared] + cursor.take(rest)
            rows.append((key, cursor.take(cursor.varint())))
        sections[number] = rows
    cursor.end()
    return sections


def content_end(row):
    ends = [piece.offset + piece.valid_size for piece in row.pieces()]
    return max(ends + [end for _, end in row.lost_ranges], default=0)


def check_counts(volume, name):
    """docs/FORMAT.md, Tables: data bytes of each file, and the totals of the volume."""
    for inode in volume.inodes.values():
        rows = volume.chunk_rows.get(inode.number, []) if inode.links else []
        wanted = sum(row.count * volume.chunk_size if row.kind == 3 else content_end(row) for row in rows)
        require(not inode.links or inode.data_bytes == wanted,
                f"{name}: inode {inode.number} has {inode.data_bytes} data bytes, not {wanted}")
    total = sum(inode.data_bytes for inode in volume.inodes.values())
    require(total == volume.system["data_bytes"], f"{name}: {total} data bytes")
    require(len(volume.inodes) == volume.system["inode_count"], f"{name}: count of inodes")


SECTIONS = ("system", "inodes", "dentries", "chunks", "inlined", "xattrs", "orphans")


def check_checkpoints(volume, name):
    """The root says what the parts hold. Gives how many checkpoints there are."""
    for number, row in sorted(volume.checkpoints.items()):
        what = f"{name}: checkpoint {number >> 40}.{number & (1 << 40) - 1}"
        root, stream = open_checkpoint(volume, row)
        sections, cursor = sections_of(stream), Cursor(root, what)
        require(cursor.u8() == 1, f"{what}: version of the root")
        cursor.signed()  # written
        cursor.varint()  # settled, an ordinal and a place
        cursor.varint()
        counts = [cursor.varint() for _ in SECTIONS]
        require(cursor.varint() == len(stream), f"{what}: size of the stream")
        require(cursor.varint() == len(row.parts), f"{what}: count of parts")
        for part in row.parts:
            version = cursor.varint() << 40 | cursor.varint()
            require((version, cursor.varint()) == (part.version, part.plain_size), f"{what}: a part")
        cursor.end()
        require(sorted(sections) == list(range(1, 8)), f"{what}: sections {sorted(sections)}")
        require(counts == [len(sections[index + 1]) for index in range(7)], f"{what}: counts of rows")
        if row.closed and row.closed == max(ordinals_of(volume)):
            for table in ("inodes", "dentries", "inlined", "xattrs"):
                require(sections[SECTIONS.index(table) + 1] == sorted(volume.tables[table].items()),
                        f"{what}: other rows of {table} than the volume that was closed with it")
    return len(volume.checkpoints)


def ordinals_of(volume):
    for key, value in volume.tables["system"].items():
        if key.startswith(b"session/"):
            cursor = Cursor(value[1:], "a session")
            yield cursor.varint()


def make_files(folder, count, chance):
    """Their content by path: some compress, some do not, some have holes, sizes around a chunk's."""
    made = {}
    for number in range(count):
        place = os.path.join(folder, f"d{number % 17}", f"e{number % 5}")
        os.makedirs(place, exist_ok=True)
        path = os.path.join(place, f"file {number}")
        size = chance.choice([0, 1, 100, 1000, 4096, 10_000, 65_535, 65_536, 65_537, 150_000]) \
            if number % 20 == 0 else chance.randrange(3000)
        content = chance.randbytes(size) if number % 3 == 0 else (b"%d, " % number * size)[:size]
        hole = chance.randrange(200_000) if number % 50 == 0 else 0
        with open(path, "wb") as file:
            file.seek(hole)
            file.write(content)
        made[os.path.relpath(path, folder)] = (bytes(hole) if content else b"") + content
    return made


def change_files(folder, made, chance):
    for path in chance.sample(sorted(made), len(made) // 5):
        content = bytearray(made[path])
        if not content:
            continue
        at = chance.randrange(len(content))
        patch = chance.randbytes(min(50, len(content) - at))
        with open(os.path.join(folder, path), "r+b") as file:
            file.seek(at)
            file.write(patch)
        content[at:at + len(patch)] = patch
        made[path] = bytes(content)
    for path in chance.sample(sorted(made), len(made) // 20):
        os.remove(os.path.join(folder, path))
        del made[path]


class Seen:
    """What was met of the format, by name."""

    def __init__(self):
        self.names = set()

    def note(self, name, condition=True):
        if condition:
            self.names.add(name)

    @contextlib.contextmanager
    def decoders_watched(self):
        plain_pieces, page_block = codecs.decode_sub_blocks, codecs.GDeflatePage.stored_block

        def pieces(stream, plain_size, decode_piece):
            place = 0
            self.note("several sub-blocks", plain_size > codecs.PIECE)
            while place + 4 <= len(stream):
                (head,) = struct.unpack_from("<I", stream, place)
                self.note("stored sub-block", head >> 31)
                place += 4 + (head & 0x7FFFFFFF)
            return plain_pieces(stream, plain_size, decode_piece)

        def stored_block(page):
            self.note("GDeflate stored block")
            return page_block(page)

        codecs.decode_sub_blocks, codecs.GDeflatePage.stored_block = pieces, stored_block
        try:
            yield
        finally:
            codecs.decode_sub_blocks, codecs.GDeflatePage.stored_block = plain_pieces, page_block

    def look_at_stream(self, content, name):
        """Fragments of a log's or manifest's records. A record of more than 64 KiB is in two frames."""
        place, size_so_far = 0, 0
        while len(content) - place >= 7:
            if 32768 - place % 32768 < 7:
                place += 32768 - place % 32768
                continue
            _, size, kind = struct.unpack_from("<IHB", content, place)
            self.note(f"{name} in fragments", kind == 2)
            self.note(f"{name} in three fragments", kind == 3)
            size_so_far = size if kind in (1, 2) else size_so_far + size
            self.note(f"{name} across frames", size_so_far > 65536)
            place += 7 + size

    def look_at(self, volume):
        database = volume.database
        self.look_at_stream(database.manifest.content, "edit")
        for _, log in database.logs():
            self.look_at_stream(log.content, "batch")
        for name in os.listdir(database.folder):
            self.note("table of several pages", name.endswith(".sst") and
                      os.path.getsize(os.path.join(database.folder, name)) > 64 + 4096)
        parse = Manifest.parse_edit

        def watched(manifest, record):
            edit, remaining = parse(manifest, record)
            self.note("group of edits", remaining)
            return edit, remaining

        Manifest.parse_edit = watched
        try:
            Manifest(database.manifest.content, "the manifest")
        finally:
            Manifest.parse_edit = parse
        for inode in volume.inodes.values():
            for bit, name in ((1, "immutable"), (2, "append-only"), (4, "no dump"), (8, "no atime")):
                self.note(f"inode flag {name}", inode.flags & bit)
            self.note("codec of an inode", inode.flags & 0xF00)
        for row in volume.checkpoints.values():
            self.note("checkpoint")
            self.note("checkpoint of several parts", len(row.parts) > 1)
        for row in (row for rows in volume.chunk_rows.values() for row in rows):
            self.note("hole", row.kind == 0)
            self.note("lost chunks", row.kind == 3)
            self.note("lost ranges", row.kind == 4)
            self.note("chunk of parts", not row.base and len(row.patches) > 3)
            self.note("patch over a base", row.base and row.patches)
            for piece in row.pieces():
                if piece.location.segment == 0:
                    self.note("inlined patch")
                    continue
                segment = volume.segment(piece.location.segment)
                record, what = segment.record(piece.location.offset, piece.location.stored_size)
                self.note("moved record", RecordHeader(record, what).salt != segment.row.salt)


# What the volume that is made here must have had when all is done.
ALWAYS = {"batch in fragments", "batch in three fragments", "batch across frames",
          "table of several pages", "checkpoint", "checkpoint of several parts", "hole", "lost ranges",
          "chunk of parts", "patch over a base", "inlined patch", "moved record",
          "several sub-blocks", "stored sub-block", "codec of an inode", "inode flag no dump",
          "inode flag no atime"}
AS_ROOT = {"inode flag immutable", "inode flag append-only"}
CHUNK = 256 << 10


def text_of(size, number):
    return (b"%d of many lines, " % number * (size // 10))[:size]


def make_special_files(folder, made, chance):
    """Long chunks that compress in part, all codecs, attributes that fill tables, and flags."""
    os.mkdir(os.path.join(folder, "special"))
    for number, codec in enumerate(("auto", "none", "lz77", "zstd", "rle", "huffman", "gdeflate", "lzw")):
        place = os.path.join(folder, "special", codec)
        os.mkdir(place)
        os.setxattr(place, "user.nacre.codec", codec.encode())
        content = text_of(70_000, number) + chance.randbytes(65_536) + text_of(6_000, number)
        content += chance.randbytes(500) + text_of(CHUNK, number)[:CHUNK - len(content) - 500]
        for name, data in (("mixed", content[:160_000]), ("small", text_of(3_000, number)),
                           ("noise", chance.randbytes(100_000))):
            made[os.path.join("special", codec, name)] = data
    made["special/lost chunk"] = text_of(2 * CHUNK, 77)
    made["special/lost part"] = chance.randbytes(CHUNK)
    for path in [path for path in made if path.startswith("special/")]:
        with open(os.path.join(folder, path), "wb") as file:
            file.write(made[path])
    made["special/sparse"] = bytes(3 * CHUNK) + b"behind a hole of three chunks"
    with open(os.path.join(folder, "special/sparse"), "wb") as file:
        file.seek(3 * CHUNK)
        file.write(made["special/sparse"][3 * CHUNK:])
    for number in range(40):
        os.setxattr(os.path.join(folder, "special/zstd/small"), f"user.{number}", chance.randbytes(60_000))
    for path, option in (("lzw/small", "+d"), ("rle/small", "+A"), ("none/small", "+i"), ("auto/small", "+a")):
        if option in ("+d", "+A") or os.getuid() == 0:
            subprocess.run(["chattr", option, os.path.join(folder, "special", path)], check=True)


def clear_flags(folder):
    if os.getuid() == 0:
        subprocess.run(["chattr", "-ia", os.path.join(folder, "special/none/small"),
                        os.path.join(folder, "special/auto/small")], check=True)


def is_special(path):
    return path.startswith("special/")


def without_special(made):
    return {path: content for path, content in made.items() if not is_special(path)}


def change_ordinary_files(folder, made, chance):
    ordinary = without_special(made)
    change_files(folder, ordinary, chance)
    for path in [path for path in made if not is_special(path)]:
        del made[path]
    made.update(ordinary)


def patch_inlined(folder, made):
    """Small and synced: the patch is in a row."""
    path = next(path for path in sorted(made) if not is_special(path) and len(made[path]) > 500)
    fd = os.open(os.path.join(folder, path), os.O_WRONLY | os.O_DIRECT)
    try:
        os.pwrite(fd, b"a synced patch", 100)
        os.fsync(fd)
    finally:
        os.close(fd)
    made[path] = made[path][:100] + b"a synced patch" + made[path][114:]


def open_made(volume):
    return open_volume(volume.path, volume.passphrase)


def compare_files(volume, made, when, seen):
    read = open_made(volume)
    seen.look_at(read)
    files = {os.fsdecode(path): inode for path, inode in read.paths.items()
             if not stat.S_ISDIR(inode.mode)}
    require(sorted(files) == sorted(made), f"{when}: the reader finds {len(files)} files, not {len(made)}")
    with seen.decoders_watched():
        for path, content in made.items():
            require(b"".join(read.file_pieces(files[path])) == content, f"{when}: {path} has other bytes")
    count = check_checkpoints(read, when)
    check_counts(read, when)
    print(f"ok      {len(made)} files, {sum(map(len, made.values()))} bytes, {count} checkpoints, {when}",
          flush=True)


def damage(volume, path, choose):
    """A bit of one record of the file's first chunk."""
    read = open_made(volume)
    row = read.chunk_rows[read.paths[os.fsencode(path)].number][0]
    place = choose(row).location
    name = os.path.join(volume.path, "segments", f"{place.segment:012d}.seg")
    with open(name, "r+b") as file:
        file.seek(place.offset + 100)
        byte = file.read(1)[0]
        file.seek(place.offset + 100)
        file.write(bytes([byte ^ 16]))
    return choose(row)


def check_lost(volume, made, seen):
    """What a repair states as lost is refused, and the rest of these files can be read."""
    damage(volume, "special/lost chunk", lambda row: row.pieces()[0])
    part = damage(volume, "special/lost part", lambda row: row.patches[2])
    volume.fsck("--repair", expect=(1,))
    read = open_made(volume)
    seen.look_at(read)
    check_counts(read, "after the repair")
    for path in ("special/lost chunk", "special/lost part"):
        inode = read.paths[os.fsencode(path)]
        check_refused(lambda inode=inode: list(read.file_pieces(inode)), path)
    row = read.chunk_rows[read.paths[b"special/lost part"].number][0]
    content = made["special/lost part"]
    require(row.lost_ranges == [(part.offset, part.offset + part.valid_size)],
            f"lost ranges {row.lost_ranges}")
    require(read.chunk_bytes(row, part.offset) == content[:part.offset], "bytes before what is lost")
    rows = read.chunk_rows[read.paths[b"special/lost chunk"].number]
    require(rows[0].lost_ranges == [(0, CHUNK)] and read.chunk_bytes(rows[1], CHUNK) == made["special/lost chunk"][CHUNK:],
            "the chunk behind a lost one")
    for path, content in sorted(made.items()):
        if "lost" not in path and len(content) < 5_000:
            inode = read.paths[os.fsencode(path)]
            require(b"".join(read.file_pieces(inode)) == content, f"after the repair: {path}")
    print("ok      lost chunks and ranges, as a repair states them", flush=True)


def check_many_files(count, chance, volume_format, padding="none"):
    seen = Seen()
    with Volume("read-volume") as volume:
        volume.make("--chunk-size", "256K", "--codec", "lz77", "--format", str(volume_format),
                    "--padding", padding)
        volume.mount()
        made = make_files(volume.mnt, count, chance)
        make_special_files(volume.mnt, made, chance)
        volume.run("nacre", "sync", volume.mnt)
        change_ordinary_files(volume.mnt, made, chance)
        patch_inlined(volume.mnt, made)
        volume.run("nacre", "sync", volume.mnt)
        volume.kill()
        volume.detach()
        compare_files(volume, made, "the daemon was killed", seen)
        volume.mount()
        change_ordinary_files(volume.mnt, made, chance)
        for path in chance.sample(sorted(without_special(made)), len(made) // 2):
            os.remove(os.path.join(volume.mnt, path))
            del made[path]
        volume.run("nacre", "sync", volume.mnt)
        volume.run("nacre", "trim", volume.mnt)
        volume.unmount()
        compare_files(volume, made, "the volume was trimmed and closed", seen)
        if volume_format == 2:
            copy = os.path.join(volume.work, "reader-copy")
            os.mkdir(copy)
            copy_reader(copy)
            unused = "padded database file 2" if padding == "none" else "database file 2"
            for name in FORMAT_2_TEXTS:
                if name != unused:
                    check_changed_text(copy, name, volume.passphrase, volume.path)
            check_format_2_recipients(volume)
        volume.fsck("--deep")
        check_lost(volume, made, seen)
        volume.mount()
        clear_flags(volume.mnt)
        volume.unmount()
    print(f"ok      met on the way: {', '.join(sorted(seen.names))}")
    if volume_format == 2:
        return  # with fewer files; what they are made of is the same
    wanted = ALWAYS | (AS_ROOT if os.getuid() == 0 else set())
    require(wanted <= seen.names, f"the volume had none of: {', '.join(sorted(wanted - seen.names))}")
    # Whether these occur is a matter of the encoder, of RocksDB, and of what is damaged.
    for name in ("lost chunks", "GDeflate stored block", "group of edits", "edit in fragments"):
        if name not in seen.names:
            print(f"not met: {name}")


def check_format_2_recipients(volume):
    """A passphrase with a key pair, after a rotation by another one, and its own seal again."""
    other = os.path.join(volume.work, "other passphrase")
    with open(other, "w", encoding="utf-8") as file:
        file.write("another passphrase")
    volume.run("nacre", "key", "add", volume.path, "--passphrase-file", volume.passphrase,
               "--new-passphrase-file", other, "--with-key-pair", *CHEAP_KDF)
    volume.run("nacre", "key", "rotate", volume.path, "--passphrase-file", volume.passphrase)
    states = []
    for _ in range(2):
        with open(os.path.join(volume.path, "keyring"), encoding="utf-8") as file:
            states.append("sealed_volume_key" in json.load(file)["recipients"][1])
        for passphrase in (volume.passphrase, other):
            read_everything(volume.path, passphrase)
        volume.run("mount.nacre", "--passphrase-file", other, volume.path, volume.mnt)
        volume.unmount()
    require(states == [False, True], "the passphrase's seal went and came")
    print("ok      passphrases of format 2, before and after a rotation", flush=True)


def check_moved(archive, work):
    """A golden volume of format 1, moved to format 2: the reader finds what it found before."""
    name = os.path.basename(archive).replace(".tar.xz", "")
    volume = os.path.join(work, name + "_moved")
    os.mkdir(volume)
    unpack(archive, volume)
    before = run_reader(GOLDEN, PASSPHRASE, volume)
    environment = {**os.environ, "XDG_CONFIG_HOME": os.path.join(work, "config")}
    for options in (["--format", "2"], []):
        done = subprocess.run([os.path.join(os.environ["NACRE_BIN"], "nacre"), "key", "rotate",
                               "--passphrase-file", PASSPHRASE, *options, volume],
                              capture_output=True, text=True, timeout=300 * PATIENCE, check=False,
                              env=environment)
        require(done.returncode == 0, f"{name}: the move ends with {done.returncode}: {done.stderr}")
        after = run_reader(GOLDEN, PASSPHRASE, volume)
        require(before.returncode == after.returncode == 0, f"{name}, moved: {after.stderr}")
        require(before.stdout == after.stdout, f"{name}: holds something else after the move")
        for file in sorted(os.listdir(os.path.join(volume, "db"))):
            with open(os.path.join(volume, "db", file), "rb") as opened:
                require(opened.read(5)[4] == 2, f"{name}, moved: db/{file} is not of format 2")
    print(f"ok      {name}, moved to format 2 and rotated there", flush=True)


def check_golden(archive, work):
    name = os.path.basename(archive).replace(".tar.xz", "")
    volume = os.path.join(work, name)
    os.mkdir(volume)
    unpack(archive, volume)
    read = open_volume(volume, PASSPHRASE)
    check_checkpoints(read, name)
    check_counts(read, name)
    check_copies(volume, name)
    check_refusals(volume, name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    print(f"--seed {options.seed}", flush=True)
    chance = random.Random(options.seed)
    try:
        with tempfile.TemporaryDirectory(prefix="nacre-golden.") as work:
            closed, in_rotation = os.path.join(work, "closed"), os.path.join(work, "in_rotation")
            for archive, volume in ((CLOSED, closed), (IN_ROTATION, in_rotation)):
                os.mkdir(volume)
                unpack(archive, volume)
            check_changed_texts(closed, in_rotation, work)
            check_other_passphrase(closed, work)
            check_changed_bytes(closed, chance)
            others = [archive for archive in archives() if archive != CLOSED]
            for archive in archives() if full_counts() else (CLOSED, chance.choice(others)):
                check_golden(archive, work)
            for archive in (CLOSED, chance.choice(others)):
                if "des" not in os.path.basename(archive) and "in_rotation" not in archive:
                    check_moved(archive, work)
        if os.path.exists("/dev/fuse"):
            check_many_files(options.files, chance, 1)
            check_many_files(options.files // 4, chance, 2)
            check_many_files(options.files // 4, chance, 2, padding="padme")
        else:
            skip_part("read_volume_test, a volume made just now", "there is no /dev/fuse")
    except (Failure, VolumeError) as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
