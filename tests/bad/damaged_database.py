# SPDX-License-Identifier: Apache-2.0
"""Defects of db/: tables of pages; logs, manifest and small files of frames.

A frame that a later one vouches for is damage when it is bad; any other is a tail torn by a crash.
A volume whose db/ is damaged is not mounted. A repair makes db/ anew of what can be read, of the
last checkpoint and of the newest records, and keeps the old one.
"""
from verdicts import clean, damage, defect, mends, mounted, nothing_to_repair, refused, says, would_mend

HINT = ("; an unclean stop can leave such a file: then a mount removes it, and a check with the key "
        "that can open the database says that nothing depends on it")
ALL_TABLES = "note: without the manifest all tables in db/ count, so removed files may be back$"
LOST_ROWS = r"lost: rows in \d+ stretches of db/; those of the checkpoint of .* take their place$"
LOST_GROUPS = "lost: changes in the log of db/ that were in no table yet; which ones is not known$"
OLDER = r"older: "


def damaged(verdict, what, *made_anew, scrub=None):
    """scrub: what one says without a key; made_anew: what a repair has to add."""
    found = damage(rf"{verdict}: {what}$")
    anew = (rf"damaged: {verdict}: {what}$", *made_anew)
    word = {"rot": "corrupt: ", "missing": ""}.get(verdict, f"{verdict}: ")
    # Whoever put something older back can put the newer one back: nothing needs a repair.
    advice = "" if verdict == "rolled back" else r"\. To see what a repair would do: fsck\.nacre --repair"
    return says(fsck=found, scrub=scrub or clean(), deep=found, dry_run=would_mend(*anew),
                repair=mends(*anew), mount=refused(4, f"{word}VOLUME: (opening the database: )?{what}{advice}"))


@defect("closed")
def current_rotten(v):
    """A bit of CURRENT, which names the manifest."""
    v.flip("db/CURRENT", 110)
    what = "db/CURRENT: the file was damaged or cut: no whole frame at offset 64"
    return damaged("rot", what, scrub=damage(f"rot: {what}$"))


@defect("closed")
def current_missing(v):
    """CURRENT is gone."""
    v.remove("db/CURRENT")
    return damaged("missing", "db/CURRENT: the file is missing")


@defect("closed")
def current_put_back(v):
    """CURRENT and the manifest that it names, as they were before the last mount."""
    earlier = v.specimens["earlier"]
    v.take(earlier, "db/CURRENT")
    v.take(earlier, earlier.manifest())
    return damaged("rolled back",
                   r"db/CURRENT: it names manifest \d+, but db/\d+\.log knows of manifest \d+", ALL_TABLES)


@defect("closed")
def manifest_rotten(v):
    """A bit of the manifest's first frame."""
    file = v.manifest()
    v.flip(file, v.frames(file)[0].offset + 40)
    what = rf"{file}: frame 0 at offset 64: damaged, though frame \d+ was written after it was safe"
    return damaged("rot", what, ALL_TABLES, scrub=damage(f"rot: {what}{HINT}$"))


@defect("closed")
def manifest_truncated(v):
    """The manifest's last frame is cut off, which the log knows of."""
    file, frames = v.manifest(), v.frames(v.manifest())
    v.cut(file, frames[-1].offset)
    return damaged("rot", rf"{file}: the manifest was cut: {len(frames) - 1} of {len(frames)} frames "
                          "are left", ALL_TABLES)


@defect("closed")
def manifest_missing(v):
    """The manifest is gone."""
    file = v.manifest()
    v.remove(file)
    return damaged("missing", f"{file}: the file is missing", ALL_TABLES)


@defect("killed")
def log_frame_rotten(v):
    """A bit of a log's frame in the middle: a later one says that it was safe."""
    file, frame = v.log(), v.frames(v.log())[3]
    v.flip(file, frame.offset + 40)
    what = rf"{file}: frame 3 at offset {frame.offset}: damaged, though frame \d+ was written after it " \
           "was safe"
    return damaged("rot", what, LOST_GROUPS, scrub=damage(f"rot: {what}$"))


