# SPDX-License-Identifier: Apache-2.0
"""Defects of superblock, keyring and lock.

Superblock and keyring lie there twice: one bad copy is damage, but the volume opens with the other.
A wrong CRC-32 is rot. What was changed under a right one is found by the MAC, which takes the key:
a scrub alone sees nothing of it.
"""
import os

from verdicts import clean, damage, defect, mends, mounted, refused, says, would_mend

BOTH = {name: (name, f"{name}.copy") for name in ("superblock", "keyring")}
WRONG_CRC = "the CRC-32 is wrong"


def one_copy(finding):
    """The other one is used."""
    warning = finding.partition(": ")[2]
    return says(fsck=damage(finding), scrub=damage(finding), deep=damage(finding),
                dry_run=would_mend(), repair=mends(),
                mount=mounted(rf"^mount\.nacre: warning: VOLUME/{warning}"))


@defect("closed")
def superblock_rotten(v):
    """A bit of the superblock's first copy."""
    v.flip_field("superblock", "mac")
    return one_copy(f"rot: superblock: {WRONG_CRC}; its other copy is used$")


@defect("closed")
def superblock_copy_rotten(v):
    """A bit of the superblock's second copy."""
    v.flip_field("superblock.copy", "mac")
    return one_copy(rf"rot: superblock\.copy: {WRONG_CRC}; its other copy is used$")


@defect("closed")
def superblock_missing(v):
    """The superblock's first copy is gone."""
    v.remove("superblock")
    return one_copy("missing: superblock: the file is missing; its other copy is used$")


@defect("closed")
def keyring_rotten(v):
    """A bit of the keyring's first copy."""
    v.flip_field("keyring", "mac")
    return one_copy(f"rot: keyring: {WRONG_CRC}; its other copy is used$")


@defect("closed")
def keyring_truncated(v):
    """The keyring's first copy ends early."""
    v.cut("keyring", 1000)
    return one_copy("rot: keyring: not a JSON object; its other copy is used$")


@defect("closed")
def keyring_copy_missing(v):
    """The keyring's second copy is gone."""
    v.remove("keyring.copy")
    return one_copy(r"missing: keyring\.copy: the file is missing; its other copy is used$")


@defect("closed")
def superblocks_rotten(v):
    """A bit of each copy of the superblock."""
    for file in BOTH["superblock"]:
        v.flip_field(file, "mac")
    bad = rf"superblock: {WRONG_CRC}; and VOLUME/superblock\.copy: {WRONG_CRC}; put one back from a "
    return says(keyed=refused(4, f"corrupt: VOLUME/{bad}backup$"), scrub=damage(f"rot: {bad}backup$"))


@defect("closed")
def keyrings_rotten(v):
    """A bit of each copy of the keyring."""
    for file in BOTH["keyring"]:
        v.flip_field(file, "mac")
    bad = rf"keyring: {WRONG_CRC}; and VOLUME/keyring\.copy: {WRONG_CRC}; put one back from a backup$"
    return says(keyed=refused(4, f"corrupt: VOLUME/{bad}"), scrub=damage(f"rot: {bad}"))


@defect("closed")
def superblocks_missing(v):
    """Both copies of the superblock are gone."""
    v.remove(*BOTH["superblock"])
    gone = "both copies of the superblock are missing; put one back from a backup$"
    return says(keyed=refused(4, f"VOLUME: {gone}"), scrub=damage(f"missing: superblock: {gone}"))


@defect("closed")
def keyrings_missing(v):
    """Both copies of the keyring are gone."""
    v.remove(*BOTH["keyring"])
    gone = ("both copies of the keyring are missing, and without one nobody can open the volume: "
            "'nacre key restore' puts one back from a backup$")
    return says(keyed=refused(4, gone), scrub=damage(f"missing: VOLUME: {gone}"))


@defect("closed")
def superblock_forged(v):
    """Another label in one copy of the superblock, under a CRC-32 that fits."""
    v.edit_document("superblock", lambda fields: fields.update(label="forged"))
    differ = (r"VOLUME/superblock and VOLUME/superblock\.copy are both of generation 1 but differ, "
              "so one of them was changed. Move one away: the other opens the volume if it is the "
              "genuine one$")
    found = refused(4, f"tampered: {differ}")
    return says(fsck=found, scrub=damage(f"tampered: {differ}"), deep=found, dry_run=found)


@defect("closed")
def superblock_forged_and_alone(v):
    """The copy that somebody changed is left alone: the volume does not open with it."""
    v.edit_document("superblock", lambda fields: fields.update(label="forged"))
    v.remove("superblock.copy")
    return says(keyed=refused(4, FORGED_SUPERBLOCK))


