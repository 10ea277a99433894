#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A removed recipient makes a volume that looks like one whose keys are being rotated.

Ann was a recipient, so she has the old volume key and a copy of the volume. After she was removed and
the keys were rotated, she makes a volume key of her own and wraps it for every recipient's public key.
She seals the old key under it, as a rotation does, and puts the result in the volume's place. A machine
that knows the volume by the old key must not take Ann's key for its successor: the machine would then
write under her key. The test also shows what a genuine rotation looks like to such a machine.
"""
import base64
import hashlib
import json
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402
from keyring_by_hand import hkdf, load_keyring, save_keyring  # noqa: E402
from machines import Machines, make_key, oaep_options, openssl  # noqa: E402

try:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError:
    support.skip("forged_rotation", "python3-cryptography is not there")

TEST = "forged_rotation"
REFUSED = "may still open the volume: a recipient that was removed"


class Scene(Machines):
    def __init__(self, volume, volume_format):
        super().__init__(volume, os.path.join(volume.work, f"format {volume_format}"))
        self.format = volume_format
        os.mkdir(self.work)
        self.path = os.path.join(self.work, "volume")
        self.ann, self.ann_public = make_key(self.work, "ann")
        self.bob, self.bob_public = make_key(self.work, "bob")

    def stage(self):
        shown = self.run("nacre", "key", "status", "--json", self.point)
        return json.loads(shown[shown.index("{"):])["stage"]

    def first_fingerprint(self, volume_key, keyring):
        volume_id = bytes.fromhex(keyring["volume_id"])
        return hashlib.sha256(volume_id + hkdf(volume_key, volume_id, b"nacre fingerprint")).hexdigest()

    def unwrapped(self, path, private):
        """The volume key, as the recipient with that private key gets it."""
        keyring = load_keyring(path)
        der = openssl("pkey", "-in", private, "-pubout", "-outform", "DER")
        wanted = hashlib.sha256(der).hexdigest()
        wrapped = next(recipient["wrapped_volume_key"] for recipient in keyring["recipients"]
                       if recipient["fingerprint"] == wanted)
        return openssl("pkeyutl", "-decrypt", "-inkey", private,
                       *oaep_options(keyring["volume_id"]), data=base64.b64decode(wrapped))


def check_older_format(scene):
    """Ann had the key of format 1, and the next one, of format 2. She shows the first as the successor
    of the second, in a keyring of format 1, with the MAC that the passphrase made then."""
    path = scene.path = os.path.join(scene.work, "moved")
    scene.on_machine("owner of moved")
    scene.run("mkfs.nacre", *scene.secret, "--format", "1", "--recipient", scene.ann_public,
              *support.CHEAP_KDF, path)
    forged = os.path.join(scene.work, "moved then")
    shutil.copytree(path, forged)
    first_key = scene.unwrapped(forged, scene.ann)
    scene.run("nacre", "key", "rotate", "--format", "2", path, *scene.secret)
    second_key = scene.unwrapped(path, scene.ann)
    scene.on_machine("pc")
    scene.run("fsck.nacre", path, *scene.secret, words="first time")
    keyring = load_keyring(forged)
    nonce = os.urandom(12)
    sealed = nonce + AESGCM(hkdf(first_key, bytes.fromhex(keyring["volume_id"]),
                                 b"nacre previous volume key")).encrypt(
        nonce, second_key, bytes.fromhex(keyring["volume_id"]))
    keyring["previous_volume_key"] = base64.b64encode(sealed).decode()
    keyring["previous_superblock"] = "00" * 32
    keyring["generation"] += 1000
    save_keyring(forged, keyring, first_key)

    def attack():
        before = scene.known("pc")
        for options in ((), ("--fingerprint", scene.first_fingerprint(first_key, keyring))):
            scene.run("fsck.nacre", path, *scene.secret, *options, expect=4, words="of format 2 when")
        if scene.known("pc") != before:
            raise support.Failure("an earlier key of format 1 is known as the next one")
    put_in_place(scene, forged, attack)
    scene.run("fsck.nacre", path, *scene.secret, words="clean")


def make_genuine(scene):
    """A volume with a passphrase, Bob, Ann, and another passphrase that always has a key pair."""
    scene.on_machine("owner")
    scene.run("mkfs.nacre", *scene.secret, "--format", str(scene.format), "--recipient",
              scene.ann_public, "--recipient", scene.bob_public, *support.CHEAP_KDF, scene.path)
    scene.other = os.path.join(scene.work, "other")
    with open(scene.other, "w", encoding="utf-8") as file:
        file.write("another passphrase\n")
    scene.run("nacre", "key", "add", scene.path, *scene.secret, "--new-passphrase-file", scene.other,
              "--label", "other", *(["--with-key-pair"] if scene.format == 2 else []),
              *support.CHEAP_KDF)
    scene.run("mount.nacre", scene.path, scene.point, *scene.secret)
    with open(os.path.join(scene.point, "file"), "wb") as file:
        file.write(os.urandom(6 << 20))
    scene.volume.unmount()
    scene.volume.wait_for_daemons(60)
    for machine, secret in (("laptop", scene.secret), ("bobs", ("--identity", scene.bob)),
                            ("others", ("--passphrase-file", scene.other)),
                            ("desk", ("--identity", scene.bob))):
        scene.on_machine(machine)
        scene.run("fsck.nacre", scene.path, *secret, words="first time")


def forge(scene):
    """Makes Ann's volume: a copy of what she had, under her own key, with the old key sealed in it."""
    then = os.path.join(scene.work, "then")
    shutil.copytree(scene.path, then, ignore=shutil.ignore_patterns("*.sock", "lock"))
    key_of_then = scene.unwrapped(then, scene.ann)
    volume_id = bytes.fromhex(load_keyring(then)["volume_id"])
    scene.on_machine("anns")
    if scene.format == 2:
        # Only the passphrase itself can give this recipient a new key.
        scene.run("nacre", "key", "rotate", then, "--identity", scene.ann, expect=8,
                  words="only the passphrase itself can give it a new key")
        scene.run("nacre", "key", "remove", then, "passphrase", "--identity", scene.ann)
    scene.run("nacre", "key", "rotate", then, "--identity", scene.ann)
    own_key, keyring = scene.unwrapped(then, scene.ann), load_keyring(then)
    nonce = os.urandom(12)
    sealed = nonce + AESGCM(hkdf(own_key, volume_id, b"nacre previous volume key")).encrypt(
        nonce, key_of_then, volume_id)
    keyring["previous_volume_key"] = base64.b64encode(sealed).decode()
    keyring["previous_superblock"] = "00" * 32
    keyring["generation"] += 1000
    save_keyring(then, keyring, own_key)
    return then, own_key


