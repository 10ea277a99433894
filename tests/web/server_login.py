#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mounting at login through the interface of nacre web, with stand-ins for systemd and the keyring: the
state is systemd's, a wrong passphrase is kept nowhere, no passphrase stands in a file or a command
line, and the unit's own lines mount the volume with the settings that were written.
"""
import os
import subprocess
import sys
import tempfile

from fake_desktop import FakeDesktop
from server_client import NACRE_BIN, Failures, Server, path_text

PASSPHRASE = "correct horse battery staple"
UNIT_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/systemd/nacre-mount@.service")
NAMES = ("NACRE_VOLUME", "NACRE_MOUNTPOINT", "NACRE_PASSPHRASE_COMMAND")


def make_volume(server, name):
    path = os.path.join(server.home, name)
    subprocess.run([os.path.join(NACRE_BIN, "mkfs.nacre"), "--kdf-memory", "8192", "--kdf-time", "1", "--passphrase-fd", "0", path],
                   input=PASSPHRASE, text=True, check=True, env=server.environment, capture_output=True)
    return path


def state(server, volume):
    answer = server.get("/api/volumes/at_login", path=path_text(volume))
    assert answer.status == 200, answer.body
    return answer.json["at_login"]


def settings_of(server, unit):
    instance = unit[len("nacre-mount@"):-len(".service")]
    return os.path.join(server.home, ".config/nacre/at-login", instance + ".conf")


def read_by_sh(settings):
    """The values as sh reads them, which takes the same marks between double quotes as systemd."""
    words = "".join(f'printf "%s\\0" "${name}"; ' for name in NAMES)
    done = subprocess.run(["sh", "-c", f'. "$1"; {words}', "sh", settings], capture_output=True, check=True)
    return dict(zip(NAMES, done.stdout.decode().split("\0")))


def unit_line(name):
    with open(UNIT_FILE, encoding="utf-8") as file:
        return next(line.strip().split("=", 1)[1] for line in file if line.startswith(name + "="))


def run_unit_line(server, desktop, name, values):
    """Runs a line of the unit as systemd does: each ${NAME} is one word."""
    words = [values[word[2:-1]] if word.startswith("${") else word for word in unit_line(name).split()]
    environment = dict(server.environment, PATH=f"{NACRE_BIN}:{desktop.bin}:{os.environ['PATH']}")
    return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def check_what_is_missing(server, desktop, volume, failures):
    desktop.set("no_bus")
    seen = state(server, volume)
    failures.expect("without a bus it is not available", not seen["is_available"], seen)
    failures.expect("the reason is told in words", seen["why"] ==
                    "this session has no systemd of the user's own: Failed to connect to bus: No medium found", seen["why"])
    desktop.set("no_bus", False)
    desktop.set("no_unit")
    seen = state(server, volume)
    failures.expect("a unit that is not installed is told", not seen["is_available"] and "install" in seen["why"], seen)
    desktop.set("no_unit", False)
    seen = state(server, volume)
    failures.expect("else it is available and off", seen["is_available"] and not seen["is_enabled"], seen)


def check_keyring(server, desktop, volume, failures):
    unit = state(server, volume)["unit"]
    place = os.path.join(server.home, 'a "place" for $HOME `and` \\ more, 50 %')
    body = {"path": path_text(volume), "mountpoint": path_text(place), "enabled": True, "source": "keyring"}
    wrong = server.wait(server.post("/api/volumes/at_login", {**body, "secret": server.secret("something else")}))
    failures.expect("a wrong passphrase fails", wrong["state"] == "failed" and wrong["error"]["code"] == "wrong key", wrong)
    failures.expect("it is not kept", not desktop.calls("secret-tool", "store"))
    failures.expect("it switches nothing on",
                    not desktop.calls("systemctl", "enable") and not os.path.exists(settings_of(server, unit)))
    answer = server.post("/api/volumes/at_login", {**body, "secret": server.secret(PASSPHRASE)})
    done = server.wait(answer)
    failures.expect("it is switched on", done["state"] == "done", done)
    instance = unit[len("nacre-mount@"):-len(".service")]
    failures.expect("the keyring has the passphrase", open(desktop.path("kept." + instance), encoding="utf-8").read() == PASSPHRASE)
    seen = state(server, volume)
    failures.expect("the state says so",
                    seen["is_enabled"] and seen["source"] == "keyring" and seen["mountpoint"] == path_text(place), seen)
    values = read_by_sh(settings_of(server, unit))
    failures.expect("the settings are what was asked for", values == {
        "NACRE_VOLUME": volume, "NACRE_MOUNTPOINT": place, "NACRE_PASSPHRASE_COMMAND": f"secret-tool lookup nacre {instance}"}, values)
    failures.expect("only the user reads them", os.stat(settings_of(server, unit)).st_mode & 0o077 == 0)
    with open(settings_of(server, unit), encoding="utf-8") as file:
        texts = [file.read(), answer.body.decode(), str(done)]
    with open(desktop.path("calls"), encoding="utf-8") as file:
        texts.append(file.read())
    failures.expect("no text holds the passphrase", not any(PASSPHRASE in text for text in texts))
    # Somebody else switches it off: the page must not say that it is on.
    desktop.set("enabled." + unit, False)
    failures.expect("the state is systemd's", not state(server, volume)["is_enabled"])
    desktop.set("enabled." + unit)
    check_unit(server, desktop, values, failures)
    off = server.wait(server.post("/api/volumes/at_login", {"path": path_text(volume), "enabled": False}))
    failures.expect("it is switched off", off["state"] == "done" and not off["result"]["at_login"]["is_enabled"], off)
    failures.expect("the keyring has it no more", not os.path.exists(desktop.path("kept." + instance)))


def check_unit(server, desktop, values, failures):
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("skipped: server_login, the unit's lines: /dev/fuse cannot be opened")
        return
    for name in ("ExecStartPre", "ExecStart"):
        done = run_unit_line(server, desktop, name, values)
        failures.expect(f"{name} of the unit", done.returncode == 0, done)
    failures.expect("the unit mounts it", os.path.ismount(values["NACRE_MOUNTPOINT"]))
    done = run_unit_line(server, desktop, "ExecStop", values)
    failures.expect("ExecStop of the unit", done.returncode == 0 and not os.path.ismount(values["NACRE_MOUNTPOINT"]), done)


def check_asking(server, desktop, volume, failures):
    body = {"path": path_text(volume), "mountpoint": path_text(volume + "-open"), "enabled": True, "source": "ask"}
    done = server.wait(server.post("/api/volumes/at_login", body))
    values = read_by_sh(settings_of(server, state(server, volume)["unit"]))
    failures.expect("a window asks",
                    done["state"] == "done" and values["NACRE_PASSPHRASE_COMMAND"].startswith("zenity --password "), values)
    failures.expect("nothing is kept", not [name for name in os.listdir(desktop.folder) if name.startswith("kept.")])
    os.remove(os.path.join(desktop.bin, "zenity"))
    refused = server.post("/api/volumes/at_login", body)
    lacks_all = not any(os.access(os.path.join(folder, program), os.X_OK) for folder in os.environ["PATH"].split(":")
                        for program in ("zenity", "kdialog", "ssh-askpass"))
    if lacks_all:
        failures.expect("without a program that asks it is refused",
                        refused.status == 404 and "zenity" in refused.json["error"]["what"], refused.body)
        source = next(one for one in state(server, volume)["sources"] if one["name"] == "ask")
        failures.expect("the state says why", not source["is_available"] and "zenity" in source["why"], source)


def check_bad_requests(server, volume, failures):
    body = {"path": path_text(volume), "mountpoint": path_text(volume + "-open"), "enabled": True}
    for wrong, what in (({"source": "file"}, "an unknown source"), ({"source": "keyring"}, "no passphrase"),
                        ({"source": "keyring", "secret": "abc"}, "an unknown secret"),
                        ({"source": "ask", "mountpoint": "/tmp/%0Aline"}, "a path with a line break")):
        answer = server.post("/api/volumes/at_login", {**body, **wrong})
        failures.expect(f"{what} is refused", answer.status == 400, answer.body)
    answer = server.post("/api/volumes/at_login", {**body, "path": "/", "source": "ask"})
    failures.expect("a folder that is no volume is refused", answer.status == 404, answer.body)


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory(prefix="nacre-login.") as folder:
        desktop = FakeDesktop(folder)
        os.environ["PATH"] = f"{desktop.bin}:{os.environ['PATH']}"
        with Server() as server:
            server.open_session()
            volume = make_volume(server, "vault")
            check_what_is_missing(server, desktop, volume, failures)
            check_keyring(server, desktop, volume, failures)
            check_bad_requests(server, volume, failures)
            check_asking(server, desktop, volume, failures)
    failures.end()


if __name__ == "__main__":
    sys.exit(main())
