# SPDX-License-Identifier: Apache-2.0
"""Defects of segments and of the records in them.

Rot and forgery stay apart: a wrong CRC-32 is rot, which is found without a key; a right CRC-32 over
changed bytes is tampering, which only the key shows. Where a record is bad, reading what it held
gives EIO, and all else can be read. A check without --deep or --scrub opens no record.
"""
from verdicts import clean, damage, defect, mends, mounted, nothing_to_repair, refused, says, would_mend

PART = 16_384  # of a file, in each record
ANY_RECORD = r"segments/\d+\.seg offset \d+: patch at \d+ of chunk 0 of inode \d+: "
FOREIGN_SESSION = "the record is of a write session that this volume never had"


def part_of(record, why, verdict="tampered"):
    """What --deep says of one record of a file."""
    return rf"{verdict}: {record}: patch at \d+ of chunk 0 of inode \d+: {why}"


def lost(offset, parts, verdict):
    """What a repair says of so many parts of a file."""
    return rf"lost: inode \d+, {parts * PART} bytes at offset {offset}: {verdict}: "


def stated(parts):
    """What a check after the repair says of them."""
    return rf"note: {parts * PART} bytes in 1 chunks of inode \d+ are lost, as a repair has stated"


@defect("closed")
def no_defect(v):
    """A sound volume, as it was closed."""
    del v
    return says(fsck=clean(), scrub=clean(), deep=clean(), dry_run=nothing_to_repair(),
                repair=nothing_to_repair(), mount=mounted(), mount_ro=mounted())


@defect("killed")
def no_defect_after_a_kill(v):
    """A sound volume whose daemon was killed."""
    del v
    return says(fsck=clean(), scrub=clean(), deep=clean(), dry_run=nothing_to_repair(),
                mount=mounted(), mount_ro=mounted())


def rotten(record, why):
    """The second part of `a`: anybody sees it."""
    return says(fsck=clean(),
                scrub=damage(rf"rot: {record}: {record.size} bytes are damaged: {why}$"),
                deep=damage(part_of(record, why, "rot")),
                dry_run=would_mend(lost(PART, 1, "rot")),
                repair=mends(lost(PART, 1, "rot"), stated(1)),
                mount=mounted(), unreadable="a")


@defect("closed")
def record_header_rotten(v):
    """A bit of a record's header: the size that it gives is another one, and leads astray."""
    record = v.record("a", 1)
    v.flip_record(record, 9)
    return rotten(record, "CRC-32 of the record does not match")


@defect("closed")
def record_body_rotten(v):
    """A bit of a record's sealed body."""
    record = v.record("a", 1)
    v.flip_record(record, 1000)
    return rotten(record, "CRC-32 of the record does not match")


@defect("closed")
def record_tag_rotten(v):
    """A bit of a record's authentication tag."""
    record = v.record("a", 1)
    v.flip_record(record, record.size - 1)
    return rotten(record, "CRC-32 of the record does not match")


@defect("closed")
def record_zeroed(v):
    """Zeros where a record was."""
    record = v.record("a", 1)
    v.put_record(record, bytes(record.size))
    return rotten(record, "no record magic")


@defect("closed")
def last_record_rotten(v):
    """A bit of a segment's last record: without a key it may as well be a tail that nobody needs."""
    record = v.record("a", 3)
    v.flip_record(record, 1000)
    return says(scrub=clean(rf"{record}: unverified tail of {record.size} bytes: .*; only a check "
                            "with the key can tell$"),
                deep=damage(part_of(record, "CRC-32 of the record does not match", "rot")),
                mount=mounted(), unreadable="a")


def forged(record, why):
    """The second part of `a`: only the key can tell."""
    return says(fsck=clean(), scrub=clean(),
                deep=damage(part_of(record, why)),
                dry_run=would_mend(lost(PART, 1, "tampered")),
                repair=mends(lost(PART, 1, "tampered"), stated(1)),
                mount=mounted(), unreadable="a")


@defect("closed")
def record_header_forged(v):
    """Another counter in a record's header, under a CRC-32 that fits."""
    record = v.record("a", 1)
    v.flip_record(record, 32, forged=True)
    return forged(record, "authentication tag of the record does not match")


@defect("closed")
def record_body_forged(v):
    """A bit of a record's sealed body, under a CRC-32 that fits."""
    record = v.record("a", 1)
    v.flip_record(record, 1000, forged=True)
    return forged(record, "authentication tag of the record does not match")


@defect("closed")
def record_tag_forged(v):
    """A bit of a record's authentication tag, under a CRC-32 that fits."""
    record = v.record("a", 1)
    v.flip_record(record, record.size - 1, forged=True)
    return forged(record, "authentication tag of the record does not match")