def put_in_place(scene, other, then):
    """Runs then() with the other folder where the volume lies."""
    aside = scene.path + ".aside"
    os.rename(scene.path, aside)
    os.rename(other, scene.path)
    try:
        then()
    finally:
        os.rename(scene.path, other)
        os.rename(aside, scene.path)


def check_forgery(scene):
    forged, own_key = forge(scene)

    def attack():
        for machine, secret in (("bobs", ("--identity", scene.bob)),
                                ("others", ("--passphrase-file", scene.other))):
            scene.on_machine(machine)
            before = scene.known(machine)
            mount = ("mount.nacre", scene.path, scene.point, *secret)
            for command in (mount, (*mount, "-o", "ro"), ("fsck.nacre", scene.path, *secret),
                            ("nacre", "key", "list", scene.path, *secret),
                            ("nacre", "key", "add", scene.path, *secret, "--recipient",
                             scene.ann_public)):
                scene.run(*command, expect=8, words=REFUSED + ".*--fingerprint")
            scene.run(*mount, expect=8, words="not confirmed", answers=["no"])
            if scene.known(machine) != before or os.path.ismount(scene.point):
                raise support.Failure(f"machine {machine} took the forged key for the next one")
        scene.on_machine("laptop")
        scene.run("fsck.nacre", scene.path, *scene.secret,
                  expect=16 if scene.format == 2 else 8,
                  words="does not open this volume" if scene.format == 2 else REFUSED)
        if any("mac" in recipient or ("sealed_volume_key" in recipient)
               for recipient in load_keyring(scene.path)["recipients"]):
            raise support.Failure("a passphrase signed the forged key")
    put_in_place(scene, forged, attack)