FORGED_SUPERBLOCK = ("tampered: VOLUME: the superblock was not written by a holder of the volume "
                     "key; put the true one back from a backup$")


@defect("closed")
def superblocks_forged(v):
    """Another codec in both copies of the superblock, under CRC-32s that fit."""
    for file in BOTH["superblock"]:
        v.edit_document(file, lambda fields: fields.update(codec="lz77"))
    return says(keyed=refused(4, FORGED_SUPERBLOCK), scrub=clean())


@defect("closed")
def superblock_forged_to_be_newer(v):
    """One copy of the superblock has a higher generation, and no MAC that fits."""
    v.edit_document("superblock.copy", lambda fields: fields.update(generation=9, label="forged"))
    found = refused(4, FORGED_SUPERBLOCK)
    return says(fsck=found, deep=found, dry_run=found,
                scrub=damage(r"rolled back: VOLUME/superblock is of generation 1, "
                             r"VOLUME/superblock\.copy of 9: an update was interrupted, or an "
                             "older file was put back; the newer one is used$"))


OTHER_VOLUMES = ("tampered: VOLUME: superblock and keyring are of different volumes: one was put in "
                 "the other's place; put the true one back from a backup$")


@defect("closed")
def superblocks_of_another_volume(v):
    """Both copies of another volume's superblock."""
    for file in BOTH["superblock"]:
        v.take(v.specimens["other"], file)
    return says(keyed=refused(4, OTHER_VOLUMES),
                scrub=damage(r"tampered: segments/\d+\.seg offset 0: the segment comes from another "
                             "volume$"))


@defect("closed")
def keyrings_of_another_volume(v):
    """Both copies of the keyring of another volume, which has the same passphrase."""
    for file in BOTH["keyring"]:
        v.take(v.specimens["other"], file)
    return says(keyed=refused(4, OTHER_VOLUMES))


@defect("closed")
def newer_version(v):
    """A volume of a version of the format that is yet to come: no damage, and not for this program."""
    for file in BOTH["superblock"]:
        v.edit_document(file, lambda fields: fields.update(version=2))
    newer = refused(8, "VOLUME/superblock: format version 2 was made by a newer Nacre; this one reads "
                       "up to version 1$")
    return says(keyed=newer, scrub=newer, repair=newer)


@defect("closed")
def unknown_feature(v):
    """A volume with an incompatible feature that this program does not have."""
    for file in BOTH["superblock"]:
        v.edit_document(file, lambda fields: fields["features"].update(incompatible=["braids"]))
    newer = refused(8, 'VOLUME/superblock: the volume uses the feature "braids", which this Nacre does '
                       "not have: open it with a newer one$")
    return says(keyed=newer, scrub=newer, repair=newer)


@defect("closed")
def unknown_cipher(v):
    """A volume whose superblock names a cipher that this program does not have."""
    for file in BOTH["superblock"]:
        v.edit_document(file, lambda fields: fields.update(cipher="rot-13"))
    newer = refused(8, 'VOLUME/superblock: the volume uses the cipher "rot-13", which this Nacre does '
                       "not have: open it with a newer one$")
    return says(keyed=newer, scrub=newer, repair=newer)


FORGED_KEYRING = ("tampered: VOLUME: the keyring was not written by a holder of the volume key; "
                  "'nacre key restore' puts a keyring back that was backed up$")


@defect("closed")
def keyring_label_edited(v):
    """Another label of a recipient, in both copies, under CRC-32s that fit."""
    for file in BOTH["keyring"]:
        v.edit_document(file, lambda fields: fields["recipients"][0].update(label="mallory"))
    return says(keyed=refused(4, FORGED_KEYRING), scrub=clean())


@defect("closed")
def keyring_recipient_removed(v):
    """A recipient is taken out of both copies, under CRC-32s that fit."""
    for file in BOTH["keyring"]:
        v.edit_document(file, lambda fields: fields["recipients"].pop())
    return says(keyed=refused(4, FORGED_KEYRING), scrub=clean())


@defect("closed")
def keyring_recipient_substituted(v):
    """What another volume's keyring wraps for its recipient stands in this one's entry."""
    theirs = v.specimens["other"].document("keyring")["recipients"][0]["wrapped_volume_key"]
    for file in BOTH["keyring"]:
        v.edit_document(file, lambda fields: fields["recipients"][0].update(
            wrapped_volume_key=theirs))
    return says(keyed=refused(4, r"tampered: VOLUME: recipient [0-9a-f]{16} of the keyring was "
                                 "changed: the MAC is not that of this passphrase and volume; "
                                 "'nacre key restore'"), scrub=clean())


