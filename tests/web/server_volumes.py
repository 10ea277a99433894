#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes over the server of nacre web: from mkfs to repair. The state that it tells is that of the kernel and the
daemon, also when something else than the page changes it, and long jobs outlive the server.
"""
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from server_client import NACRE_BIN, PATIENCE_SECONDS, Failures, Server

PASSPHRASE = "correct horse battery staple"
failures = Failures()


class Volume:
    def __init__(self, server):
        self.server = server
        self.path = server.home + "/vault"
        self.mountpoint = server.home + "/private"

    def run(self, action, /, state="done", **fields):
        """Starts an action on the volume, and checks how it ended."""
        answer = self.server.post("/api/volumes/" + action, {"path": self.path, **fields})
        failures.expect(f"{action}: started", answer.status == 202, answer.body)
        if answer.status != 202:
            return {"result": None, "error": None}
        job = self.server.wait(answer)
        is_begun = state == "done" and job["is_handed_over"]
        failures.expect(f"{action}: {state}", job["state"] == state or is_begun, job["error"])
        for secret in (PASSPHRASE, "zebra umbrella seventeen"):
            failures.expect(f"{action}: no secret in the answer", secret not in json.dumps(job), job)
        return job

    def secret(self, text=PASSPHRASE):
        return self.server.secret(text)

    def seen(self):
        for volume in self.server.get("/api/volumes").json["volumes"]:
            if volume["path"] == self.path:
                return volume
        return {"state": "not listed"}

    def expect_state(self, what, state):
        seen = self.seen()
        failures.expect(f"{what}: {state}", seen["state"] == state, seen)
        return seen

    def wait_until(self, what, is_so):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so(self.seen()):
            if time.monotonic() > deadline:
                failures.expect(what, False, self.seen())
                return
            select.select([], [], [], 0.05)

    def wait_for_job(self, job, is_so):
        """The job, once it is so; its last state if it never is."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            job = self.server.get("/api/jobs/" + job["id"]).json["job"]
            if is_so(job) or time.monotonic() > deadline:
                failures.expect(f"{job['kind']}: waited for in vain", is_so(job), job)
                return job
            select.select([], [], [], 0.05)

    def mount(self, **fields):
        return self.run("mount", mountpoint=self.mountpoint, secret=self.secret(), **fields)

    def command(self, *words):
        done = subprocess.run([os.path.join(NACRE_BIN, words[0]), *words[1:]], env=self.server.environment,
                              input=PASSPHRASE, text=True, capture_output=True, check=False)
        failures.expect(" ".join(words), done.returncode == 0, done.stderr)
        return done.stdout


def make_and_mount(volume):
    server = volume.server
    volume.expect_state("before", "not listed")
    failures.expect("no volume there", server.get("/api/volumes/at", path=server.home).status == 404)
    nothing = server.post("/api/volumes/make", {"path": volume.path})
    failures.expect("a volume needs a secret", nothing.status == 400, nothing.body)
    job = volume.run("make", label="<b>Anna's</b>", codec="zstd", padding="padme", secret=volume.secret())
    failures.expect("its state is the result", job["result"]["volume"]["state"] == "not_mounted", job["result"])
    failures.expect("its label is a text", volume.seen()["label"] == "<b>Anna's</b>", volume.seen())
    twice = volume.run("make", state="failed", secret=volume.secret())
    failures.expect("not twice", volume.path in twice["error"]["what"], twice["error"])
    job = volume.run("mount", state="failed", mountpoint=volume.mountpoint, make_mountpoint=True,
                     secret=volume.secret("zebra umbrella seventeen"))
    failures.expect("a wrong passphrase", job["error"]["code"] == "wrong key", job["error"])
    failures.expect("leaves no folder", not os.path.exists(volume.mountpoint))
    volume.expect_state("after a wrong passphrase", "not_mounted")
    job = volume.mount(make_mountpoint=True)
    failures.expect("the command", job["command"].endswith(f"mount.nacre {volume.path} {volume.mountpoint}"), job["command"])
    seen = volume.expect_state("after mounting", "mounted")
    failures.expect("the daemon answers", seen["daemon"]["answers"] and seen["space"]["free_bytes"] > 0, seen)
    at = server.get("/api/volumes/at", path=volume.mountpoint).json["volume"]
    failures.expect("found at its mount point", at["path"] == volume.path, at)
    with open(volume.mountpoint + "/file", "wb") as file:
        file.write(os.urandom(4 << 20))
    check_places(volume)


