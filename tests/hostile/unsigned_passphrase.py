#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An attacker makes a volume that a victim's passphrase would open. No program takes it for the victim's.

The attacker copies a recipient of the victim's keyring, which is possible for any reader of that volume,
and puts it into the keyring of a volume of their own, without the MAC that only the passphrase can make.
On a machine that does not know the volume, the passphrase must not open it, and must never sign it. An
honest volume can look the same: another recipient rotated the keys, and cannot make that MAC. It opens
if the fingerprint is known, is named, or is confirmed at a terminal.
"""
import base64
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402
from keyring_by_hand import load_keyring, save_keyring  # noqa: E402
from machines import Machines, make_key, oaep_options, openssl  # noqa: E402

TEST = "unsigned_passphrase"
UNKNOWN = "does not know the volume"


def signed_count(volume):
    return sum("mac" in recipient for recipient in load_keyring(volume)["recipients"])


class Scene(Machines):
    def __init__(self, volume):
        super().__init__(volume, volume.work)
        self.ann, self.ann_public = make_key(self.work, "ann")


def make_trap(scene):
    """Makes the attacker's volume, which the victim's passphrase would open."""
    scene.on_machine("attacker")
    victim = scene.volume.path
    scene.volume.make()
    trap = os.path.join(scene.work, "trap")
    private, public = make_key(scene.work, "attacker")
    scene.run("mkfs.nacre", "--recipient", public, trap)
    keyring = load_keyring(trap)
    wrapped = base64.b64decode(keyring["recipients"][0]["wrapped_volume_key"])
    volume_key = openssl("pkeyutl", "-decrypt", "-inkey", private, *oaep_options(keyring["volume_id"]),
                         data=wrapped)
    stolen = dict(load_keyring(victim)["recipients"][0])
    stolen.pop("mac")
    der = os.path.join(scene.work, "victim.der")
    with open(der, "wb") as file:
        file.write(base64.b64decode(stolen["public_key"]))
    stolen["wrapped_volume_key"] = base64.b64encode(openssl(
        "pkeyutl", "-encrypt", "-pubin", "-keyform", "DER", "-inkey", der,
        *oaep_options(keyring["volume_id"]), data=volume_key)).decode()
    keyring["recipients"].append(stolen)
    save_keyring(trap, keyring, volume_key)
    return trap


def check_trap(scene, trap):
    refused = {"expect": 8, "words": UNKNOWN + ".*--fingerprint"}
    mount = ("mount.nacre", trap, scene.point, *scene.secret)
    for machine, command in (("a", mount), ("b", (*mount, "-o", "ro")),
                             ("c", ("fsck.nacre", trap, *scene.secret)),
                             ("d", ("nacre", "key", "list", trap, *scene.secret)),
                             ("e", ("nacre", "key", "add", trap, *scene.secret, "--recipient",
                                    scene.ann_public))):
        scene.on_machine(machine)
        for _ in range(2):  # a refusal does not make the volume known
            scene.run(*command, **refused)
    scene.on_machine("f")
    scene.run(*mount, "--fingerprint", "ab" * 32, expect=8, words="is not the volume that")
    scene.run(*mount, expect=8, words=r"fingerprint of what is there is [0-9a-f]{64}.*not confirmed",
              answers=["no"])
    scene.run(*mount, expect=8, words="not confirmed", answers=["y"])
    scene.run(*mount, **refused)
    if os.path.ismount(scene.point) or signed_count(trap) != 0:
        raise support.Failure("the victim's passphrase signed the attacker's volume")


def make_rotated(scene, name):
    """Another recipient changes the key, so the passphrase's recipient has no MAC."""
    path = os.path.join(scene.work, name)
    scene.on_machine("owner")
    scene.run("mkfs.nacre", *scene.secret, "--recipient", scene.ann_public, *support.CHEAP_KDF, path)
    if signed_count(path) != 1:
        raise support.Failure("a new volume's passphrase has no MAC")
    scene.run("nacre", "key", "rotate", path, "--identity", scene.ann)
    if signed_count(path) != 0:
        raise support.Failure("a rotation made a MAC without the passphrase")
    return path, scene.fingerprint(path, "--identity", scene.ann)


def check_honest(scene):
    # If the volume is known, nothing is asked.
    path, fingerprint = make_rotated(scene, "known")
    mount = ("mount.nacre", path, scene.point, *scene.secret)
    scene.run(*mount, words="^$")
    scene.umount()
    if signed_count(path) != 1:
        raise support.Failure("a mount of a known volume did not complete the MAC")
    scene.on_machine("elsewhere")
    scene.run("fsck.nacre", path, *scene.secret, words="first time")

    # If it is not known, its fingerprint opens it, and another fingerprint never does.
    path, fingerprint = make_rotated(scene, "named")
    mount = ("mount.nacre", path, scene.point, *scene.secret)
    scene.on_machine("stranger")
    scene.run(*mount, expect=8, words=UNKNOWN + ".*" + fingerprint)
    scene.run(*mount, "-o", "fingerprint=" + fingerprint.upper(), words="first time")
    scene.umount()
    if signed_count(path) != 1:
        raise support.Failure("a mount of a named volume did not complete the MAC")
    other = {"expect": 8, "words": f"its fingerprint is {fingerprint}, not 00"}
    for secret in (scene.secret, ("--identity", scene.ann)):
        scene.run("mount.nacre", path, scene.point, *secret, "-o", "fingerprint=" + "00" * 32, **other)
        scene.run("fsck.nacre", path, *secret, "--fingerprint", "00" * 32, **other)
    scene.run("fsck.nacre", path, *scene.secret, "--fingerprint", "00", expect=2, words="not the fingerprint")
    scene.run(*mount, "-o", "fingerprint=", expect=2, words="no value")

    # Or a user at a terminal confirms it.
    path, fingerprint = make_rotated(scene, "confirmed")
    scene.on_machine("desk")
    scene.run("mount.nacre", path, scene.point, *scene.secret, answers=["yes"], words=fingerprint)
    if signed_count(path) != 1:
        raise support.Failure("a mount of a confirmed volume did not complete the MAC")
    scene.umount()
    scene.run("fsck.nacre", path, *scene.secret, words="clean")

    # A key file has no MAC: it opens any volume, and the fingerprint is shown.
    path, fingerprint = make_rotated(scene, "by key")
    scene.on_machine("with a key")
    scene.run("fsck.nacre", path, "--identity", scene.ann, words="first time.*" + fingerprint)


def main():
    if not shutil.which("openssl"):
        support.skip(TEST, "there is no openssl(1)")
    with support.Volume(TEST) as volume:
        scene = Scene(volume)
        check_trap(scene, make_trap(scene))
        check_honest(scene)
    print("no passphrase opens or signs a volume that nothing vouches for")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
