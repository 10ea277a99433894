# SPDX-License-Identifier: Apache-2.0
"""Starts `nacre web` for a test, and speaks to it as a page does (tools/web/API.md).

    with Server() as server:
        server.open_session()
        server.post("/api/files/encrypt", {...})

Each server has a home of its own, which goes with it. What is mounted below it is unmounted.
"""
import http.client
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

NACRE_BIN = os.path.realpath(os.environ["NACRE_BIN"]) if "NACRE_BIN" in os.environ else ""
PATIENCE_SECONDS = 120


def path_text(path):
    """Path text of API.md for a path of bytes or text."""
    raw = os.fsencode(path)
    text = raw.decode("utf-8", "surrogateescape")
    out = []
    for character in text:
        code = ord(character)
        is_byte = 0xDC80 <= code <= 0xDCFF
        if is_byte or code < 0x20 or 0x7F <= code < 0xA0 or character in "%\u2028\u2029":
            data = bytes([code - 0xDC00]) if is_byte else character.encode()
            out.append("".join(f"%{byte:02X}" for byte in data))
        else:
            out.append(character)
    return "".join(out)


def path_of(text):
    """The path of bytes of path text."""
    return urllib.parse.unquote_to_bytes(text)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def check(self):
        """The security check that refused the request, or None."""
        return (self.json.get("error") or {}).get("check")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("127.0.0.1")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Server:
    def __init__(self, *options, user=None):
        self.options, self.user = options, user
        self.token = None

    def __enter__(self):
        self.work = tempfile.mkdtemp(prefix="nacre-web.")
        os.chmod(self.work, 0o755)
        self.home = os.path.join(self.work, "home")
        os.mkdir(self.home)
        with open(os.path.join(self.home, ".profile"), "w", encoding="utf-8"):
            pass  # an empty home stays empty (own_files.h)
        self.environment = {**os.environ, "HOME": self.home, "LC_ALL": "C.UTF-8"}
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
            self.environment.pop(name, None)
        library = os.path.join(NACRE_BIN, "libready_keys.so")
        if "NACRE_READY_KEYS" in os.environ and os.path.exists(library):  # see ready_keys.cpp
            self.environment.update(LD_PRELOAD=library, NACRE_READY_KEYS_TAKEN=self.work + "/keys_taken")
        self.process = subprocess.Popen(
            [os.path.join(NACRE_BIN, "nacre"), "web", "--no-open", *self.options], env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_SECONDS)
        self.url = self.process.stdout.readline().strip() if ready else ""
        if "#token=" not in self.url:
            raise RuntimeError("no address: " + self.process.stderr.read())
        self.base, self.one_time = self.url.split("/#token=")
        self.host = self.base[len("http://"):]
        self.port = None if self.host.endswith(":PORT") else int(self.host.rsplit(":", 1)[1])
        self.socket = self.options[self.options.index("--socket") + 1] if "--socket" in self.options else None
        if self.socket:
            self.host = "127.0.0.1:8422"  # the port that ssh would listen at
            self.base = "http://" + self.host
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_SECONDS)
        self.errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
            mounts = [line.split()[4] for line in table if self.work in line.split()[4]]
        for mountpoint in reversed(mounts):
            subprocess.run([os.path.join(NACRE_BIN, "nacre"), "umount", mountpoint], env=self.environment, check=False)
            subprocess.run(["fusermount3", "-uz", mountpoint], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.work, ignore_errors=True)

    def connection(self):
        if self.socket:
            return UnixConnection(self.socket)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)

    def request(self, method, path, body=None, headers=None, raw=False):
        """One request with exactly these headers, and the Host of the server unless one is given."""
        sent = {"Host": self.host, **(headers or {})}
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=sent)
            reply = connection.getresponse()
            return Answer(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def page_headers(self, content_type=None):
        headers = {"Origin": self.base, "Sec-Fetch-Site": "same-origin"}
        if self.token:
            headers["Authorization"] = "Bearer " + self.token
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def open_session(self):
        answer = self.post("/api/session", {"token": self.one_time})
        assert answer.status == 200, answer.body
        self.token = answer.json["token"]

    def get(self, path, /, **query):
        if query:
            path += "?" + urllib.parse.urlencode(query)
        return self.request("GET", path, headers=self.page_headers())

    def post(self, path, body=None):
        return self.request("POST", path, json.dumps(body or {}), self.page_headers("application/json"))

    def delete(self, path):
        return self.request("DELETE", path, headers=self.page_headers())

    def secret(self, text):
        answer = self.request("POST", "/api/secrets", text, self.page_headers("application/octet-stream"))
        assert answer.status == 200, answer.body
        return answer.json["secret"]

    def wait(self, answer):
        """The job of an answer, once it is over, or once a daemon goes on with it."""
        assert answer.status == 202, answer.body
        job = answer.json["job"]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while job["state"] in ("queued", "running") and not job["is_handed_over"]:
            assert time.monotonic() < deadline, job
            select.select([], [], [], 0.02)
            job = self.get("/api/jobs/" + job["id"]).json["job"]
        return job

    def rss_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            for line in status:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        return 0


class Failures:
    """Collects what is wrong, so that one run names all of it."""

    def __init__(self):
        self.count = 0

    def expect(self, what, is_so, seen=None):
        if is_so:
            return
        self.count += 1
        print(f"FAILED: {what}" + ("" if seen is None else f"; it was: {seen}"))

    def end(self):
        sys.exit(1 if self.count else 0)
