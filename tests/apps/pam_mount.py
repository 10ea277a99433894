#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pam_mount, as packaging/examples/pam_mount.conf.xml sets it up: a login mounts its user's volume with
the password that it asked for, and the end of its session unmounts it. A wrong password mounts nothing and
does not hang.

All this happens in a mount namespace of its own, in which /etc/pam.d and /etc/security are the test's.
NACRE_PAM_MOUNT is the folder in which the package libpam-mount was unpacked, if it is not installed.
"""
import ctypes
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402

EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../packaging/examples/pam_mount.conf.xml")
PACKAGE = os.environ.get("NACRE_PAM_MOUNT", "/")
PASSWORD = b"correct horse battery staple"
USER = "nobody"
PROMPT_ECHO_OFF, PROMPT_ECHO_ON = 1, 2
SUCCESS = 0


class Message(ctypes.Structure):
    _fields_ = [("style", ctypes.c_int), ("text", ctypes.c_char_p)]


class Response(ctypes.Structure):
    _fields_ = [("text", ctypes.c_void_p), ("code", ctypes.c_int)]


CONVERSE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.POINTER(Message)),
                            ctypes.POINTER(ctypes.POINTER(Response)), ctypes.c_void_p)


class Conversation(ctypes.Structure):
    _fields_ = [("converse", CONVERSE), ("data", ctypes.c_void_p)]


class Login:
    """A program that logs somebody in (pam(3))."""

    def __init__(self, password):
        libc = ctypes.CDLL(None)
        libc.calloc.restype = libc.strdup.restype = ctypes.c_void_p

        def converse(count, messages, responses, _):
            answers = ctypes.cast(libc.calloc(count, ctypes.sizeof(Response)), ctypes.POINTER(Response))
            for number in range(count):
                if messages[number].contents.style in (PROMPT_ECHO_OFF, PROMPT_ECHO_ON):
                    answers[number].text = libc.strdup(password)
            responses[0] = answers
            return SUCCESS

        self.pam = ctypes.CDLL("libpam.so.0")
        self.conversation = Conversation(CONVERSE(converse), None)
        self.handle = ctypes.c_void_p()
        self.do("pam_start", b"nacre-test", USER.encode(), ctypes.byref(self.conversation),
                ctypes.byref(self.handle))

    def do(self, call, *arguments):
        result = getattr(self.pam, call)(*arguments)
        expect(result == SUCCESS, f"{call}: error {result} of PAM")

    def open(self):
        self.do("pam_authenticate", self.handle, 0)
        self.do("pam_open_session", self.handle, 0)

    def close(self):
        self.do("pam_close_session", self.handle, 0)
        self.do("pam_end", self.handle, 0)


def expect(condition, what):
    if not condition:
        raise support.Failure(what)


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def shadow(folder):
    """A copy of the folder in this namespace, which may be changed."""
    names = [os.path.join(folder, name) for name in os.listdir(folder)]
    copy = subprocess.run(["tar", "-cP", *names], stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", folder], check=True)
    subprocess.run(["tar", "-xP"], input=copy, check=True)


def set_up(module, home, programs):
    shadow("/etc/pam.d")
    write("/etc/pam.d/nacre-test", f"auth required pam_permit.so\nauth optional {module}\n"
          f"account required pam_permit.so\nsession optional {module}\n")
    shadow("/etc/security")
    with open(EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    # What differs from a real login: where the programs are, who the user is, and where its home is.
    text = text.replace('uid="1000-60000"', f'user="{USER}"').replace("/home/%(USER)", home)
    varrun = shutil.which("pmvarrun", path=f"{PACKAGE}/usr/sbin:{PACKAGE}/sbin") or "pmvarrun"
    library = os.environ.get("LD_LIBRARY_PATH", "")
    text = text.replace("</pam_mount>", f"""
      <path>{programs}:/usr/sbin:/usr/bin:/sbin:/bin</path>
      <pmvarrun>env LD_LIBRARY_PATH={library} {varrun} -u %(USER) -o %(OPERATION)</pmvarrun>
    </pam_mount>""")
    write("/etc/security/pam_mount.conf.xml", text)
    device = os.path.join(os.path.dirname(home), "fuse")
    subprocess.run(["mknod", "-m", "666", device, "c", "10", "229"], check=True)
    subprocess.run(["mount", "--bind", device, "/dev/fuse"], check=True)


def is_mounted(path):
    """Root may not look into the user's mount."""
    with open("/proc/self/mountinfo", encoding="utf-8") as table:
        return any(line.split()[4] == path for line in table)


