#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server of nacre web survives: bodies that are nested too deeply, files that never answer, connections of
another user, a killed server before it, and programs that do not end."""
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from server_client import NACRE_BIN, PATIENCE_SECONDS, Failures, Server, path_text

DEEP = 32000
failures = Failures()


def wait_until(what, is_so):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            failures.expect(what, False)
            return
        select.select([], [], [], 0.02)


def nested_bodies(server):
    nested = "[" * DEEP + "]" * DEEP
    for path, name in (("encrypt", "output"), ("inspect", "x"), ("estimate", "x"), ("compare", "input"),
                       ("compare", "rsa_bits")):
        body = '{"inputs":[{"path":"/etc/hostname"}],"input":{"path":"/etc/hostname"},"%s":%s}' % (name, nested)
        answer = server.request("POST", "/api/files/" + path, body, server.page_headers("application/json"))
        failures.expect(f"nested {name} of {path}: 400", answer.status == 400, answer.body[:200])
        failures.expect(f"nested {name} of {path}: the server lives", server.process.poll() is None)
    text = json.dumps({"path": server.work, "name": "[{" * 100})
    answer = server.request("POST", "/api/files/folder", text, server.page_headers("application/json"))
    failures.expect("brackets in a text are no nesting", answer.status == 200, answer.body)


def fifos(server):
    fifo, plain = os.path.join(server.work, "fifo"), os.path.join(server.work, "plain")
    os.mkfifo(fifo)
    with open(plain, "wb") as file:
        file.write(b"plain" * 1000)
    made = server.wait(server.post("/api/files/encrypt", {"inputs": [{"path": plain}],
                                                          "secrets": [server.secret("pass")]}))
    failures.expect("a file is encrypted", made["state"] == "done", made["error"])
    for what, action, body in (
            ("an input", "encrypt", {"inputs": [{"path": fifo}], "secrets": [server.secret("pass")]}),
            ("a recipient", "encrypt", {"inputs": [{"path": plain}], "recipients": [fifo], "replace": True}),
            ("a key", "decrypt", {"inputs": [{"path": plain + ".ncr"}], "identity": fifo, "replace": True}),
            ("a compared file", "compare", {"input": {"path": fifo}, "engines": ["cpu"]})):
        answer = server.post("/api/files/" + action, body)
        failed = server.wait(answer) if answer.status == 202 else {"state": "failed", "error": answer.json["error"]}
        failures.expect(f"a FIFO as {what} fails", failed["state"] == "failed", failed)
        text = json.dumps(failed)
        failures.expect(f"a FIFO as {what} is named as the reason", "no regular file" in text, text)
    answer = server.get("/api/keys/public", path=fifo)
    failures.expect("a FIFO as a shown key fails", answer.status == 400, answer.body)
    answer = server.get("/api/keys/public", path="/dev/zero")
    failures.expect("a device as a shown key fails", answer.status == 400, answer.body)
    answer = server.post("/api/files/estimate", {"inputs": [{"path": fifo}]})
    failures.expect("an estimate of a FIFO ends", answer.status in (200, 400), answer.body)


def service_worker(server):
    for path in ("/sw.js", "/page.js", "/api/session"):
        answer = server.request("GET", path, headers={"Service-Worker": "script", "Sec-Fetch-Site": "same-origin",
                                                      "Sec-Fetch-Dest": "serviceworker"})
        failures.expect(f"no service worker at {path}", answer.status == 404, answer.status)
        told = answer.headers.get("clear-site-data")
        failures.expect(f"the browser forgets the one of {path}", told == '"storage"', answer.headers)


def shell_words(server):
    """The command that is shown is the same words in every shell, or at least runs nothing."""
    folder = os.path.join(server.work, "words")
    os.mkdir(folder)
    names = [b"a\x01';touch pwned;#", b"b\\\x01\\';touch pwned;'", b"c'\n$(touch pwned)", b"d\\'\xff`touch pwned`"]
    paths = [os.path.join(os.fsencode(folder), name) for name in names]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"x")
    job = server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"path": path_text(path)} for path in paths], "secrets": [server.secret("pass")]}))
    failures.expect("odd names are encrypted", job["state"] == "done", job["error"])
    line = job["command"].replace("nacre crypt encrypt", "printf '%s\\0'", 1)
    for shell in ("bash", "dash", "sh"):
        if shutil.which(shell) is None:
            print(f"skipped: the shell {shell}")
            continue
        done = subprocess.run([shell, "-c", line], capture_output=True, check=False, cwd=server.work)
        words = done.stdout.split(b"\0")[:-1]
        failures.expect(f"{shell}: as many words as names", len(words) == len(names), (line, done))
        failures.expect(f"{shell}: no command ran", "pwned" not in os.listdir(server.work), line)
        if shell == "bash":
            failures.expect("bash: the same words", words == paths, (line, words))


HOLDER = r"""
import select, socket, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
held = []
for i in range(count):
    one = socket.create_connection(("127.0.0.1", port))
    try:
        one.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
    except OSError:
        pass
    held.append(one)
closed = 0
while len(held) > int(sys.argv[3]):
    ready, _, _ = select.select(held, [], [])
    for one in ready:
        try:
            is_over = one.recv(100) == b""
        except OSError:
            is_over = True
        if is_over:
            held.remove(one)
