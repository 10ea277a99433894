#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Another user's mount poses as the mount of root's volume, and no command believes it.

Any user may mount something of type fuse.nacre and answer on a control socket of their own. Here user
65534, the liar, answers for root's volume: that the keyring was changed, that the keys were rotated,
that the fingerprint is dead…dead. Root's commands must do their work on the volume itself, and must not
remember what the liar said.
"""
import base64
import ctypes
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402

TEST = "lying_daemon"
LIAR = 65534
FINGERPRINT = "dead" * 16
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 1 << 18, 2
libc = ctypes.CDLL(None, use_errno=True)


def call(what, *arguments):
    if getattr(libc, what)(*arguments) != 0:
        support.skip(TEST, f"{what}: {os.strerror(ctypes.get_errno())}")


def mount_as_liar(point):
    """Mounts as fusermount3 would for the liar. No daemon serves the mount: the commands read no file."""
    device = os.open("/dev/fuse", os.O_RDWR)
    data = f"fd={device},rootmode=40000,user_id={LIAR},group_id={LIAR}"
    call("mount", b"nacre", point.encode(), b"fuse.nacre", 0, data.encode())
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            parts = line.split()
            if parts[4] == point:
                return device, parts[2].replace(":", "-")
    sys.exit("the mount is not in the table")


def answer(request, volume, point, generation):
    command = request.get("command")
    reply = {"ok": True, "volume": volume, "mountpoint": point, "volume_id": "00" * 16,
             "read_only": False, "keyring_generation": generation, "fingerprint": FINGERPRINT,
             "rotation": {"state": "none", "epoch": 2, "stage": "", "done_bytes": 0}}
    return command, reply


def serve(listener, said, volume, point):
    """Runs in a process of the liar's until it is killed. Each command that it gets goes to a file."""
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as lines:
            try:
                request = json.loads(lines.readline() or "{}")
                command, reply = answer(request, volume, point, 1)
                os.write(said, f"{command}\n".encode())
                if command == "replace_keyring":
                    lines.readline()
                lines.write(json.dumps(reply) + "\n")
                lines.flush()
            except (OSError, ValueError):
                pass


