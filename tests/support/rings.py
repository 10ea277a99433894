# SPDX-License-Identifier: Apache-2.0
"""FUSE over io_uring, switched on for a test."""
import contextlib
import fcntl
import os
import sys

from volume import Failure, skip

SWITCH = "/sys/module/fuse/parameters/enable_uring"


def why_no_rings():
    if not os.path.exists(SWITCH):
        return "this kernel has no FUSE over io_uring"
    if not os.access(SWITCH, os.W_OK):
        return "only root can switch FUSE over io_uring on"
    return None


def _turn(value):
    """Not while a test relies on it as it is (fuse_uring_test.cpp); gives what it was."""
    with open(SWITCH, "r+", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        before = f.read(1)
        f.seek(0)
        f.write(value)
    return before


@contextlib.contextmanager
def rings(name):
    """A mount can have them meanwhile. Where none can the test is skipped."""
    if why_no_rings():
        skip(f"{name}, io_uring", why_no_rings())
    before = _turn("Y")
    try:
        yield
    finally:
        _turn(before)


def over_chosen_transport(name, run):
    """run(name, "off") over /dev/fuse, or run(name, "on") over io_uring where the script's only argument says so.
    The exit status."""
    try:
        if sys.argv[1:] != ["--io-uring"]:
            run(name, "off")
            return 0
        with rings(name):
            run(f"{name}-uring", "on")
    except Failure as failure:
        print(f"FAILED: {failure}")
        return 1
    return 0
