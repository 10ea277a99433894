# SPDX-License-Identifier: Apache-2.0
"""How a defect is written down, and the words for what a program must say of it.

A defect is a function that breaks a specimen and returns what must be said of it:

    @defect("closed")
    def record_rotten(v):
        \"""One sentence.\"""
        v.flip(…)
        return says(fsck=clean(), scrub=damage("rot: …"), …)

What is tried, each on a fresh copy (what is left out is not):

    fsck      fsck.nacre without options     dry_run   fsck.nacre --repair --dry-run
    scrub     fsck.nacre --scrub, no key     repair    fsck.nacre --repair, then --deep
    deep      fsck.nacre --deep              mount, mount_ro   mount.nacre, the same with -o ro
    keyed     fsck, deep, dry_run and mount, unless one of them is given by itself
"""
from typing import NamedTuple, Optional, Tuple

FSCK_MODES = {"fsck": (), "scrub": ("--scrub",), "deep": ("--deep",),
              "dry_run": ("--repair", "--dry-run"), "repair": ("--repair",)}
MOUNT_MODES = {"mount": (), "mount_ro": ("-o", "ro")}
KEYED = ("fsck", "deep", "dry_run", "mount")


class Said(NamedTuple):
    """A status, and regular expressions of what is said.

    Each line of the report that is a finding must be one of `findings` from its beginning, and each
    of these must be there; without them (None) nothing is asked of findings. `words` must occur.
    """
    status: int
    findings: Optional[Tuple[str, ...]] = None
    words: Tuple[str, ...] = ()


class Expected(NamedTuple):
    modes: dict      # mode -> Said
    unreadable: str  # names of the files of which a mount gives EIO; all others are whole
    passphrase: str
    is_held: bool    # somebody has the volume meanwhile


def clean(*notes):
    return Said(0, tuple(f"note: {note}" for note in notes), ("^VOLUME: clean$",))


def nothing_to_repair():
    return Said(0, (), ("^VOLUME: nothing to repair$",))


def damage(*findings):
    """It says what to do next, too."""
    return Said(4, findings, (r"^VOLUME: \d+ errors? found, nothing was changed$",
                              r"^To see (what a repair would do|which files are hit, with the key): "
                              r"fsck\.nacre --"))


def refused(status, words):
    """Nothing more can be said than this."""
    return Said(status, (), (words,))


def would_mend(*findings):
    return Said(4, findings, (r"would repair it, .*; nothing was changed$",))


def mends(*findings):
    return Said(1, findings, (r": repaired in \d+ steps?, ", r": clean$"))


def mounted(*words):
    return Said(0, None, words)


def says(*, unreadable="", passphrase=None, is_held=False, keyed=None, **modes):
    if keyed is not None:
        modes = {**{mode: keyed for mode in KEYED}, **modes}
    unknown = set(modes) - set(FSCK_MODES) - set(MOUNT_MODES)
    if unknown or not modes:
        raise ValueError(f"no such modes: {unknown}" if unknown else "nothing is tried")
    return Expected(modes, unreadable, passphrase, is_held)


class Defect(NamedTuple):
    name: str
    specimen: str
    sentence: str
    make: object


DEFECTS = {}


def defect(specimen):
    def register(make):
        if make.__name__ in DEFECTS:
            raise ValueError(f"two defects named {make.__name__}")
        DEFECTS[make.__name__] = Defect(make.__name__, specimen, " ".join(make.__doc__.split()), make)
        return make
    return register
