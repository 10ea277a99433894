# SPDX-License-Identifier: Apache-2.0
"""Commands run as if on several machines: each machine has a list of known volumes of its own."""
import json
import os
import re
import subprocess
import sys

import volume as support

PROMPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools",
                       "answer_prompts.py")


def openssl(*arguments, data=None):
    return subprocess.run(["openssl", *arguments], input=data, check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def make_key(folder, name):
    """Paths of a new private key and of its public key."""
    private, public = (os.path.join(folder, name + end) for end in (".pem", ".pub"))
    openssl("genrsa", "-out", private, "2048")
    openssl("pkey", "-in", private, "-pubout", "-out", public)
    return private, public


def oaep_options(volume_id):
    """With which a recipient's public key wraps the volume key."""
    label = ("nacre volume key" + volume_id).encode().hex()
    return [word for option in ("rsa_padding_mode:oaep", "rsa_oaep_md:sha256", "rsa_mgf1_md:sha256",
                                "rsa_oaep_label:" + label) for word in ("-pkeyopt", option)]


class Machines:
    """volume: the Volume whose programs, mount point and passphrase are used. folder: where the
    machines' lists are."""

    def __init__(self, volume, folder):
        self.volume, self.work, self.point = volume, folder, volume.mnt
        self.secret = ["--passphrase-file", volume.passphrase]

    def on_machine(self, name):
        """The commands that follow run on that machine. A new name is a machine that knows no volume."""
        self.volume.environment["XDG_CONFIG_HOME"] = self.config(name)

    def config(self, name):
        return os.path.join(self.work, "machine", name)

    def known(self, name):
        """The list of a machine."""
        try:
            with open(os.path.join(self.config(name), "nacre", "known_volumes"),
                      encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def run(self, *command, expect=0, words="", without=None, answers=()):
        """Runs a command to its end and returns what it said. words: a pattern that this must match.
        answers: what a person at a terminal types."""
        if answers:
            command = (sys.executable, PROMPTS, *answers, "--",
                       os.path.join(self.volume.bin, command[0]), *command[1:])
            done = subprocess.run(command, env=self.volume.environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                                  timeout=300 * support.PATIENCE)
            status, text = done.returncode, done.stdout.decode(errors="replace")
        else:
            status, text = self.volume.run(*command, limit_s=300, expect=None)
        if status != expect or not re.search(words, text, re.DOTALL):
            raise support.Failure(f"{' '.join(command)}: ended with {status}, not {expect}, or does "
                                  f"not say '{words}': {text}")
        if without and without in text:
            raise support.Failure(f"{' '.join(command)}: says '{without}': {text}")
        return text

    def fingerprint(self, path, *secret):
        shown = self.run("nacre", "key", "list", "--json", path, *secret)
        return json.loads(shown[shown.index("{"):])["volume_fingerprint"]

    def umount(self):
        self.volume.unmount()
        self.volume.wait_for_daemons(60)
