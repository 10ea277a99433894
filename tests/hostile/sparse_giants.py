#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of a volume are made large without taking any room. For them no program takes more memory than
for the sound volume and a bound.

A file's size is not authenticated when the file is read. Each file is made giant with zeros after its
content, and once more with a byte at its very end.
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import daemon_memory  # noqa: E402
import volume as support  # noqa: E402

TEST = "sparse_giants"
GIANT = 600 << 20
MORE_BYTES_MAX = 256 << 20


def run_measured(volume, *command, while_running=None):
    """Returns the exit status, the peak of resident memory, and the output."""
    output = os.path.join(volume.work, "output")
    with open(output, "wb") as file:
        process = subprocess.Popen([os.path.join(volume.bin, command[0]), *command[1:]],
                                   env=volume.environment, stdin=subprocess.DEVNULL, stdout=file,
                                   stderr=subprocess.STDOUT)
    if while_running:
        while_running(process.pid)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with open(output, encoding="utf-8", errors="replace") as file:
        return process.returncode, usage.ru_maxrss * 1024, file.read()


def mount_and_unmount(volume):
    instrumented = []

    def end_when_mounted(pid):
        end = time.monotonic() + 600 * support.PATIENCE
        while not os.path.ismount(volume.mnt):
            # A process that has failed is a zombie, because it is not reaped here.
            if support.is_gone(pid):
                return
            if time.monotonic() > end:
                raise support.Failure("mount.nacre neither mounts nor ends")
            time.sleep(0.05)
        instrumented.append(daemon_memory.is_instrumented(pid))
        volume.run("nacre", "umount", volume.mnt, expect=None, limit_s=600)

    measured = run_measured(volume, "mount.nacre", "--foreground", "--passphrase-file",
                            volume.passphrase, volume.path, volume.mnt,
                            while_running=end_when_mounted)
    volume.detach()
    return measured, any(instrumented)


def measure_all(volume):
    key = ["--passphrase-file", volume.passphrase]
    peaks = {}
    for name, options in (("fsck --scrub", ["--scrub"]),
                          ("fsck --deep --scrub", ["--deep", "--scrub", *key]),
                          ("fsck --repair --dry-run", ["--repair", "--dry-run", *key])):
        peaks[name] = run_measured(volume, "fsck.nacre", *options, volume.path)
    peaks["mount"], instrumented = mount_and_unmount(volume)
    if instrumented:
        support.skip(TEST, "a sanitizer's own memory counts, too")
    return peaks


def make_giant(path, with_end):
    size = os.path.getsize(path)
    os.truncate(path, GIANT)
    if with_end:
        with open(path, "r+b") as file:
            file.seek(GIANT - 1)
            file.write(b"\1")
    return size


def files_of(volume):
    """One file of each kind in the volume's folder."""
    found = {}
    for folder in ("", "db", "segments"):
        for name in sorted(os.listdir(os.path.join(volume, folder))):
            path = os.path.join(folder, name)
            if os.path.isfile(os.path.join(volume, path)):
                kind = folder + "".join(c for c in name if not c.isdigit())
                found[kind] = path
    return sorted(found.values())


def main():
    with support.Volume(TEST) as volume:
        volume.make()
        volume.mount()
        for name in ("first", "second"):
            with open(os.path.join(volume.mnt, name), "wb") as file:
                file.write(os.urandom(3 << 20))
                os.fsync(file.fileno())
        volume.kill()  # so that there is a log
        volume.detach()
        kept = os.path.join(volume.work, "kept")
        subprocess.run(["cp", "-a", volume.path, kept], check=True)
        sound = measure_all(volume)
        for name, (status, _, text) in sound.items():
            if status != 0:
                raise support.Failure(f"{name} of the sound volume ends with {status}: {text}")
        worst = 0
        for path in files_of(kept):
            for with_end in (False, True):
                subprocess.run(["rm", "-r", volume.path], check=True)
                subprocess.run(["cp", "-a", kept, volume.path], check=True)
                try:
                    make_giant(os.path.join(volume.path, path), with_end)
                except OSError as error:
                    support.skip(TEST, f"no file of {GIANT} bytes here: {error}")
                for name, (status, peak, text) in measure_all(volume).items():
                    what = f"{name} with a giant {path}"
                    if status not in (0, 1, 4, 8, 32):
                        raise support.Failure(f"{what} ends with {status}: {text[-1000:]}")
                    more = peak - sound[name][1]
                    worst = max(worst, more)
                    if more > MORE_BYTES_MAX:
                        raise support.Failure(f"{what} takes {more >> 20} MiB more than without")
        print(f"giants took at most {worst >> 20} MiB more than the sound volume")


if __name__ == "__main__":
    try:
        main()
    except support.Failure as failure:
        sys.exit(f"FAILED: {failure}")
