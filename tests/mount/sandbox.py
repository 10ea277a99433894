#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every thread of root's daemon is under the filter once the mount is usable, `nacre stats` says so, and
the daemon still does all that it must: it serves, commits, is told by signals and by idleness to unmount,
and runs the command of a witness. With -o sandbox=off there is no filter.
"""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import volume as support  # noqa: E402


def expect(condition, what):
    if not condition:
        raise support.Failure(what)


def filters(pid):
    """Of every thread: 0 none, 2 a filter."""
    found = set()
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="utf-8") as file:
            found.update(line.split()[1] for line in file if line.startswith("Seccomp:"))
    return found


def stats(volume):
    return json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])["stats"]


def use(volume):
    path = os.path.join(volume.mnt, "file")
    with open(path, "wb") as file:
        file.write(os.urandom(300_000))
        file.flush()
        os.fsync(file.fileno())
    os.rename(path, path + ".renamed")
    volume.run("nacre", "sync", volume.mnt)
    volume.run("nacre", "trim", volume.mnt)


def check(volume, filtered, *options):
    volume.mount(*options)
    daemons = volume.daemons()
    expect(len(daemons) == 1, f"one daemon: {daemons}")
    use(volume)
    found = filters(daemons[0])
    expect(found == ({"2"} if filtered else {"0"}), f"{options}: {found}")
    expect(stats(volume)["sandbox"] == ("seccomp" if filtered else "off"), "stats tells")
    return daemons[0]


def closed(volume):
    volume.wait_for_daemons(60)
    expect(not os.path.ismount(volume.mnt), "it is unmounted")
    volume.fsck()


def main():
    if os.geteuid() != 0:
        support.skip("sandbox", "only root's daemons have one")
    with support.Volume("sandbox") as volume:
        volume.make()
        check(volume, True, "-o", "sandbox=on")
        volume.unmount()
        closed(volume)
        check(volume, False, "-o", "sandbox=off")
        volume.unmount()
        closed(volume)
        _, text = volume.mount("-o", "sandbox=perhaps", expect=(2,))
        expect("expected on, off or auto" in text, text)
        check(volume, False)
        volume.unmount()
        closed(volume)
        # A sanitizer's build has no sandbox by itself, nor has a mount with a GPU.
        volume.mount("-o", "sandbox=auto")
        if stats(volume)["sandbox"] != "seccomp":
            support.skip_part("sandbox=auto", "a sanitizer or a GPU keeps it off")
        volume.unmount()
        closed(volume)
        # The ends that the daemon itself brings about.
        os.kill(check(volume, True, "-o", "sandbox=on"), signal.SIGTERM)
        closed(volume)
        volume.mount("-o", "sandbox=on,idle=1")
        closed(volume)
        check(volume, True, "-o", "sandbox=on,auto_unmount")
        subprocess.run(["umount", volume.mnt], check=True)
        closed(volume)
        # A program that the daemon runs at the end.
        store = os.path.join(volume.work, "store")
        script = os.path.join(volume.work, "witness.sh")
        with open(store, "w", encoding="utf-8"):
            pass
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase $1 in read) cat {store};; write) cat >{store};; esac\n")
        os.chmod(script, 0o700)
        check(volume, True, "-o", "sandbox=on,witness-command=" + script)
        volume.unmount()
        closed(volume)
        with open(store, encoding="utf-8") as file:
            expect(len(json.load(file)["closings"]) == 1, "the witness was told at the end")
    print("the daemon works without the calls that it never makes")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        print("FAILED:", failure)
        sys.exit(1)