def start_liar(folder, name, volume, point, said_path):
    listener = socket.socket(socket.AF_UNIX)
    said = os.open(said_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    pid = os.fork()
    if pid > 0:
        os.close(said)
        listener.close()
        return pid
    status = 1
    try:
        os.setgroups([])
        os.setgid(LIAR)
        os.setuid(LIAR)
        os.umask(0o077)  # commands ask only if each folder on the way is closed to others
        os.makedirs(folder)
        listener.bind(os.path.join(folder, name + ".sock"))
        listener.listen()
        os.write(said, b"ready\n")
        serve(listener, said, volume, point)
    finally:
        os._exit(status)


class Scene:
    def __init__(self, work):
        self.work = work
        self.volume = os.path.join(work, "volume")
        self.point = os.path.join(work, "mnt")
        self.secret = os.path.join(work, "passphrase")
        self.bob = ""
        self.said_path = os.path.join(work, "said")
        self.environment = dict(os.environ, HOME=os.path.join(work, "home"))
        for name in ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            self.environment.pop(name, None)
        os.makedirs(self.environment["HOME"])
        with open(os.path.join(self.environment["HOME"], ".profile"), "w", encoding="utf-8"):
            pass  # in an empty home Nacre would make no folder
        os.makedirs(self.point)
        with open(self.secret, "w", encoding="utf-8") as file:
            file.write("open sesame\n")

    def run(self, program, *arguments):
        done = subprocess.run([os.path.join(support.bin_folder(), program), *arguments],
                              env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=300 * support.PATIENCE)
        return done.returncode, done.stdout

    def keyring(self):
        with open(os.path.join(self.volume, "keyring"), encoding="utf-8") as file:
            return json.load(file)

    def said(self):
        with open(self.said_path, encoding="utf-8") as file:
            return file.read().split()

    def pins(self):
        path = os.path.join(self.environment["HOME"], ".config", "nacre", "known_volumes")
        with open(path, encoding="utf-8") as file:
            return file.read()


def expect(condition, what, *details):
    if not condition:
        print("FAILED:", what, *details, sep="\n")
        raise support.Failure(what)


def fingerprint_of_bob(keyring):
    """The fingerprint of the recipient without a passphrase."""
    keys = [base64.b64decode(recipient["public_key"]) for recipient in keyring["recipients"]
            if "private_key" not in recipient]
    expect(len(keys) == 1, "bob is a recipient", json.dumps(keyring["recipients"], indent=1))
    return hashlib.sha256(keys[0]).hexdigest()


def check(scene):
    key = ["--passphrase-file", scene.secret]
    before = scene.keyring()
    status, text = scene.run("nacre", "key", "remove", scene.volume, scene.bob, *key)
    expect(status == 0, "the recipient can be removed", text)
    now = scene.keyring()
    expect(now["generation"] > before["generation"] and len(now["recipients"]) == 1,
           "what was removed is gone from the keyring on the disk", text)

    status, text = scene.run("nacre", "key", "rotate", scene.volume, *key)
    expect(status == 0 and FINGERPRINT not in text, "the keys can be rotated", text)
    epochs = [epoch["number"] for epoch in scene.keyring()["epochs"]]
    expect(epochs == [2], "the keys were rotated on the disk", f"epochs {epochs}", text)
    expect(FINGERPRINT not in scene.pins(), "no fingerprint of the liar's is remembered")

    # Commands that name the liar's mount may ask the liar. They refuse it, because the liar may not
    # answer for root's volume.
    for command in (["key", "remove", scene.point, scene.bob, *key], ["backup", scene.point,
                    os.path.join(scene.work, "backup")], ["key", "rotate", scene.point, *key]):
        status, text = scene.run("nacre", *command)
        expect(status == 8 and "neither root nor the owner" in text,
               "nacre " + " ".join(command[:2]) + " of the liar's mount is refused", str(status), text)
    expect(FINGERPRINT not in scene.pins(), "no fingerprint of the liar's is remembered")
    expect("info" in scene.said(), "the liar was asked which volume it serves")
    wrong = {"rotate", "replace_keyring", "begin_backup"} & set(scene.said())
    expect(not wrong, "nothing but a question was ever sent to the liar", str(wrong))


def main():
    if os.geteuid() != 0:
        support.skip(TEST, "it needs root, to mount for another user")
    if not os.path.exists("/dev/fuse") or not shutil.which("openssl"):
        support.skip(TEST, "it needs /dev/fuse and openssl(1)")
    top = f"/tmp/nacre-{LIAR}"
    for folder in (top + "/nacre", top):  # empty if that user's mounts have ended
        try:
            os.rmdir(folder)
        except OSError:
            pass
    if os.path.exists(top):
        support.skip(TEST, f"there is a {top} already")
    call("unshare", CLONE_NEWNS)
    call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    support.leave_others_mounts()
    work = tempfile.mkdtemp(prefix="nacre-lying-daemon.")
    os.chmod(work, 0o711)
    liar = 0
    scene = Scene(work)
    try:
        private, public = os.path.join(work, "bob.pem"), os.path.join(work, "bob.pub")
        subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True,
                       stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
        status, text = scene.run("mkfs.nacre", "--passphrase-file", scene.secret, "--recipient",
                                 public, *support.CHEAP_KDF, scene.volume)
        expect(status == 0, "the volume can be made", text)
        scene.bob = fingerprint_of_bob(scene.keyring())
        device, name = mount_as_liar(scene.point)
        liar = start_liar(os.path.join(top, "nacre"), name, scene.volume, scene.point,
                          scene.said_path)
        support.wait_for(lambda: "ready" in scene.said(), 300, "the liar does not serve")
        check(scene)
        os.close(device)
    finally:
        if liar > 0:
            os.kill(liar, signal.SIGKILL)
            os.waitpid(liar, 0)
        libc.umount2(scene.point.encode(), MNT_DETACH)
        shutil.rmtree(top, ignore_errors=True)
        shutil.rmtree(work, ignore_errors=True)
    print("no command believed another user's mount")


if __name__ == "__main__":
    try:
        main()
    except support.Failure:
        sys.exit(1)