def keys(volume):
    server = volume.server

    def labels():
        return [one["label"] for one in server.get("/api/volumes/keys", path=volume.path).json["recipients"]]

    failures.expect("one passphrase", labels() == ["passphrase"], labels())
    volume.run("keys/add", secret=volume.secret(), new_secret=volume.secret("zebra umbrella seventeen"), label="second")
    job = volume.run("keys/add", secret=volume.secret(), recovery=True)
    shown = server.get("/api/secrets/" + job["result"]["secret"])
    failures.expect("a recovery key is shown once", len(shown.body) == 47 and shown.status == 200, shown.body)
    failures.expect("as text", shown.headers["content-type"].startswith("text/plain"), shown.headers)
    again = server.get("/api/secrets/" + job["result"]["secret"])
    failures.expect("and not again", again.status == 400 and again.check == "secret_id", again.body)
    failures.expect("three open it", labels() == ["passphrase", "second", "recovery key"], labels())
    job = volume.run("keys/passphrase", state="failed", secret=volume.secret("not this"), new_secret=volume.secret("x"))
    failures.expect("a wrong one changes nothing", job["error"]["code"] == "wrong key", job["error"])
    volume.run("keys/passphrase", secret=volume.secret("zebra umbrella seventeen"), new_secret=volume.secret("zebra umbrella eighteen"))
    volume.run("keys/remove", recipient="second", secret=server.secret(shown.body))
    failures.expect("two are left", labels() == ["passphrase", "recovery key"], labels())
    both = server.post("/api/volumes/keys/add", {"path": volume.path, "secret": volume.secret(), "recovery": True,
                                                 "new_secret": volume.secret("x")})
    failures.expect("one at a time", both.status == 400, both.body)


def long_jobs(volume):
    """They belong to the daemon: another server sees them, too."""
    begun = volume.run("rotate", action="begin", secret=volume.secret(), rate="64K")
    failures.expect("the daemon's work is watched", begun["is_handed_over"] and begun["state"] == "running" and
                    not begun["is_cancellable"], begun)
    fingerprint = (begun["result"] or {}).get("fingerprint", "")
    failures.expect("the new fingerprint is told at once", re.fullmatch("[0-9a-f]{64}", fingerprint), begun)
    cancelled = volume.server.post(f"/api/jobs/{begun['id']}/cancel")
    failures.expect("it cannot be cancelled", cancelled.status == 409, cancelled.body)
    rotation = volume.seen()["rotation"]
    failures.expect("a rotation runs", rotation["rotation"] == "running" and rotation["total_bytes"] > 0, rotation)
    volume.run("rotate", action="pause")
    volume.wait_until("it is paused", lambda seen: seen["rotation"]["rotation"] == "paused")
    with Server() as second:
        second.open_session()
        other = [one for one in second.get("/api/volumes").json["volumes"] if one["path"] == volume.path]
        failures.expect("another server sees it", other and other[0]["rotation"]["rotation"] == "paused", other)
    volume.command("nacre", "key", "rotate", "--resume", volume.path)
    failures.expect("a command line's change is seen", volume.seen()["rotation"]["rotation"] == "running", volume.seen())
    progress = volume.wait_for_job(begun, lambda job: job["progress"]["total"])["progress"]
    failures.expect("the job shows the daemon's progress", progress["total"] >= 4 << 20 and progress["unit"] == "bytes", progress)
    watched_while_unmounted(volume, begun)
    # Fast from now on. It is no error if the rotation has ended meanwhile.
    subprocess.run([os.path.join(NACRE_BIN, "nacre"), "key", "rotate", "--resume", "--rate", "1G", volume.path],
                   env=volume.server.environment, capture_output=True, check=False)
    ended = volume.wait_for_job(begun, lambda job: job["state"] != "running")
    failures.expect("the job ends with the rotation", ended["state"] == "done", ended)
    failures.expect("and still tells the fingerprint", ended["result"] == {"fingerprint": fingerprint}, ended)
    listed = json.loads(volume.command("nacre", "key", "list", "--json", "--passphrase-fd", "0", volume.path))
    failures.expect("which is the volume's", listed["volume_fingerprint"] == fingerprint, listed)
    begun = volume.run("scrub", action="begin", rate="0")
    ended = volume.wait_for_job(begun, lambda job: job["state"] != "running")
    failures.expect("a scrub's job ends with its report", ended["state"] == "done" and
                    ended["result"]["damage_count"] == 0, ended)
    volume.wait_until("a scrub ends", lambda seen: seen["scrub"]["state"] not in ("running", "none"))
    failures.expect("without damage", volume.seen()["scrub"]["damage_count"] == 0, volume.seen()["scrub"])
    job = volume.run("backup", target=volume.server.home + "/copy", verify=True)
    failures.expect("a backup", job["result"]["verify_error_count"] == 0, job["result"])


