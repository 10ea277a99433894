#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on the server of nacre web. Each must be refused, by the check that is meant for it.

NACRE_LONG=1 sends the whole 10 GB of the large upload instead of 1 GB.
"""
import base64
import hashlib
import http.client
import json
import os
import pwd
import re
import select
import shutil
import socket
import subprocess
import sys
import time

from server_client import PATIENCE_SECONDS, Failures, Server, path_of, path_text

GIGABYTE = 10**9
PIECE = bytes(1 << 20)
OTHER_ORIGIN = "https://evil.example"
failures = Failures()


def expect_refused(what, answer, check, status=403):
    """The named check refused it, in a body that a browser shows as text at most."""
    seen = (answer.status, answer.body[:200])
    failures.expect(f"{what}: status {status}", answer.status == status, seen)
    failures.expect(f"{what}: JSON", answer.headers.get("content-type", "").startswith("application/json"), seen)
    found = answer.check if answer.body.startswith(b"{") else None
    failures.expect(f"{what}: the check {check}", found == check, seen)
    failures.expect(f"{what}: no CORS header", not any("allow-origin" in name for name in answer.headers), seen)
    print(f"refused: {what}: {found}")


def other_origins(server):
    body = json.dumps({"token": server.one_time})
    for origin in (OTHER_ORIGIN, "null", "http://localhost:%d" % server.port, "https://" + server.host,
                   "http://127.0.0.1:%d" % (server.port + 1), server.base + "/"):
        headers = {"Origin": origin, "Content-Type": "application/json"}
        expect_refused(f"fetch from {origin}", server.request("POST", "/api/session", body, headers), "origin")
    no_origin = server.request("POST", "/api/session", body, {"Content-Type": "application/json"})
    expect_refused("a post without an origin", no_origin, "origin")
    # Another page cannot know the token; if it did, its origin gives it away.
    with_token = {**server.page_headers(), "Origin": OTHER_ORIGIN}
    expect_refused("reading with a stolen token", server.request("GET", "/api/files", headers=with_token), "origin")
    cross = {**server.page_headers(), "Sec-Fetch-Site": "cross-site"}
    cross.pop("Origin")
    expect_refused("fetch without cors", server.request("GET", "/api/volumes", headers=cross), "fetch_site")
    form = {"Origin": server.base, "Content-Type": "application/x-www-form-urlencoded",
            "Authorization": "Bearer " + server.token}
    expect_refused("a form", server.request("POST", "/api/session/link", "a=b", form), "content_type", 415)
    text = {**form, "Content-Type": "text/plain"}
    expect_refused("a form as text/plain", server.request("POST", "/api/session/link", "{}", text), "content_type", 415)
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    expect_refused("an image on another page", server.request("GET", "/icon.svg", headers=image), "fetch_site")
    script = {**image, "Sec-Fetch-Dest": "script"}
    expect_refused("a script on another page", server.request("GET", "/page.js", headers=script), "fetch_site")
    frame = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    expect_refused("a frame", server.request("GET", "/", headers=frame), "frame")
    preflight = {"Origin": OTHER_ORIGIN, "Access-Control-Request-Method": "POST",
                 "Access-Control-Request-Headers": "authorization"}
    expect_refused("a preflight request", server.request("OPTIONS", "/api/files", headers=preflight), "origin")
    socket_headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Origin": OTHER_ORIGIN}
    for path in ("/", "/api/live"):
        expect_refused(f"a WebSocket at {path}", server.request("GET", path, headers=socket_headers), "upgrade")


def rebinding(server):
    port = server.port
    for host in (f"evil.example:{port}", "evil.example", f"localhost:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}",
                 f"127.0.0.1.evil.example:{port}", f"127.0.0.2:{port}", f"[::1]:{port + 1}", f"0.0.0.0:{port}", ""):
        headers = {"Host": host, "Origin": "http://" + host, "Authorization": "Bearer " + server.token}
        for path in ("/", "/api/files"):
            expect_refused(f"Host '{host}' at {path}", server.request("GET", path, headers=headers), "host")
    # http.client always sends a Host.
    with socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS) as raw:
        raw.sendall(b"GET / HTTP/1.0\r\n\r\n")
        reply = b"".join(iter(lambda: raw.recv(4096), b""))
    failures.expect("no Host: refused", b" 403 " in reply.splitlines()[0] and b'"host"' in reply, reply[:300])


def tokens(server):
    without = {"Origin": server.base}
    for path in ("/api/files", "/api/volumes", "/api/jobs", "/api/session", "/api/nothing"):
        expect_refused(f"a guessed port: {path}", server.request("GET", path, headers=without), "bearer_token", 401)
    for value in ("Bearer ", "Bearer " + "0" * 64, "Basic " + server.token, server.token,
                  "Bearer " + server.token[:-1], "Bearer " + server.token + "0", "bearer\t" + server.token):
        headers = {**without, "Authorization": value}
        answer = server.request("GET", "/api/files", headers=headers)
        expect_refused("a wrong bearer token", answer, "bearer_token", 401)
    cookie = {**without, "Cookie": "token=" + server.token}
    expect_refused("a cookie", server.request("GET", "/api/files", headers=cookie), "bearer_token", 401)
    in_url = server.request("GET", "/api/files?token=" + server.token, headers=without)
    expect_refused("a token in the address", in_url, "bearer_token", 401)
    body = {"token": server.one_time}
    expect_refused("a replayed one-time token", server.post("/api/session", body), "one_time_token", 401)
    expect_refused("the bearer token as a one-time token", server.post("/api/session", {"token": server.token}),
                   "one_time_token", 401)
    link = server.post("/api/session/link").json["url"]
    once = link.split("#token=")[1]
    failures.expect("a link opens a page", server.post("/api/session", {"token": once}).status == 200)
    expect_refused("a replayed link", server.post("/api/session", {"token": once}), "one_time_token", 401)
    secret = server.secret("typed by a page")
    expect_refused("a passphrase that a page sent", server.get("/api/secrets/" + secret), "secret_id", 400)
    made = server.wait(server.post("/api/keys/generate", {"folder": server.home, "name": "typed", "bits": 2048,
                                                          "secret": secret}))
    failures.expect("it is still there for its one use", made["state"] == "done", made["error"])
    again = server.post("/api/keys/generate", {"folder": server.home, "name": "again", "bits": 2048, "secret": secret})
    expect_refused("a passphrase that was used", again, "secret_id", 400)
    expect_refused("a guessed secret", server.get("/api/secrets/" + "0" * 64), "secret_id", 400)
    expect_refused("a guessed download", server.request("GET", "/download/" + "0" * 64), "download_token")


def all_of(connection, sent):
    """What comes back until the connection ends, which may be before all was sent."""
    reply = b""
    try:
        connection.sendall(sent)
        while piece := connection.recv(1 << 16):
            reply += piece
    except OSError:
        pass
    return reply


def answers_of_the_library(server):
    """libmicrohttpd answers broken requests by itself, without the server's headers (API.md). Its pages hold nothing
    of the request and no script, and the connection ends."""
    host = f"Host: {server.host}\r\n".encode()
    long_text = b"<script>marker</script>" + b"a" * 300000
    for what, sent in (("a long head", b"GET / HTTP/1.1\r\n" + host + b"X: " + long_text + b"\r\n\r\n"),
                       ("a long address", b"GET /" + long_text + b" HTTP/1.1\r\n" + host + b"\r\n"),
                       ("another version", b"GET /marker HTTP/7.3\r\n" + host + b"\r\n"),
                       ("a wrong length", b"POST /marker HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n")):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS) as raw:
            reply = all_of(raw, sent)
        failures.expect(f"{what}: an error or nothing", not reply or reply[9:10] in b"45", reply[:200])
        failures.expect(f"{what}: nothing of the request", b"marker" not in reply and b"<script" not in reply, reply[:400])
        failures.expect(f"{what}: no CORS header", b"allow-origin" not in reply.lower(), reply[:400])


def sent_headers(server):
    wanted = {"x-frame-options": "DENY", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
              "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin",
              "cross-origin-embedder-policy": "require-corp"}
    sheet = re.search(b"<style>(.*?)</style>", server.request("GET", "/").body, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(sheet).digest()).decode()
    rules = ["default-src 'none'", "script-src 'self'", f"style-src 'sha256-{digest}'", "connect-src 'self'",
             "img-src 'self' data:", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]
    refused = server.request("GET", "/api/files", headers={"Host": "evil.example"})
    for what, answer in (("the page", server.request("GET", "/")), ("an answer", server.get("/api/files")),
                         ("a refusal", refused), ("nothing", server.request("GET", "/none"))):
        for name, value in wanted.items():
            failures.expect(f"{what} has {name}", answer.headers.get(name) == value, answer.headers)
        policy = answer.headers.get("content-security-policy", "")
        failures.expect(f"{what} has its policy", policy.split("; ") == rules, policy)
        failures.expect(f"{what} sets no cookie", "set-cookie" not in answer.headers, answer.headers)
    for method in ("PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "POST"):
        expect_refused(f"{method} of the page", server.request(method, "/"), "method", 405)
    put = server.request("PUT", "/api/files", "{}", server.page_headers("application/json"))
    expect_refused("PUT of an address", put, "method", 405)


def upload_names(server):
    for name in ("../../evil", "a/b", "/etc/passwd", "..", ".", "", "..%2f..%2fevil", "%2e%2e"):
        query = name if "%" in name else name.replace("/", "%2F")
        headers = server.page_headers("application/octet-stream")
        answer = server.request("POST", "/api/uploads?name=" + query, b"bytes", headers)
        expect_refused(f"an upload named '{name}'", answer, "upload_name", 400)
    for name in ("../../evil", "..%2f..%2fevil", "%2e%2e/%2e%2e/etc/passwd", "..\\evil", "icon.svg/../../access.h"):
        answer = server.request("GET", "/" + name)
        failures.expect(f"an asset named '{name}'", answer.status == 404, answer.body[:100])
    odd = server.request("POST", "/api/uploads?name=%3Cscript%3Ealert(1)%3C%2Fscript%3E".replace("%2F", ""), b"x",
                         server.page_headers("application/octet-stream"))
    failures.expect("an upload named like a script", odd.json["upload"]["name"] == "<script>alert(1)<script>", odd.body)
    failures.expect("it is removed", server.delete("/api/uploads/" + odd.json["upload"]["id"]).status == 200)
    failures.expect("twice is an error", server.delete("/api/uploads/" + odd.json["upload"]["id"]).status == 404)


def script_names(server):
    folder = os.path.join(server.work, "names")
    os.mkdir(folder)
    names = [b"<script>alert(1)<", b"<img src=x onerror=alert(1)>", b"a\xff\xfe.txt", b"new\nline", b"50%25",
             "\u202egpj.exe".encode(), "\u2028".encode(), b"\"'&", b"-rf", b"$(touch x)", b"\x1b[31m"]
    for name in names:
        with open(os.path.join(os.fsencode(folder), name), "wb") as file:
            file.write(b"content of " + name)
    answer = server.get("/api/files", path=folder)
    failures.expect("names come as JSON", answer.headers["content-type"] == "application/json; charset=utf-8")
    entries = answer.json["entries"]
    paths = {os.path.basename(path_of(entry["path"])) for entry in entries}
    failures.expect("every name comes back byte for byte", paths == set(names), paths ^ set(names))
    for entry in entries:
        is_safe = not any(ord(c) < 0x20 or c in "\u202e\u2028\x7f" for c in entry["name"])
        failures.expect("a shown name has no control character", is_safe, entry["name"])
    job = server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"path": entry["path"]} for entry in entries], "secrets": [server.secret("pass")]}))
    failures.expect("files of every name are encrypted", job["state"] == "done", job["error"])
    check_command(server, job, folder, names)
    for index in range(len(entries)):
        os.remove(path_of(job["files"][index]["output"]))
    job = server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"path": path_text(os.path.join(os.fsencode(folder), names[0]))}],
        "secrets": [server.secret("pass")], "output": {"kind": "download"}}))
    url = server.post(f"/api/jobs/{job['id']}/download", {"file": 0}).json["url"]
    reply = server.request("GET", url)
    failures.expect("a download is never a page", reply.headers["content-type"] == "application/octet-stream")
    disposition = reply.headers["content-disposition"]
    failures.expect("a download is an attachment", disposition.startswith("attachment;"), disposition)
    failures.expect("its name is escaped", "<" not in disposition, disposition)
    expect_refused("a replayed download", server.request("GET", url), "download_token")
    failures.expect("the job is forgotten", server.delete("/api/jobs/" + job["id"]).status == 200)


def check_command(server, job, folder, names):
    """The command line that is shown means just these files."""
    words = job["command"].replace("nacre crypt encrypt", "printf '%s\\0'", 1)
    printed = subprocess.run(["bash", "-c", words], capture_output=True, check=True, cwd=server.work).stdout
    wanted = {os.path.join(os.fsencode(folder), name) for name in names}
    failures.expect("the command is quoted", set(printed.split(b"\0")[:-1]) == wanted, job["command"])
    failures.expect("the command runs nothing", not os.path.exists(os.path.join(server.work, "x")))


def bodies(server):
    headers = server.page_headers("application/json")
    long_body = json.dumps({"path": "/" + "a" * (65 << 10)})
    expect_refused("a long body", server.request("POST", "/api/files/folder", long_body, headers), "body_size", 413)
    pieces = iter([long_body.encode()])  # chunked
    expect_refused("a long body in chunks", server.request("POST", "/api/files/folder", pieces, headers),
                   "body_size", 413)
    raw = server.page_headers("application/octet-stream")
    expect_refused("a long secret", server.request("POST", "/api/secrets", b"x" * 4097, raw), "body_size", 413)
    for body in ("", "{", "[]", "null", "[" * 60000, '{"inputs":7}', '{"inputs":[{"path":"a"}],"secrets":["x"]}',
                 '{"inputs":[{"path":"/%zz"}],"secrets":["x"]}', '{"inputs":[{"path":"/\\u0000"}],"secrets":["x"]}'):
        answer = server.request("POST", "/api/files/encrypt", body, headers)
        failures.expect(f"a malformed body {body[:30]}", answer.status == 400, answer.body[:200])
    long_head = {**server.page_headers(), "X-Long": "a" * (1 << 20)}
    try:
        status = server.request("GET", "/", headers=long_head).status
        failures.expect("a long head", status in (413, 414, 431, 400), status)
    except (OSError, http.client.HTTPException):
        pass  # the connection was closed
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    for one in idle:
        one.close()
    failures.expect("connections are bounded, and free again", server.get("/api/session").status == 200)


def large_upload(server):
    size = (10 if os.environ.get("NACRE_LONG") else 1) * GIGABYTE
    free = shutil.disk_usage(server.home).free
    if free < size + GIGABYTE:
        print(f"skipped: a large upload: {server.home} has {free} bytes free")
        return
    headers = server.page_headers("application/octet-stream")
    refused = server.connection()
    refused.putrequest("POST", "/api/uploads?name=big", skip_host=True)
    for name, value in {**headers, "Host": server.host, "Authorization": "Bearer no",
                        "Content-Length": str(size)}.items():
        refused.putheader(name, value)
    refused.endheaders()
    status = refused.getresponse().status  # without one byte of the body
    refused.close()
    failures.expect("a large upload without a token is refused by its head", status == 401, status)
    before = server.rss_bytes()
    most = [before]

    def stream():
        left = size
        while left > 0:
            piece = PIECE[:min(left, len(PIECE))]
            yield piece
            left -= len(piece)
            if left % (64 << 20) < len(PIECE):
                most[0] = max(most[0], server.rss_bytes())

    answer = server.request("POST", "/api/uploads?name=big", stream(), {**headers, "Content-Length": str(size)})
    failures.expect("all of it arrived", answer.status == 200 and answer.json["upload"]["size"] == size, answer.body)
    grown = most[0] - before
    print(f"an upload of {size} bytes: the server's memory grew by {grown} bytes")
    failures.expect("the memory does not grow with an upload", grown < (16 << 20), grown)
    folder = os.path.join(server.home, ".cache", "nacre")
    places = [os.path.join(folder, name) for name in os.listdir(folder)]
    modes = {oct(os.stat(place).st_mode & 0o777) for place in places if os.path.isdir(place)}
    failures.expect("uploads lie in a private folder", modes == {"0o700"}, modes)
    server.delete("/api/uploads/" + answer.json["upload"]["id"])
    connection = server.connection()
    connection.putrequest("POST", "/api/uploads?name=cut", skip_host=True)
    for name, value in {**headers, "Host": server.host, "Content-Length": "1000000"}.items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(b"x" * 1000)
    wait_for_uploads(server, "an upload that goes on is there", 1)
    connection.close()
    wait_for_uploads(server, "an upload that is cut off goes", 0)


def wait_for_uploads(server, what, count):
    """Until that many uploads lie in the private folder."""
    base = os.path.join(server.home, ".cache", "nacre")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = [name for folder in os.listdir(base) if folder.startswith("web-")
                 for name in os.listdir(os.path.join(base, folder))]
        if len(found) == count:
            return
        if time.monotonic() > deadline:
            failures.expect(what, False, found)
            return
        select.select([], [], [], 0.05)


def other_user(server):
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("skipped: another user's process: this needs root and setpriv")
        return
    user = pwd.getpwnam("nobody")
    program = ("import http.client,sys\n"
               "c=http.client.HTTPConnection(sys.argv[1],int(sys.argv[2]));"
               "c.request('GET',sys.argv[3],headers={'Host':sys.argv[4],'Authorization':'Bearer '+sys.argv[5]});"
               "r=c.getresponse();print(r.status,r.read().decode())")
    for address, host in (("127.0.0.1", server.host), ("::1", f"[::1]:{server.port}")):
        for path in ("/", "/api/files"):
            done = subprocess.run(
                ["setpriv", "--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups", sys.executable,
                 "-c", program, address, str(server.port), path, host, server.token],
                capture_output=True, text=True, check=False, cwd="/")
            if address == "::1" and "refused" in done.stderr.lower():
                print("skipped: another user over ::1: there is no IPv6 here")
                continue
            is_refused = done.stdout.startswith("403 ") and '"check":"peer_user"' in done.stdout
            failures.expect(f"another user at {address}{path} is refused", is_refused, done.stdout + done.stderr)
            print(f"refused: another user at {address}{path}: peer_user")


def unix_socket():
    path = f"/tmp/nacre-web-{os.getpid()}.sock"
    with Server("--socket", path) as server:
        server.open_session()
        failures.expect("the socket is private", os.stat(path).st_mode & 0o777 == 0o600)
        failures.expect("the socket serves", server.get("/api/session").status == 200)
        for host in ("evil.example:80", "127.0.0.1", "127.0.0.1:1x", "localhost:8422"):
            answer = server.request("GET", "/api/session", headers={"Host": host})
            expect_refused(f"Host '{host}' at the socket", answer, "host")
        if os.geteuid() == 0 and shutil.which("setpriv"):
            os.chmod(path, 0o666)
            program = ("import socket,sys\ns=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);"
                       "s.sendall(b'GET / HTTP/1.1\\r\\nHost: 127.0.0.1:1\\r\\nConnection: close\\r\\n\\r\\n');"
                       "print(s.makefile('rb').read())")
            done = subprocess.run(["setpriv", "--reuid", "nobody", "--clear-groups", sys.executable, "-c", program,
                                   path], capture_output=True, text=True, check=False, cwd="/")
            failures.expect("another user at the socket is refused", "peer_user" in done.stdout,
                            done.stdout + done.stderr)
    failures.expect("the socket is removed", not os.path.exists(path))


def main():
    with Server() as server:
        server.open_session()
        for attack in (other_origins, rebinding, tokens, sent_headers, answers_of_the_library, upload_names, script_names, bodies,
                       large_upload, other_user):
            attack(server)
        failures.expect("the server still works", server.get("/api/session").status == 200)
        token, one_time = server.token, server.one_time
        cache = os.path.join(server.home, ".cache", "nacre")
        server.process.terminate()
        server.process.wait(PATIENCE_SECONDS)
        left = [name for name in os.listdir(cache) if name.startswith("web-")]
        failures.expect("nothing private is left", not left, left)
        log = server.process.stderr.read()
    failures.expect("no token is in the log", token not in log and one_time not in log, log)
    failures.expect("nothing is in the log", log == "", log)
    unix_socket()
    failures.end()


if __name__ == "__main__":
    main()