print(len(held), flush=True)
sys.stdin.readline()
held[0].sendall(b"y\r\n\r\n")
print(held[0].recv(10000), flush=True)
"""


def foreign_connections(server):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("skipped: connections of another user: this needs root and setpriv")
        return
    user = pwd.getpwnam("nobody")
    holder = subprocess.Popen(
        ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups", sys.executable, "-c",
         HOLDER, str(server.port), "100", "4"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
    try:
        ready, _, _ = select.select([holder.stdout], [], [], PATIENCE_SECONDS)
        held = holder.stdout.readline().strip() if ready else "none"
        failures.expect("another user holds four connections", held == "4", held)
        failures.expect("the user of the server is served", server.get("/api/session").status == 200)
        answer = holder.communicate("\n", PATIENCE_SECONDS)[0]
        failures.expect("one of the four is told why", " 403 " in answer, answer)
    finally:
        holder.kill()
        holder.wait()
    failures.expect("the server goes on", server.get("/api/session").status == 200)


def endless_heads():
    """A head without an end is cut off, though a byte of it comes now and then; a slow body is not."""
    with Server("--head-seconds", "1") as server:
        server.open_session()
        body = json.dumps({"path": server.work, "name": "slow"}).encode()
        headers = server.page_headers("application/json")
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as slow, \
                socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as used:
            lines = [f"POST /api/files/folder HTTP/1.1\r\nHost: {server.host}", f"Content-Length: {len(body)}",
                     *(f"{name}: {value}" for name, value in headers.items())]
            slow.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body[:1])
            # A whole request first: what follows it on the same connection is a new head.
            used.sendall(f"GET / HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            failures.expect("the first request is answered", used.recv(1 << 20).startswith(b"HTTP/1.1 200"))
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as fresh:
                wait_until("a new connection with an endless head is closed", lambda: drips_until_closed(fresh))
            wait_until("a used one is closed, too", lambda: drips_until_closed(used))
            slow.sendall(body[1:])
            answer = slow.recv(1 << 16)
            failures.expect("a body that takes longer than a head may is taken", b" 200 " in answer[:20], answer)
        failures.expect("the server goes on", server.get("/api/session").status == 200)


def drips_until_closed(connection):
    """Sends one more byte of a head. True once the server has closed the connection."""
    try:
        connection.sendall(b"x")
        ready, _, _ = select.select([connection], [], [], 0.05)
        return bool(ready) and connection.recv(1 << 20) == b""
    except OSError:
        return True


def folders(server):
    base = os.path.join(server.home, ".cache", "nacre")
    return {name for name in os.listdir(base) if name.startswith("web-")}


def left_folders():
    with Server() as server:
        server.open_session()
        answer = server.request("POST", "/api/uploads?name=plain", b"plain text",
                                server.page_headers("application/octet-stream"))
        failures.expect("an upload is kept", answer.status == 200, answer.body)
        first = folders(server)
        outside = os.path.join(server.work, "outside")
        os.mkdir(outside)
        link = os.path.join(server.home, ".cache", "nacre", "web-abcdef")
        os.symlink(outside, link)
        start = [os.path.join(NACRE_BIN, "nacre"), "web", "--no-open"]
        with subprocess.Popen(start, env=server.environment, stdout=subprocess.PIPE, text=True) as second:
            second.stdout.readline()
            failures.expect("the folder of a running server stays", first < folders(server), folders(server))
            second.terminate()
        server.process.kill()
        server.process.wait()
        failures.expect("a killed server leaves its folder", folders(server) == first | {"web-abcdef"}, folders(server))
        with subprocess.Popen(start, env=server.environment, stdout=subprocess.PIPE, text=True) as third:
            third.stdout.readline()
            failures.expect("the next one removes it", not first & folders(server), folders(server))
            third.terminate()
        failures.expect("a link is not followed", os.path.isdir(outside) and os.path.islink(link))


def programs_of(pid):
    """The children of a process that run the command inspect. Threads and children may end meanwhile."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                children = file.read().split()
            for child in children:
                with open(f"/proc/{child}/cmdline", "rb") as file:
                    if b"inspect" in file.read():
                        found.append(int(child))
        except OSError:
            continue
    return found


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def is_closed(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def second_signal():
    with Server() as server:
        server.open_session()
        fifo = os.path.join(server.work, "fifo")
        os.mkfifo(fifo)
        pid = server.process.pid
        server.post("/api/files/inspect", {"inputs": [{"path": fifo}]})
        wait_until("a program runs", lambda: programs_of(pid))
        child = programs_of(pid)[0]
        os.kill(child, signal.SIGSTOP)
        try:
            wait_until("it has stopped", lambda: state_of(child) == "T")
            server.process.terminate()
            wait_until("the first signal is taken", lambda: is_closed(server.port))
            failures.expect("the server waits for its program", server.process.poll() is None)
            server.process.terminate()
            status = server.process.wait(PATIENCE_SECONDS)
            failures.expect("the second signal ends it", status == -signal.SIGTERM, status)
        finally:
            os.kill(child, signal.SIGKILL)


def replaced_socket():
    path = f"/tmp/nacre-web-{os.getpid()}.sock"
    with Server("--socket", path) as server:
        server.open_session()
        os.unlink(path)
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            server.process.terminate()
            server.process.wait(PATIENCE_SECONDS)
            failures.expect("the socket of another program stays", os.path.exists(path))
    os.unlink(path)


def main():
    with Server() as server:
        server.open_session()
        for part in (nested_bodies, fifos, service_worker, shell_words, foreign_connections):
            part(server)
            failures.expect(f"the server lives after {part.__name__}", server.process.poll() is None)
    failures.expect("nothing is in the log", server.errors == "", server.errors)
    endless_heads()
    left_folders()
    second_signal()
    replaced_socket()
    failures.end()


if __name__ == "__main__":
    main()