@defect("closed")
def record_of_an_unknown_epoch(v):
    """A record says that it is of an epoch that the keyring does not have."""
    record = v.record("a", 1)
    v.flip_record(record, 12, forged=True)
    return forged(record, "the record names another key epoch than its write session")


@defect("closed")
def record_put_back(v):
    """The record of the same piece of the same file from before that was written anew."""
    record, earlier = v.record("a", 1), v.specimens["earlier"]
    v.put_record(record, earlier.record_bytes(earlier.record("a", 1)))
    return forged(record, "record is not the one that was asked for")


@defect("closed")
def record_of_another_volume(v):
    """The record of the same piece of another volume's file of that name."""
    record, other = v.record("a", 1), v.specimens["other"]
    v.put_record(record, other.record_bytes(other.record("a", 1)))
    return forged(record, FOREIGN_SESSION)


@defect("closed")
def records_swapped_in_a_file(v):
    """Two records of one file have changed places: each is sound, and not what its row names."""
    first, second = v.record("a", 1), v.record("a", 2)
    v.swap_records(first, second)
    why = "record is not the one that was asked for"
    return says(fsck=clean(), scrub=clean(), deep=damage(part_of(first, why), part_of(second, why)),
                dry_run=would_mend(lost(PART, 2, "tampered")),
                repair=mends(lost(PART, 2, "tampered"), stated(2)),
                mount=mounted(), unreadable="a")


@defect("closed")
def records_swapped_between_files(v):
    """Two records of different files have changed places."""
    first, second = v.record("a", 1), v.record("b", 1)
    v.swap_records(first, second)
    why = "record is not the one that was asked for"
    return says(fsck=clean(), scrub=clean(), deep=damage(part_of(first, why), part_of(second, why)),
                repair=mends(lost(PART, 1, "tampered"), stated(1)),
                mount=mounted(), unreadable="a b")


@defect("closed")
def checkpoint_rotten(v):
    """A bit of a record of the newest checkpoint, which a salvage alone reads."""
    record = v.record("checkpoint", 1)
    v.flip_record(record, 100)
    return says(fsck=clean(), scrub=damage(rf"rot: {record}: {record.size} bytes are damaged: "),
                deep=damage(rf"rot: {record}: part 0 of checkpoint 0x\w+: CRC-32 of the record"),
                repair=mends(), mount=mounted())


def cut(file, size, committed):
    return rf"missing: {file} offset {size}: the file has {size} of {committed} committed bytes$"


def half_served(file, why):
    return refused(4, rf"{file} {why}.*; fsck\.nacre --deep names the files that are hit, mounting "
                      r"with -o ro serves all others\. To see what a repair would do: fsck\.nacre --repair")


@defect("closed")
def segment_truncated(v):
    """The second half of a segment is cut off, between two records."""
    record, committed = v.record("a", 2), v.size(v.record("a", 2).file)
    v.cut(record.file, record.offset)
    short = cut(record.file, record.offset, committed)
    why = "a row names a record beyond the end of the segment"
    return says(fsck=damage(short), scrub=clean(),  # how long it must be takes the key
                deep=damage(short, part_of(record, why, "missing"),
                            part_of(v.record("a", 3), why, "missing")),
                dry_run=would_mend(lost(2 * PART, 2, "missing")),
                repair=mends(lost(2 * PART, 2, "missing"), stated(2)),
                mount=half_served(record.file, r"in VOLUME is \d+ bytes short"),
                mount_ro=mounted(), unreadable="a")


@defect("closed")
def segment_truncated_within_a_record(v):
    """A segment ends within a record that a row names."""
    record, committed = v.record("a", 3), v.size(v.record("a", 3).file)
    v.cut(record.file, record.offset + 100)
    short = cut(record.file, record.offset + 100, committed)
    return says(fsck=damage(short),
                scrub=clean(rf"{record}: unverified tail of 100 bytes: "),
                deep=damage(short, part_of(record, "record is cut short", "rot")),
                repair=mends(lost(3 * PART, 1, "rot"), stated(1)),
                mount=half_served(record.file, r"in VOLUME is \d+ bytes short"),
                mount_ro=mounted(), unreadable="a")


@defect("closed")
def segment_emptied(v):
    """A segment of no bytes at all."""
    file, committed = v.record("a", 0).file, v.size(v.record("a", 0).file)
    v.cut(file, 0)
    short = cut(file, 0, committed)
    header = rf"rot: {file} offset 0: the file ends within its header, after 0 bytes$"
    return says(fsck=damage(short, header), scrub=damage(header),
                deep=damage(short, header, rf"missing: {ANY_RECORD}a row names a record beyond"),
                repair=mends(lost(0, 4, "missing"), stated(4)),
                mount=half_served(file, r"in VOLUME is \d+ bytes short"), mount_ro=mounted(),
                unreadable="a")


