#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A volume that was put back is refused on a machine that has never seen it, by a witness elsewhere
alone: one in a file, and one behind a command. A witness that is missing, unreadable, of another
volume or not to be reached is told of, and never replaced by what an older volume says.
"""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402
from machines import Machines  # noqa: E402

TEST = "witness_elsewhere"
HERE = "when this machine saw it last"
ACCEPT = "--accept-older-state"
MAY_FAIL = "--witness-may-fail"
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "packaging", "examples",
                       "witness-ssh")


class Scene(Machines):
    def __init__(self, volume):
        super().__init__(volume, volume.work)
        self.path = volume.path
        self.log = os.path.join(volume.work, "log")
        self.disk = os.path.join(volume.work, "disk")
        os.mkdir(self.disk)
        self.file = os.path.join(self.disk, "witness")
        self.by = ["--witness", self.file]

    def mount(self, *options, path=None, **expected):
        return self.run("mount.nacre", path or self.path, self.point, *self.secret, *self.by,
                        "--log-file", self.log, *options, **expected)

    def use(self, name, *options, **expected):
        said = self.mount(*options, **expected)
        with open(os.path.join(self.point, name), "wb") as file:
            file.write(name.encode() * 1000)
            file.flush()
            os.fsync(file.fileno())
        self.umount()
        return said

    def fsck(self, *options, **expected):
        return self.run("fsck.nacre", self.path, *self.secret, *self.by, *options, **expected)

    def refused(self, words):
        """By mounts, for writing and reading, and by a check. Nothing changes by it."""
        before, state = self.content(), self.state()
        for command in (self.mount, lambda **e: self.mount("-o", "ro", **e), self.fsck):
            command(expect=8, words=words)
            expect(not os.path.ismount(self.point), "nothing is mounted")
        expect(self.content() == before, "the witness keeps what it has")
        changed = set(self.state().items()) ^ set(state.items())
        expect(not changed, f"the volume keeps what it has: {changed}")

    def content(self):
        if not os.path.exists(self.file):
            return None
        with open(self.file, encoding="utf-8") as file:
            return file.read()

    def state(self):
        """Names and times of the volume's files, but for the lock."""
        found = {}
        for folder, _, names in os.walk(self.path):
            for name in names:
                if name != "lock":
                    place = os.path.join(folder, name)
                    found[place] = os.stat(place).st_mtime_ns
        return found

    def seen(self):
        return json.loads(self.content())

    def keep(self, name):
        kept = os.path.join(self.work, name)
        shutil.copytree(self.path, kept, ignore=shutil.ignore_patterns("*.sock"))
        return kept

    def put(self, kept):
        shutil.rmtree(self.path)
        shutil.copytree(kept, self.path)

    def logged(self, words):
        with open(self.log, encoding="utf-8") as file:
            text = file.read()
        expect(words in text, f"the log says '{words}': {text[-2000:]}")

    def begin_log(self):
        if os.path.exists(self.log):
            os.remove(self.log)


def expect(condition, what):
    if not condition:
        raise support.Failure(what)


def check_put_back(scene, label, name):
    """name: how the messages name the witness. Ends with the newest state in place."""
    scene.on_machine(label + " first")
    scene.use("one", words="has seen nothing of this volume yet")
    first = scene.keep(label + " first state")
    scene.use("two")
    newest = scene.keep(label + " newest state")
    older = f"is older than when the {name} saw it last, at 20.*opened for writing .*{ACCEPT}"
    scene.put(first)
    # Neither the list of volumes nor what was seen of them is on this machine.
    scene.on_machine(label + " second")
    scene.refused(older)
    expect("closed at 20" in scene.mount(expect=8), "it says which closing this is")
    # The same without the witness: nothing on this machine can tell.
    scene.run("fsck.nacre", scene.path, *scene.secret, words="clean", without="older")
    # On the machine that saw it, both say so.
    scene.on_machine(label + " first")
    scene.mount(expect=8, words=f"{HERE}.*And the {name} saw it last at")
    scene.put(newest)
    scene.on_machine(label + " third")
    scene.use("three", without="older")
    return first


def check_accepted(scene, first, newest):
    """Accepted once, the older state is what the witness knows from then on."""
    scene.put(first)
    scene.on_machine("accepting")
    scene.fsck(ACCEPT, words="clean")
    scene.mount("-o", "ro,accept-older-state")
    scene.umount()
    scene.refused("the witness .* saw it last")
    scene.use("other two", ACCEPT)
    expect(len(scene.seen()["closings"]) == 1, "the closings of the other history are gone")
    scene.on_machine("accepting also")
    scene.use("other three", without="older")
    scene.put(newest)
    scene.on_machine("accepting last")
    scene.refused("does not know the opening for writing")
    scene.use("newest again", ACCEPT)