@defect("closed")
def keyring_put_back(v):
    """Both copies of the keyring as they were before a recipient was added."""
    for file in BOTH["keyring"]:
        v.take(v.specimens["earlier"], file)
    older = damage("rolled back: keyring: the keyring is of generation 1, but the volume was used with "
                   "generation 2: an older one was put back. Restore the newer keyring$")
    return says(fsck=older, scrub=clean(), deep=older,
                dry_run=refused(4, "rolled back: .*: put the newer one back first; nothing was changed$"),
                repair=refused(4, "rolled back: .*: put the newer one back first; nothing was changed$"),
                mount=refused(4, "rolled back: .* was put back to an older state; restore the newer "
                                 "keyring$"))


@defect("closed")
def keyring_copy_put_back(v):
    """One copy of the keyring as it was before a recipient was added."""
    v.take(v.specimens["earlier"], "keyring.copy")
    older = (r"VOLUME/keyring\.copy is of generation 1, VOLUME/keyring of 2: an update was "
             "interrupted, or an older file was put back; the newer one is used$")
    found = damage(f"rolled back: {older}")
    return says(fsck=found, scrub=found, deep=found, dry_run=would_mend(), repair=mends(),
                mount=mounted(rf"^mount\.nacre: warning: {older}"))


@defect("closed")
def kdf_beyond_all_bounds(v):
    """The key derivation asks for a tebibyte of memory: refused before any of it is used."""
    for file in BOTH["keyring"]:
        v.edit_document(file, lambda fields: fields["recipients"][0]["kdf"].update(
            memory_kib=2**30))
    why = ("keyring: recipient 1: the cost of the key derivation is outside what Nacre ever writes, so "
           'the keyring is damaged or was changed: the field "memory_kib" is 1073741824, not '
           r"between \d+ and \d+; and .*; put one back from a backup$")
    return says(keyed=refused(4, f"corrupt: VOLUME/{why}"), scrub=damage(f"rot: {why}"))


@defect("closed")
def kdf_edited(v):
    """Another cost of the key derivation, within the bounds: no passphrase fits any more."""
    for file in BOTH["keyring"]:
        v.edit_document(file, lambda fields: fields["recipients"][0]["kdf"].update(passes=2))
    return says(keyed=refused(16, "wrong key: VOLUME: the passphrase does not open this volume, or "
                                    "the keyring was changed$"),
                scrub=clean())


@defect("closed")
def passphrase_wrong(v):
    """A sound volume, and a person who does not have its passphrase."""
    del v
    wrong = refused(16, "wrong key: VOLUME: the passphrase does not open this volume, or "
                    "the keyring was changed$")
    return says(passphrase="another one", keyed=wrong, repair=wrong, scrub=clean())


@defect("closed")
def lock_held(v):
    """Somebody else has the volume for writing."""
    v.write("lock", b'{"pid": 1, "host": "elsewhere", "since": "2026-01-02T03:04:05Z", '
                    b'"mountpoint": "/srv/data", "mode": "rw"}\n')
    busy = refused(32, "VOLUME: already mounted at /srv/data by process 1 on host elsewhere since "
                       "2026-01-02T03:04:05Z")
    return says(is_held=True, keyed=busy, scrub=busy, repair=busy)


@defect("closed")
def lock_held_by_nobody_known(v):
    """Somebody else has the volume for writing, and the lock file does not say who."""
    v.write("lock", b"\xff\x00{]\n")
    busy = refused(32, "VOLUME: the volume is already in use, and the lock file does not say by whom")
    return says(is_held=True, keyed=busy, scrub=busy)


@defect("closed")
def lock_of_nonsense(v):
    """The lock file holds what nobody wrote: nothing depends on it while nobody has the lock."""
    v.write("lock", b"\xff\x00{]\n" * 1000)
    return says(fsck=clean(), scrub=clean(), mount=mounted())


@defect("closed")
def lock_missing(v):
    """The lock file is gone; whoever locks the volume makes it."""
    v.remove("lock")
    return says(fsck=clean(), scrub=clean(), mount=mounted())


NO_LOCK = refused(4, "corrupt: VOLUME/lock: not a regular file: move it away")


@defect("closed")
def lock_is_a_folder(v):
    """A folder where the lock file should be."""
    v.remove("lock")
    os.mkdir(v.full("lock"))
    return says(keyed=NO_LOCK, scrub=NO_LOCK)


@defect("closed")
def lock_leads_elsewhere(v):
    """A symbolic link where the lock file should be: nobody follows it."""
    v.remove("lock")
    os.symlink("../elsewhere", v.full("lock"))
    return says(keyed=NO_LOCK, scrub=NO_LOCK)