@defect("closed")
def segment_missing(v):
    """A segment is gone."""
    file = v.record("a", 0).file
    v.remove(file)
    gone = rf"missing: {file}: the segment is gone, with \d+ bytes of live data$"
    return says(fsck=damage(gone), scrub=clean(),  # which there must be takes the key
                deep=damage(gone, rf"missing: {ANY_RECORD}the file is not there$"),
                dry_run=would_mend(lost(0, 4, "missing")),
                repair=mends(lost(0, 4, "missing"), stated(4)),
                mount=half_served(file, "is missing from VOLUME"), mount_ro=mounted(),
                unreadable="a")


@defect("closed")
def segment_extended(v):
    """Bytes behind the last record, as an unclean stop leaves them: no damage."""
    file, size = v.record("a", 0).file, v.size(v.record("a", 0).file)
    v.append(file, b"NREC" + b"\xaa" * 996)
    note = f"{file} offset {size}: "
    return says(fsck=clean(rf"{note}1000 bytes beyond the last commit: the next mount cuts them off"),
                scrub=clean(rf"{note}unverified tail of 1000 bytes: "),
                deep=clean(rf"{note}1000 bytes beyond the last commit"),
                dry_run=nothing_to_repair(), mount=mounted())


def bad_header(finding, scrub):
    """The records below have headers of their own: nothing is lost."""
    return says(fsck=damage(finding), scrub=scrub, deep=damage(finding),
                dry_run=would_mend(), repair=mends(), mount=mounted())


@defect("closed")
def segment_header_rotten(v):
    """A bit of a segment's header."""
    file = v.record("a", 0).file
    v.flip(file, 33)
    finding = rf"rot: {file} offset 0: the CRC-32 of the segment header is wrong$"
    return bad_header(finding, damage(finding))


@defect("closed")
def segment_header_forged(v):
    """A segment's header names another write session, under a CRC-32 that fits."""
    file = v.record("a", 0).file
    v.flip(file, 33)
    v.seal_segment_header(file)
    return bad_header(rf"rolled back: {file} offset 0: the file was made in another write session "
                      "than its row says$", clean())


@defect("closed")
def segments_swapped(v):
    """Two segments have changed names."""
    first, second = v.record("a", 0).file, v.record("b", 0).file
    v.swap(first, second)
    found = [rf"tampered: {file} offset 0: the file holds segment \d+$" for file in (first, second)]
    return says(fsck=damage(*found), scrub=damage(*found),
                deep=damage(*found, rf"tampered: {ANY_RECORD}record is not the one"),
                repair=mends(lost(0, 4, "tampered"), stated(4)),
                mount=mounted(), unreadable="a b")


@defect("closed")
def segment_of_another_volume(v):
    """Another volume's segment in the place of one."""
    file, other = v.record("a", 0).file, v.specimens["other"]
    v.write(file, other.read(other.record("a", 0).file))
    foreign = rf"tampered: {file} offset 0: the segment comes from another volume$"
    longer = rf"note: {file} offset \d+: \d+ bytes beyond the last commit"
    return says(fsck=damage(foreign, longer), scrub=damage(foreign),
                deep=damage(foreign, longer, rf"tampered: {ANY_RECORD}{FOREIGN_SESSION}"),
                repair=mends(lost(0, 4, "tampered"), stated(4), longer),
                mount=mounted(), unreadable="a")


@defect("closed")
def segment_of_another_volume_added(v):
    """Another volume's segment under a number that is free."""
    file, other = "segments/000000000099.seg", v.specimens["other"]
    v.write(file, other.read(other.record("a", 0).file))
    foreign = rf"tampered: {file}: the segment comes from another volume: move this file away$"
    return says(fsck=damage(foreign), deep=damage(foreign),
                scrub=damage(rf"tampered: {file} offset 0: the segment comes from another volume$"),
                mount=refused(4, rf"rolled back: .*{file} in VOLUME belongs to a write session that "
                                 "the database does not know: .*, or move the file away$"))


@defect("closed")
def segment_that_no_commit_names(v):
    """A segment that a kill left behind before anything named it: the next mount removes it."""
    v.write("segments/000000000099.seg", v.read(v.record("b", 0).file)[:40])
    note = clean("segments/000000000099.seg: no commit names this segment: the next mount removes it")
    return says(fsck=note, deep=note, mount=mounted())


@defect("closed")
def file_among_the_segments(v):
    """A file that is none of the volume's."""
    v.write("segments/notes.txt", b"not a segment\n")
    note = clean(r"segments/notes\.txt: this file is no part of the volume$")
    return says(fsck=note, scrub=note, deep=note, dry_run=nothing_to_repair(), mount=mounted())
