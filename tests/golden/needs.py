# SPDX-License-Identifier: Apache-2.0
"""What the reader needs of a system; a test without it says so and is skipped."""
import ctypes
import sys


def need_reader(test):
    try:
        import cryptography  # noqa: F401
    except ImportError:
        print(f"skipped: {test}: there is no python3-cryptography")
        sys.exit(77)
    for library in ("libargon2.so.1", "libzstd.so.1"):
        try:
            ctypes.CDLL(library)
        except OSError:
            print(f"skipped: {test}: there is no {library}")
            sys.exit(77)