def check_unreadable(scene):
    """No witness, none of this volume, or nonsense: refused with words, or a warning if that is asked
    for. The witness is left as it is in either case."""
    content = scene.content()
    aside = scene.file + ".aside"

    def told(words):
        scene.on_machine("told " + words)
        scene.refused(f"the witness {scene.file}: .*{words}.*{MAY_FAIL}")
        before = scene.content()
        scene.use("all the same", MAY_FAIL, words=f"the witness {scene.file}: .*{words}.*"
                                                  "nothing is written to the witness")
        scene.fsck(MAY_FAIL, words=words)
        expect(scene.content() == before, "a witness that was not read is not written")

    os.rename(scene.file, aside)
    told("is its disk missing")
    expect(os.listdir(scene.disk) == [os.path.basename(aside)], "no file was made")

    def write(text):
        with open(scene.file, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(scene.file, 0o600)

    write(content.replace('"volume": "', '"volume": "ab'))
    told("of another volume")
    write("nonsense \x1b[31m")
    told("is not a witness")
    write("x" * 100_000)
    told("more than 65536 bytes")
    os.remove(scene.file)
    os.symlink(aside, scene.file)
    told("symbolic link")
    os.remove(scene.file)
    # What the volume did without it is no harm: the witness is behind.
    os.rename(aside, scene.file)
    scene.use("the witness is back", without="older")
    # Nor is that a volume came from the state of the witness on another machine, without it.
    scene.run("mount.nacre", scene.path, scene.point, *scene.secret)
    scene.umount()
    scene.use("and again", without="older")


def check_lost_at_the_end(scene):
    """A disk that is taken away while the volume is mounted, and one that is full."""
    scene.begin_log()
    before = scene.seen()["last"]["session_count"]
    scene.mount()
    # The daemon notes the opening on a thread of its own, which must not be under way.
    support.wait_for(lambda: scene.seen()["last"]["session_count"] > before, 60,
                     "the opening is not noted")
    os.rename(scene.file, scene.file + ".away")
    scene.umount()
    scene.logged("how far the volume has come could not be kept")
    scene.logged("is its disk missing")
    scene.logged("is unmounted, everything is durable")
    expect(not os.path.exists(scene.file), "no file was made in its place")
    os.rename(scene.file + ".away", scene.file)
    scene.use("the disk is back", without="older")
    if os.geteuid() != 0:
        return support.skip_part("a full disk", "only root can make one")
    small = os.path.join(scene.work, "small")
    os.mkdir(small)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "none", small], check=True)
    try:
        shutil.copy2(scene.file, small)
        before = scene.content()
        with open(os.path.join(small, "filler"), "wb", buffering=0) as filler:
            try:
                while filler.write(b"x" * 512):
                    pass
            except OSError:
                pass
        scene.begin_log()
        scene.by = ["-o", "witness=" + os.path.join(small, "witness")]
        scene.mount(without="older")
        scene.umount()
        scene.logged("No space left on device")
        expect(sorted(os.listdir(small)) == ["filler", "witness"], "nothing half-written is left")
        with open(os.path.join(small, "witness"), encoding="utf-8") as file:
            expect(file.read() == before, "the witness keeps what it had")
    finally:
        scene.volume.detach()
        subprocess.run(["umount", small], check=True)
        scene.by = ["--witness", scene.file]


def check_places(scene):
    """Where a witness would be of no use."""
    inside = os.path.join(scene.path, "witness")
    scene.by = ["--witness", inside]
    for command in (scene.mount, scene.fsck):
        command(expect=2, words="lies in the volume's directory")
    scene.by = ["--witness", os.path.join(scene.point, "witness")]
    scene.mount(expect=2, words="would lie below the mount point")
    scene.by = ["--witness", scene.file, "--witness-command", "true"]
    scene.mount(expect=2, words="give only one of --witness and --witness-command")


def check_command(scene):
    """The example for ssh. Another program of that name stands for ssh and the server."""
    programs = os.path.join(scene.work, "programs")
    os.mkdir(programs)
    ssh = os.path.join(programs, "ssh")
    scene.file = os.path.join(scene.work, "it's on the server")
    unplugged = os.path.join(scene.work, "unplugged")
    with open(ssh, "w", encoding="utf-8") as file:
        file.write(f"""#!/bin/sh
[ -e '{unplugged}' ] && exit 255
while [ "$1" = -o ]; do shift 2; done
[ "$1" = me@server ] || exit 254
exec sh -c "$2"
""")
    os.chmod(ssh, 0o700)
    scene.volume.environment["PATH"] = programs + ":" + os.environ["PATH"]
    script = f'"{EXAMPLE}" me@server "{scene.file}"'
    scene.by = ["--witness-command", script]
    scene.on_machine("without a file")
    scene.mount(expect=8, words="the witness command: with 'read', the command ended with status 1")
    with open(scene.file, "w", encoding="utf-8"):
        pass
    check_put_back(scene, "command", "witness command")
    scene.by = ["-o", "witness-command=" + script]
    with open(unplugged, "w", encoding="utf-8"):
        pass
    scene.mount(expect=8, words="the witness command: with 'read', the command ended with status 255.*" + MAY_FAIL)
    os.remove(unplugged)
    scene.begin_log()
    scene.mount()
    with open(unplugged, "w", encoding="utf-8"):
        pass
    scene.umount()
    scene.logged("the witness command: with 'write', the command ended with status 255")
    scene.logged("is unmounted, everything is durable")
    os.remove(unplugged)
    scene.use("the server is back", without="older")


def main():
    with support.Volume(TEST) as volume:
        volume.make()
        scene = Scene(volume)
        scene.mount(expect=8, words="is its disk missing.*make an empty file")
        with open(scene.file, "w", encoding="utf-8"):
            pass
        first = check_put_back(scene, "file", "witness " + scene.file)
        newest = scene.keep("newest of all")
        check_accepted(scene, first, newest)
        check_unreadable(scene)
        check_lost_at_the_end(scene)
        check_places(scene)
        check_command(scene)
    print("a witness elsewhere tells what is older, and is never made to forget")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