def as_user(volume, *words, **options):
    who = pwd.getpwnam(USER)
    return subprocess.run(words, user=who.pw_uid, group=who.pw_gid, extra_groups=[], cwd="/", check=False,
                          env=volume.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)


def check(volume, programs):
    who = pwd.getpwnam(USER)
    home = volume.environment["HOME"]
    mnt = os.path.join(home, "private")
    os.chmod(volume.work, 0o755)
    for path in (home, os.path.join(home, ".profile")):
        os.chown(path, who.pw_uid, who.pw_gid)
    os.chmod(volume.passphrase, 0o644)
    made = as_user(volume, os.path.join(programs, "mkfs.nacre"), "--passphrase-file", volume.passphrase,
                   *support.CHEAP_KDF, os.path.join(home, ".private"))
    expect(made.returncode == 0, made.stdout)
    for number in range(3):
        login = Login(PASSWORD)
        login.open()
        expect(is_mounted(mnt), f"login {number} mounted the volume")
        kept = as_user(volume, "sh", "-c", f"cat {mnt}/* 2>/dev/null; echo {number} >{mnt}/{number}")
        expect(kept.stdout.split() == [b"%d" % n for n in range(number)], f"{kept.stdout}")
        login.close()
        expect(not is_mounted(mnt), f"the end of session {number} unmounted the volume")
        expect(not volume.daemons(), "it is closed when the session has ended")
    login = Login(b"another password")
    login.open()
    expect(not is_mounted(mnt), "a wrong password mounts nothing")
    login.close()


def main():
    if os.getuid() != 0:
        support.skip("pam_mount", "only root can log others in")
    modules = glob.glob(os.path.join(PACKAGE, "lib/*/security/pam_mount.so")) + \
        glob.glob(os.path.join(PACKAGE, "usr/lib/*/security/pam_mount.so"))
    if not modules:
        support.skip("pam_mount", "there is no pam_mount.so (package libpam-mount)")
    for program in ("fusermount3", "mount.fuse", "unshare"):
        if not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            support.skip("pam_mount", f"there is no {program}")
    if "NACRE_PAM_NAMESPACE" not in os.environ:
        os.environ["NACRE_PAM_NAMESPACE"] = "1"
        if PACKAGE != "/":
            os.environ["LD_LIBRARY_PATH"] = ":".join(
                glob.glob(os.path.join(PACKAGE, "lib/*/")) + glob.glob(os.path.join(PACKAGE, "usr/lib/*/")))
        os.execvp("unshare", ["unshare", "-m", "--propagation", "private", sys.executable, *sys.argv])
    support.leave_others_mounts()
    try:
        with support.Volume("pam-mount") as volume:
            volume.path = os.path.join(volume.environment["HOME"], ".private")
            volume.mnt = os.path.join(volume.environment["HOME"], "private")
            programs = os.path.join(volume.work, "bin")
            shutil.copytree(volume.bin, programs, ignore=lambda _, names: [
                name for name in names if not re.fullmatch(r"nacre|(mkfs|mount|fsck)\.nacre", name)])
            os.chmod(programs, 0o755)
            set_up(modules[0], volume.environment["HOME"], programs)
            volume.environment.pop("LD_PRELOAD", None)
            check(volume, programs)
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")


if __name__ == "__main__":
    main()
