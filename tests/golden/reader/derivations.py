# SPDX-License-Identifier: Apache-2.0
"""Every text that a key, a label or a MAC is bound to (FORMAT.md, Keys; keyring).

A volume opens with exactly these: tests/golden/read_volume_test.py changes each in turn.
"""

DERIVATIONS = {
    # HKDF-SHA256(volume key, salt = volume id, info), 32 bytes
    "superblock mac": b"nacre superblock mac",
    "keyring mac": b"nacre keyring mac",
    "epoch wrap": b"nacre epoch wrap",
    "previous volume key": b"nacre previous volume key",
    # HKDF-SHA256(epoch key, salt = session salt, info + the suite's name), as long as its key
    "write session": b"nacre write session ",
    # HKDF-SHA256(epoch key, salt = file salt, info), 32 bytes
    "database file": b"nacre database file",
    # the same of an epoch of format 2, before the file's name
    "database file 2": b"nacre database file 2 ",
    # and of a padded file there
    "padded database file 2": b"nacre padded database file 2 ",
    # RSA-OAEP label, before the volume id in hexadecimal
    "oaep label": b"nacre volume key",
    # additional data of a passphrase's private key
    "private key": b"nacre private key",
    # of a passphrase of format 2: HKDF-SHA256(X, salt = volume id, info), 32 bytes
    "passphrase check": b"nacre passphrase check",
    "passphrase seal": b"nacre passphrase seal",
    # begins its binding, and its fingerprint if it has no key pair
    "passphrase recipient": b"nacre passphrase recipient",
    # HMAC-SHA256 under K2, before volume id, fingerprint and wrapped volume key
    "recipient mac": b"nacre recipient",
}
# Volume subkeys of which a reader has no use.
OTHER_SUBKEYS = {
    "fingerprint": b"nacre fingerprint",
    "repair plan": b"nacre repair plan",
}