@defect("killed")
def log_frame_forged(v):
    """A bit of a log's frame, under a CRC-32 that fits."""
    file, frame = v.log(), v.frames(v.log())[3]
    v.flip(file, frame.offset + 40)
    v.seal_frame(file, frame)
    return damaged("tampered", f"{file}: frame 3 at offset {frame.offset}: the tag is wrong", LOST_GROUPS)


@defect("killed")
def log_frames_swapped(v):
    """Two frames of a log have changed places."""
    file, frames = v.log(), v.frames(v.log())
    a, b = frames[3:5]
    content = v.read(file)
    v.put(file, a.offset, content[b.offset:b.offset + b.size] + content[a.offset:a.offset + a.size])
    what = f"{file}: frame 3 at offset {a.offset}: frame 4 stands where frame 3 belongs"
    return damaged("tampered", what, LOST_GROUPS, scrub=damage(f"rot: {what}$"))


@defect("killed")
def log_of_an_older_mount(v):
    """What the log of an older mount held stands in the newest log."""
    earlier = v.specimens["earlier"]
    v.write(v.log(), earlier.read(earlier.log()))
    return damaged("tampered", f"{v.log()}: frame 0 at offset 64: the tag is wrong", LOST_GROUPS)


@defect("killed")
def log_tail_torn(v):
    """Behind a log's last frame stands the beginning of one that never came to its end: sound."""
    last = v.frames(v.log())[-1]
    v.put(v.log(), last.offset + last.size, b"NFRM" + b"\xaa" * 100)
    return says(fsck=clean(), scrub=clean(), deep=clean(), dry_run=nothing_to_repair(), mount=mounted())


@defect("killed")
def log_that_no_longer_counts(v):
    """The log of an older mount lies there again: newer ones say that nothing needs it."""
    earlier = v.specimens["earlier"]
    v.take(earlier, earlier.log())
    return says(fsck=clean(), scrub=clean(), deep=clean(), dry_run=nothing_to_repair(), mount=mounted())


@defect("killed")
def log_missing(v):
    """The log of the mount that was killed is gone."""
    v.remove(v.log())
    gone = "db: the write-ahead log is missing, and with it the last changes"
    return says(fsck=damage(f"missing: {gone}$"), scrub=clean(), deep=damage(f"missing: {gone}$"),
                mount=refused(4, f"VOLUME: {gone}"))


@defect("closed")
def table_page_rotten(v):
    """A bit of a page of a table."""
    file = v.table()
    v.flip(file, 200)
    what = f"{file}: page 0 at offset 64: the checksum is wrong"
    return damaged("rot", what, LOST_ROWS, OLDER, scrub=damage(f"rot: {what}{HINT}$"))


@defect("closed")
def table_page_forged(v):
    """A bit of a page of a table, under a CRC-32 that fits."""
    file = v.table()
    v.flip(file, 200)
    v.seal_page(file, 0)
    return damaged("tampered", f"{file}: page 0 at offset 64: the authentication tag is wrong", LOST_ROWS,
                   OLDER)


@defect("closed")
def table_truncated(v):
    """A table ends within a page."""
    file = v.table()
    v.cut(file, v.size(file) - 10)
    what = f"{file}: page 0 at offset 64: the checksum is wrong"
    return damaged("rot", what, LOST_ROWS, OLDER, scrub=damage(f"rot: {what}{HINT}$"))


@defect("closed")
def table_header_rotten(v):
    """A bit of a table's header."""
    file = v.table()
    v.flip(file, 40)
    what = f"{file}: the checksum of the file header is wrong"
    return damaged("rot", what, LOST_ROWS, OLDER, scrub=damage(f"rot: {what}{HINT}$"))