def check_genuine(scene):
    """Ann is removed, and the keys of a mounted volume are rotated. The rotation is stopped half way."""
    scene.on_machine("owner")
    scene.run("nacre", "key", "remove", scene.path, "ann.pub", *scene.secret)
    scene.run("mount.nacre", scene.path, scene.point, *scene.secret)
    if scene.format == 2:
        # The daemon has no passphrase, but needs it for a recipient without a key pair.
        scene.run("nacre", "key", "rotate", "--no-wait", "--rate", "4K", scene.point, "--identity",
                  scene.bob, expect=8, words="only the passphrase itself can give it a new key")
    begin = ("nacre", "key", "rotate", "--no-wait", scene.point, *scene.secret)
    if scene.format == 2:
        # All records are read before the keys change.
        scene.run(*begin, "--rate", "1M", words="all records are read first")
        while scene.stage() == "survey":
            time.sleep(0.05)
    else:
        scene.run(*begin, "--rate", "4K")
    scene.run("nacre", "key", "rotate", "--pause", scene.point)
    scene.volume.unmount()
    scene.volume.wait_for_daemons(60)
    fingerprint = scene.fingerprint(scene.path, *scene.secret)
    if "previous_volume_key" not in load_keyring(scene.path):
        raise support.Failure("the rotation is not under way any more")

    # The seal of a passphrase is enough. In format 1 the passphrase has no MAC, because the daemon
    # that rotated had no passphrase.
    scene.on_machine("laptop")
    if scene.format == 2:
        scene.run("fsck.nacre", scene.path, *scene.secret, words="are being rotated")
    else:
        scene.run("fsck.nacre", scene.path, *scene.secret, expect=8, words=REFUSED)
    # A key file has neither MAC nor seal. The fingerprint must be named, or confirmed.
    scene.on_machine("bobs")
    check = ("fsck.nacre", scene.path, "--identity", scene.bob)
    scene.run(*check, expect=8, words=REFUSED + ".*" + fingerprint)
    scene.run(*check, "--fingerprint", "ab" * 32, expect=8, words="is not the volume that")
    scene.run(*check, "--fingerprint", fingerprint, words="are being rotated")
    scene.run(*check, words="clean")
    scene.on_machine("desk")
    scene.run(*check, expect=8, words="not confirmed", answers=["no"])
    scene.run(*check, words="are being rotated", answers=["yes"])
    scene.on_machine("others")
    scene.run("fsck.nacre", scene.path, "--passphrase-file", scene.other, expect=8, words=REFUSED)

    # When the rotation is done, the older key is in no keyring any more.
    scene.on_machine("owner")
    scene.run("nacre", "key", "rotate", scene.path, *scene.secret, words="everything is sealed")
    scene.on_machine("late")
    late = os.path.join(scene.work, "machine", "late", "nacre")
    os.makedirs(late)
    with open(os.path.join(late, "known_volumes"), "w", encoding="utf-8") as file:
        file.write(scene.first_line)
    if scene.format == 2:
        scene.run("fsck.nacre", scene.path, *scene.secret, words="were rotated")
    else:
        scene.run("fsck.nacre", scene.path, *scene.secret, expect=8, words="another fingerprint")


def main():
    if not shutil.which("openssl"):
        support.skip(TEST, "there is no openssl(1)")
    for volume_format in (1, 2):
        with support.Volume(TEST) as volume:
            scene = Scene(volume, volume_format)
            make_genuine(scene)
            scene.first_line = scene.known("laptop")
            check_forgery(scene)
            check_genuine(scene)
            if volume_format == 1:
                check_older_format(scene)
    print("no machine takes the key of a removed recipient for the next one")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