def watched_while_unmounted(volume, begun):
    """The job waits for the next mount, which goes on with the rotation; others run meanwhile."""
    volume.run("unmount", mountpoint=volume.mountpoint)
    waiting = volume.wait_for_job(begun, lambda job: job["progress"]["stage"] == "unmounted")
    failures.expect("the job waits for the next mount", waiting["state"] == "running", waiting)
    volume.mount()
    volume.wait_for_job(begun, lambda job: job["progress"]["stage"] != "unmounted")


def live(volume):
    server = volume.server
    first = server.get("/api/live", mountpoint=volume.mountpoint)
    failures.expect("live", first.status == 200 and first.json["latest"]["health"] == "ok", first.body[:300])
    since = first.json["now"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    with open(volume.mountpoint + "/live", "wb") as file:
        while time.monotonic() < deadline:
            file.write(os.urandom(1 << 20))
            file.flush()
            answer = server.get("/api/live", mountpoint=volume.mountpoint, since=since).json
            if any("write" in sample["operations"] for sample in answer["samples"]):
                break
            select.select([], [], [], 0.2)
    sample = answer["samples"][-1]
    failures.expect("samples come each second", len(answer["samples"]) >= 1, answer["samples"])
    failures.expect("with rates", sample["requests_per_second"] > 0 and sample["cpu_share"] is not None, sample)
    failures.expect("later than asked", all(one["time"] > since for one in answer["samples"]), answer["samples"])
    wrong = server.get("/api/live", mountpoint=server.home)
    failures.expect("not of any folder", wrong.status == 404, wrong.body)


def outlives_server(volume):
    """A mount stays when the server is killed, and the next server finds it."""
    volume.server.process.send_signal(signal.SIGKILL)
    volume.server.process.wait()
    failures.expect("the mount stays", os.path.exists(volume.mountpoint + "/file"))
    with Server() as second:
        second.open_session()
        second_view = [one["state"] for one in second.get("/api/volumes").json["volumes"] if one["path"] == volume.path]
        failures.expect("the next server finds it", second_view == ["mounted"], second_view)
        volume.command("nacre", "umount", volume.mountpoint)
        after = [one["state"] for one in second.get("/api/volumes").json["volumes"] if one["path"] == volume.path]
        failures.expect("and sees a command line's unmount", after == [], after)


def unmount_and_repair(volume):
    busy = os.open(volume.mountpoint + "/file", os.O_RDONLY)
    job = volume.run("unmount", state="failed", mountpoint=volume.mountpoint)
    failures.expect("in use", job["error"]["code"] == "busy" and "process" in job["error"]["what"], job["error"])
    volume.expect_state("after a refused unmount", "mounted")
    os.close(busy)
    checked = volume.run("check", state="failed", depth="checksums")
    failures.expect("a mounted volume is not checked", checked["error"]["code"] == "busy", checked["error"])
    volume.run("unmount", mountpoint=volume.mountpoint)
    volume.expect_state("after unmounting", "not_mounted")
    job = volume.run("check", depth="deep", secret=volume.secret())
    failures.expect("clean", job["result"]["clean"], job["result"])
    progress_and_cancel(volume)
    folder = volume.path + "/segments"
    segment = max((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getsize)
    with open(segment, "r+b") as file:
        file.seek(os.path.getsize(segment) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    job = volume.run("check", depth="checksums")
    failures.expect("a changed byte is found", job["result"]["error_count"] > 0, job["result"])
    with_plan = {"drop_damaged": True}
    unseen = volume.server.post("/api/volumes/repair", {"path": volume.path, "secret": volume.secret(),
                                                        "plan_id": "0" * 64, **with_plan})
    failures.expect("no repair without its plan", unseen.status == 400, unseen.body)
    before = sorted((name, os.path.getsize(os.path.join(folder, name))) for name in os.listdir(folder))
    job = volume.run("repair_plan", secret=volume.secret(), **with_plan)
    plan = job["result"]
    failures.expect("the plan says what is lost", plan["step_count"] > 0 and plan["lost_count"] > 0 and
                    any(line["paths"] for line in plan["plan"]), plan)
    after = sorted((name, os.path.getsize(os.path.join(folder, name))) for name in os.listdir(folder))
    failures.expect("a plan changes nothing", before == after and not plan["is_changed"], (before, after))
    other = volume.server.post("/api/volumes/repair", {"path": volume.path, "secret": volume.secret(),
                                                       "plan_id": plan["plan_id"], "drop_damaged": False})
    failures.expect("no repair with another plan", other.status == 400, other.body)
    damaged_between(volume, segment, with_plan)
    job = volume.run("repair_plan", secret=volume.secret(), **with_plan)
    failures.expect("the plan has a hash", re.fullmatch("[0-9a-f]{64}", job["result"]["plan_hash"]), job["result"])
    plan_hash = job["result"]["plan_hash"]
    job = volume.run("repair", secret=volume.secret(), plan_id=job["result"]["plan_id"], **with_plan)
    failures.expect("the command has it", f"--expect-plan {plan_hash}" in job["command"], job["command"])
    failures.expect("repaired", job["result"]["is_changed"] and job["result"]["left_count"] == 0, job["result"])


def flip_bit(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def damaged_between(volume, segment, with_plan):
    """A repair is that of the plan that was shown, or none."""
    job = volume.run("repair_plan", secret=volume.secret(), **with_plan)
    place = os.path.getsize(segment) // 4
    flip_bit(segment, place)
    refused = volume.run("repair", state="failed", secret=volume.secret(), plan_id=job["result"]["plan_id"], **with_plan)
    error = refused["error"]
    failures.expect("a repair by an older plan is refused", error["hint"] == "plan_again" and "--" not in error["what"], error)
    failures.expect("and nothing was repaired", not os.path.exists(volume.path + "/repair"), os.listdir(volume.path))
    flip_bit(segment, place)


def check_places(volume):
    """The wizard asks whether a place will do before it asks for a passphrase."""
    server = volume.server
    free = server.get("/api/volumes/place", path=server.home + "/not-there-yet")
    failures.expect("a place that is free", free.status == 200 and free.json["path"].endswith("/not-there-yet"), free.body)
    failures.expect("nothing was made there", not os.path.exists(server.home + "/not-there-yet"))
    for what, path, code in (("a volume", volume.path, "exists"), ("a full folder", server.home, "not empty"),
                             ("a mount point", volume.mountpoint, "busy"),
                             ("a folder that is not there", server.home + "/a/b", "not found")):
        answer = server.get("/api/volumes/place", path=path)
        failures.expect(f"{what} is no place for a volume", answer.status >= 400 and answer.json["error"]["code"] == code, answer.body)


def progress_and_cancel(volume):
    """A slow scrub without a daemon shows how far it is, and ends when it is cancelled."""
    server = volume.server
    answer = server.post("/api/volumes/scrub", {"path": volume.path, "rate": "512K"})
    job = answer.json["job"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not job["progress"]["done"] and job["state"] in ("queued", "running") and time.monotonic() < deadline:
        select.select([], [], [], 0.05)
        job = server.get("/api/jobs/" + job["id"]).json["job"]
    progress = job["progress"]
    failures.expect("progress is shown", progress["done"] > 0 and progress["total"] and progress["unit"] == "bytes", job)
    server.post(f"/api/jobs/{job['id']}/cancel")
    job = server.wait(answer)
    failures.expect("a cancelled scrub", job["state"] == "cancelled", job)


def killed_daemon(volume):
    volume.mount()
    os.kill(volume.seen()["daemon"]["pid"], signal.SIGKILL)
    volume.wait_until("a killed daemon is seen", lambda seen: seen["state"] == "daemon_ended")
    deadline = time.monotonic() + PATIENCE_SECONDS
    answer = volume.server.get("/api/live", mountpoint=volume.mountpoint)
    while answer.status == 200 and time.monotonic() < deadline:  # the daemon is asked once a second
        select.select([], [], [], 0.1)
        answer = volume.server.get("/api/live", mountpoint=volume.mountpoint)
    failures.expect("and told", answer.status == 400 and answer.json["error"]["code"] == "stale" and
                    answer.json["error"]["next"], answer.body)
    volume.run("detach", mountpoint=volume.mountpoint)
    volume.wait_until("it is gone", lambda seen: seen["state"] == "not_mounted")
    volume.mount(read_only=True)
    failures.expect("read-only", volume.seen()["read_only"], volume.seen())
    volume.run("unmount", mountpoint=volume.mountpoint)
    not_nacre = volume.server.post("/api/volumes/detach", {"mountpoint": "/"})
    failures.expect("only Nacre's mounts are detached", not_nacre.status == 404, not_nacre.body)
    opened = volume.server.post("/api/volumes/open", {"mountpoint": "/"})
    failures.expect("only Nacre's mounts are opened", opened.status == 404, opened.body)
    os.rename(volume.path, volume.path + ".away")
    volume.expect_state("a missing folder", "missing")
    os.rename(volume.path + ".away", volume.path)


def with_false_daemon(volume, replies, check):
    """Calls check for each of the replies, which the daemon's sockets give instead of the daemon."""
    places = sockets_of(volume)
    failures.expect("the daemon has a socket", places)
    current = [b""]

    def serve(listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(4096)
                    connection.sendall(current[0])
                except OSError:
                    pass

    listeners = []
    for place in places:
        os.rename(place, place + ".off")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(place)
        listener.listen(8)
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        listeners.append(listener)
    try:
        for reply in replies:
            current[0] = reply
            check(reply)
    finally:
        for place, listener in zip(places, listeners):
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            os.unlink(place)
            os.rename(place + ".off", place)


def sockets_of(volume):
    """The daemon's sockets, where the clients look for them."""
    device = os.stat(volume.mountpoint).st_dev
    name = f"{os.major(device)}-{os.minor(device)}.sock"
    user = os.geteuid()
    folders = ["/run/nacre", f"/run/user/{user}/nacre", f"/tmp/nacre-{user}/nacre", f"/tmp/nacre-{user}"]
    return [one for one in (os.path.join(folder, name) for folder in folders) if os.path.exists(one)]


def senseless_daemon(volume):
    server = volume.server
    nested = b'{"ok":true,"stats":{"x":' + b"[" * 100000 + b"]" * 100000 + b"}}\n"

    def check(reply):
        answer = server.get("/api/volumes")
        failures.expect(f"volumes are listed in spite of {reply[:40]}", answer.status == 200, answer.body[:200])
        found = [one["path"] for one in answer.json["volumes"]]
        failures.expect(f"the volume among them, {reply[:40]}", volume.path in found, found)
        for _ in range(2):
            live = server.get("/api/live", mountpoint=volume.mountpoint)
            failures.expect(f"an answer about {reply[:40]}", live.status >= 200, live.body[:200])
        failures.expect(f"the server lives, {reply[:40]}", server.process.poll() is None)

    with_false_daemon(volume, [b'{"ok":true,"stats":[]}\n', b'{"ok":true,"stats":{"engine":[],"segments":7}}\n',
                               b'{"ok":true,"stats":{"requests":{"operations":[1,{}]}}}\n', b'{"ok":true}\n', nested],
                      check)
    volume.expect_state("afterwards", "mounted")


def stopped_daemon(volume):
    """A daemon that does not run keeps its queue of connections full."""
    server = volume.server
    pid = volume.seen()["daemon"]["pid"]
    places = sockets_of(volume)
    failures.expect("the daemon has a socket", places)
    os.kill(pid, signal.SIGSTOP)
    waiting = []
    try:
        for place in places:
            while True:
                one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                waiting.append(one)
                if one.connect_ex(place) != 0:
                    break
        seen = volume.seen()
        failures.expect("it does not answer", seen["state"] == "mounted" and not seen["daemon"]["answers"], seen)
        live = server.get("/api/live", mountpoint=volume.mountpoint)
        failures.expect("its figures are an error", live.status != 200, live.body[:200])
    finally:
        os.kill(pid, signal.SIGCONT)
        for one in waiting:
            one.close()
    volume.wait_until("it answers again", lambda seen: seen["daemon"] and seen["daemon"]["answers"])


def main():
    if not os.path.exists("/dev/fuse"):
        print("skipped: volumes over nacre web: there is no /dev/fuse")
        sys.exit(77)
    with Server() as server:
        server.open_session()
        volume = Volume(server)
        for part in (make_and_mount, keys, long_jobs, live, senseless_daemon, stopped_daemon, unmount_and_repair,
                     killed_daemon):
            part(volume)
        volume.mount()
        outlives_server(volume)
    failures.expect("no error is printed", server.errors == "", server.errors)
    failures.end()


if __name__ == "__main__":
    main()