@defect("closed")
def table_missing(v):
    """A table is gone."""
    file = v.table()
    v.remove(file)
    return damaged("missing", f"{file}: the file is missing", LOST_ROWS, OLDER)


@defect("closed")
def tables_swapped(v):
    """Two tables have changed names."""
    v.swap(*v.database_files(".sst")[:2])
    return damaged("tampered", r"db/\d+\.sst: page 0 at offset 64: the authentication tag is wrong",
                   LOST_ROWS, OLDER)


@defect("closed")
def table_of_another_volume(v):
    """Another volume's table in the place of one."""
    other = v.specimens["other"]
    v.write(v.table(), other.read(other.table()))
    return damaged("tampered", f"{v.table()}: the file belongs to another volume", LOST_ROWS, OLDER)


@defect("closed")
def identity_rotten(v):
    """A bit of IDENTITY, by which RocksDB knows a database."""
    v.flip("db/IDENTITY", 110)
    what = "db/IDENTITY: the file was damaged or cut: no whole frame at offset 64"
    return damaged("rot", what, scrub=damage(f"rot: {what}$"))


def of_no_use(file, scrub=None):
    """What an unclean stop may leave: a note, and no damage."""
    note = clean(rf"{file}: .*; nothing depends on it: an unclean stop may have left it, and a mount "
                 "removes or replaces it$")
    return says(fsck=clean(), scrub=scrub or note, deep=note, mount=mounted())


@defect("closed")
def information_log_overwritten(v):
    """Other bytes in the log in which RocksDB notes what it does."""
    v.write("db/LOG", b"\x07" * 100)
    return of_no_use("db/LOG")


@defect("closed")
def rename_unfinished(v):
    """A file that was to be renamed, and was not."""
    v.write("db/000099.dbtmp", b"\x07" * 100)
    return of_no_use(r"db/000099\.dbtmp")


@defect("closed")
def table_that_no_manifest_names(v):
    """What a kill left of a table that was being written; without the key it may be one of those."""
    v.write("db/000099.sst", b"\x07" * 100)
    what = r"db/000099\.sst: the file does not begin as a sealed file does"
    return of_no_use(r"db/000099\.sst", damage(f"rot: {what}{HINT}$"))


@defect("closed")
def database_missing(v):
    """All of db/ is gone: that is for a salvage."""
    v.remove("db")
    current = r"missing: db/CURRENT: the file is missing$"
    folder = r"missing: db: VOLUME/db: No such file or directory$"
    salvage = refused(4, r"VOLUME: db/ is missing\. Salvage the volume into another directory: "
                         r"fsck\.nacre --salvage TARGET$")
    return says(fsck=damage(current), scrub=damage(folder), deep=damage(current, folder),
                dry_run=salvage, repair=salvage,
                mount=refused(4, "VOLUME: db/CURRENT: the file is missing"))


@defect("closed")
def database_put_back(v):
    """All of db/ as it was before the last mount."""
    v.take(v.specimens["earlier"], "db")
    newer = (r"rolled back: segments/\d+\.seg: the segment belongs to a write session that the database "
             "does not know: ")
    gone = r"missing: segments/\d+\.seg: the segment is gone, with \d+ bytes of live data$"
    return says(fsck=damage(newer, gone), scrub=clean(),
                dry_run=would_mend("left: " + newer, "lost: "),
                mount=refused(4, "segments/"))


@defect("closed")
def database_of_another_volume(v):
    """Another volume's db/."""
    v.take(v.specimens["other"], "db")
    found = damage("tampered: db/CURRENT: the file belongs to another volume$")
    salvage = refused(4, r"VOLUME: no row of db/ can be read; fsck\.nacre --salvage TARGET makes the "
                         "volume anew elsewhere$")
    return says(fsck=found, scrub=clean(), deep=found, dry_run=salvage, repair=salvage,
                mount=refused(4, "tampered: VOLUME: db/CURRENT: the file belongs to another volume"))
