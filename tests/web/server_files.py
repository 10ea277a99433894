#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files and keys over the server of nacre web: what it makes, nacre crypt opens, and the other way round."""
import hashlib
import os
import re
import subprocess

from server_client import NACRE_BIN, Failures, Server, path_text

failures = Failures()


def nacre(server, *words, passphrase=""):
    done = subprocess.run([os.path.join(NACRE_BIN, "nacre"), *words], env=server.environment, input=passphrase,
                          text=True, capture_output=True, check=False)
    failures.expect(f"nacre {' '.join(words)}", done.returncode == 0, done.stderr)
    return done.stdout


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def expect_job(what, job, state="done"):
    failures.expect(f"{what}: {state}", job["state"] == state, job["error"])
    return job


def each_suite_and_codec(server, engine):
    """Every suite with one codec, and every codec with one suite, both ways. To a key, because a passphrase takes
    a second each time."""
    key = os.path.join(server.work, "grid")
    nacre(server, "crypt", "keygen", "--no-passphrase", "--bits", "2048", key)
    plain = b"the same words again and again; " * 4000 + os.urandom(1000)
    pairs = [(cipher["name"], "lz77") for cipher in engine["ciphers"]]
    pairs += [("aes-128-gcm", codec["name"]) for codec in engine["codecs"]]
    for number, (cipher, codec) in enumerate(pairs):
        path = os.path.join(server.work, f"suite{number}.txt")
        write(path, plain)
        is_legacy = cipher.startswith("des")
        request = {"inputs": [{"path": path}], "cipher": cipher, "codec": codec, "level": 3, "padding": "padme",
                   "engine": "cpu", "recipients": [key + ".pub.pem"]}
        if is_legacy:
            refused = server.post("/api/files/encrypt", request)
            failures.expect(f"{cipher} needs consent", refused.status == 400, refused.body)
        job = expect_job(f"encrypt with {cipher} and {codec}", server.wait(server.post("/api/files/encrypt", {
            **request, "allow_legacy_cipher": is_legacy})))
        failures.expect("the command names both", cipher in job["command"] or cipher == "aes-256-gcm", job["command"])
        os.remove(path)
        nacre(server, "crypt", "decrypt", "--identity", key + ".pem", path + ".ncr")
        failures.expect(f"nacre crypt opens {cipher} and {codec}", read(path) == plain)
        os.remove(path + ".ncr")
        nacre(server, "crypt", "encrypt", "--recipient", key + ".pub.pem", "--cipher", cipher, "--codec", codec,
              *(["--allow-legacy-cipher"] if is_legacy else []), path)
        os.remove(path)
        expect_job(f"decrypt {cipher} and {codec}", server.wait(server.post("/api/files/decrypt", {
            "inputs": [{"path": path + ".ncr"}], "identity": key + ".pem"})))
        failures.expect(f"the server opens {cipher} and {codec}", read(path) == plain)


def keys(server):
    folder = os.path.join(server.work, "keys")
    os.mkdir(folder)
    job = expect_job("keys", server.wait(server.post("/api/keys/generate", {
        "folder": folder, "name": "anna", "bits": 2048, "count": 3, "secret": server.secret("of the keys")})))
    made = job["result"]["keys"]
    failures.expect("three pairs", job["result"]["key_count"] == 3 and len(made) == 3, made)
    shown = server.get("/api/keys/public", path=made[0]["public"]).json
    failures.expect("the public key is shown", shown["bits"] == 2048 and shown["pem"] == read(made[0]["public"]).decode())
    failures.expect("with its fingerprint", shown["fingerprint"] == made[0]["fingerprint"], shown)
    private = server.get("/api/keys/public", path=made[0]["private"])
    failures.expect("a private key is not shown", private.status == 400 and b"BEGIN" not in private.body, private.body)
    failures.expect("a private key is private", os.stat(made[0]["private"]).st_mode & 0o777 == 0o600)
    short = server.post("/api/keys/generate", {"folder": folder, "name": "short", "bits": 1024, "no_passphrase": True})
    failures.expect("a key for use has 2048 bits", short.status == 400, short.body)
    path = os.path.join(folder, "letter")
    write(path, b"to two recipients")
    expect_job("encrypt to two keys", server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"path": path}], "recipients": [made[0]["public"], made[1]["public"]]})))
    for number, state in ((0, "done"), (1, "done"), (2, "failed")):
        job = expect_job(f"decrypt with key {number}", server.wait(server.post("/api/files/decrypt", {
            "inputs": [{"path": path + ".ncr"}], "identity": made[number]["private"],
            "secret": server.secret("of the keys"), "output": {"kind": "folder", "path": folder + f"/{number}"}})), state)
    failures.expect("a key that is no recipient's", job["error"]["code"] == "wrong key", job["error"])
    failures.expect("the text came back", read(folder + "/1/letter") == b"to two recipients")
    job = server.wait(server.post("/api/files/decrypt", {
        "inputs": [{"path": path + ".ncr"}], "identity": made[0]["private"], "secret": server.secret("not this one"),
        "output": {"kind": "download"}}))
    failures.expect("the key's own passphrase is wrong", job["error"]["code"] == "wrong key", job["error"])


def wrong_passphrase_and_damage(server):
    path = os.path.join(server.work, "damaged")
    write(path, os.urandom(1 << 20))
    expect_job("encrypt", server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"path": path}], "secrets": [server.secret("one"), server.secret("two")], "remove_input": True})))
    failures.expect("the input was removed", not os.path.exists(path))
    request = {"inputs": [{"path": path + ".ncr"}]}
    job = expect_job("a wrong passphrase", server.wait(server.post("/api/files/decrypt", {
        **request, "secret": server.secret("three")})), "failed")
    error = job["error"]
    failures.expect("it says what, where and what next", error["code"] == "wrong key" and error["what"] and error["next"]
                    and error["where"] == path + ".ncr" and error["command"].startswith("nacre crypt decrypt "), error)
    job = server.wait(server.post("/api/files/inspect", {**request, "secret": server.secret("two")}))
    container = expect_job("inspect", job)["result"]["containers"][0]
    failures.expect("inspected", container["verified"] and container["plain_bytes"] == 1 << 20
                    and len(container["recipients"]) == 2, container)
    failures.expect("its words are about a file", "this file" in error["what"] and "volume" not in error["what"], error)
    sealed = bytearray(read(path + ".ncr"))
    sealed[len(sealed) // 2] ^= 1
    write(path + ".ncr", sealed)
    job = expect_job("a changed byte", server.wait(server.post("/api/files/decrypt", {
        **request, "secret": server.secret("two")})), "failed")
    failures.expect("is named", job["error"]["code"] in ("corrupt", "tampered"), job["error"])
    failures.expect("and leaves no file", not os.path.exists(path))
    expect_job("inspect a changed byte", server.wait(server.post("/api/files/inspect", request)), "failed")
    used = server.secret("two")
    expect_job("a secret is used", server.wait(server.post("/api/files/decrypt", {**request, "secret": used})), "failed")
    again = server.post("/api/files/decrypt", {**request, "secret": used})
    failures.expect("once", again.status == 400 and again.check == "secret_id", again.body)


def options_in_messages(server):
    """What a command says of its options, the page says of its own controls."""
    folder = os.path.join(server.work, "options")
    os.mkdir(folder)
    path = os.path.join(folder, "taken")
    write(path, b"plain")
    write(path + ".ncr", b"something else")
    key = os.path.join(server.work, "grid")
    with_key = {"recipients": [key + ".pub.pem"]}
    for what, action, body, hint in (
            ("a result that exists", "encrypt", {"inputs": [{"path": path}], **with_key}, "replace"),
            ("a folder", "encrypt", {"inputs": [{"path": folder}], **with_key}, "recursive"),
            ("a legacy cipher", "encrypt", {"inputs": [{"path": path}], **with_key, "cipher": "des-cbc"}, "legacy_cipher"),
            ("a name without .ncr", "decrypt", {"inputs": [{"path": path}], "identity": key + ".pem"}, "container_name"),
            ("a private key as a recipient", "encrypt", {"inputs": [{"path": path}], "recipients": [key + ".pem"],
                                                         "replace": True}, "public_key")):
        answer = server.post("/api/files/" + action, body)
        error = answer.json["error"] if answer.status != 202 else server.wait(answer)["error"]
        failures.expect(f"{what}: the hint {hint}", error["hint"] == hint, error)
        failures.expect(f"{what}: no option is named", not re.search(r"(^|\s|\()--?[a-zA-Z]", error["what"] + error["next"]), error)


def uploads_and_folders(server):
    content = os.urandom(3 << 20)
    answer = server.request("POST", "/api/uploads?name=" + "photo.jpg", content,
                            server.page_headers("application/octet-stream"))
    upload = answer.json["upload"]
    beside = server.post("/api/files/encrypt", {"inputs": [{"upload": upload["id"]}],
                                                "secrets": [server.secret("a")]})
    failures.expect("an upload has no folder", beside.status == 400, beside.body)
    job = expect_job("encrypt an upload", server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"upload": upload["id"]}], "secrets": [server.secret("a")], "output": {"kind": "download"}})))
    failures.expect("the command names it", job["command"].endswith(" photo.jpg"), job["command"])
    url = server.post(f"/api/jobs/{job['id']}/download", {"file": 0}).json["url"]
    sealed = server.request("GET", url).body
    target = os.path.join(server.work, "photo.jpg.ncr")
    write(target, sealed)
    output = job["files"][0]["output"]
    failures.expect("a download waits", os.path.exists(output))
    server.delete("/api/jobs/" + job["id"])
    failures.expect("and goes with its job", not os.path.exists(output))
    nacre(server, "crypt", "decrypt", "--passphrase-fd", "0", target, passphrase="a")
    failures.expect("it is the upload",
                    hashlib.sha256(read(target[:-4])).digest() == hashlib.sha256(content).digest())
    tree = os.path.join(server.work, "tree")
    os.makedirs(tree + "/below")
    for name in ("a", "below/b", "below/c"):
        write(os.path.join(tree, name), name.encode())
    job = expect_job("a folder", server.wait(server.post("/api/files/encrypt", {
        "inputs": [{"path": tree}], "secrets": [server.secret("a")], "recursive": True,
        "output": {"kind": "folder", "path": server.work + "/sealed"}})))
    failures.expect("has three files", job["file_count"] == 3 and os.path.exists(server.work + "/sealed/tree/below/c.ncr"))
    job = expect_job("decrypt a folder", server.wait(server.post("/api/files/decrypt", {
        "inputs": [{"path": server.work + "/sealed"}], "secret": server.secret("a"), "recursive": True})))
    failures.expect("again three", read(server.work + "/sealed/tree/below/c") == b"below/c")
    job = expect_job("outputs are not replaced", server.wait(server.post("/api/files/decrypt", {
        "inputs": [{"path": server.work + "/sealed"}], "secret": server.secret("a"), "recursive": True})), "failed")
    failures.expect("each file says so", {file["error"]["code"] for file in job["files"]} == {"exists"}, job["files"])


def cancel(server):
    """A job that reads a pipe runs until it is cancelled, and leaves nothing."""
    folder = os.path.join(server.work, "cancel")
    os.mkdir(folder)
    path = os.path.join(folder, "pipe")
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    answer = server.post("/api/files/encrypt", {"inputs": [{"path": path}], "secrets": [server.secret("a")],
                                                "engine": "cpu"})
    job = answer.json["job"]
    piece = os.urandom(1 << 16)
    while server.get("/api/jobs/" + job["id"]).json["job"]["files"] == []:
        pass
    failures.expect("it runs", server.delete("/api/jobs/" + job["id"]).status == 409)
    failures.expect("it is cancelled", server.post(f"/api/jobs/{job['id']}/cancel").status == 200)
    os.write(writer, piece[:1 << 15])
    os.close(writer)
    expect_job("a cancelled job", server.wait(answer), "cancelled")
    failures.expect("nothing is left", os.listdir(folder) == ["pipe"], os.listdir(folder))
    listed = server.get("/api/jobs").json["jobs"]
    failures.expect("jobs are listed, the newest first", listed[0]["id"] == job["id"], listed[0])
    failures.expect("a job is forgotten", server.delete("/api/jobs/" + job["id"]).status == 200)
    failures.expect("and then unknown", server.get("/api/jobs/" + job["id"]).status == 404)


def compare(server):
    path = os.path.join(server.work, "compared")
    write(path, b"words that compress, " * 10000)
    job = expect_job("compare", server.wait(server.post("/api/files/compare", {
        "input": {"path": path}, "engines": ["cpu"], "rsa_bits": [1024]})))
    rows = job["result"]["rows"]
    failures.expect("no row failed", all(row["error"] is None for row in rows), rows)
    found = {(row["operation"], row["method"]) for row in rows}
    for wanted in (("compress", "lzw"), ("decompress", "huffman"), ("encrypt", "des-cbc"), ("decrypt", "aes-256-gcm"),
                   ("rsa_encrypt", "rsa-1024"), ("rsa_decrypt", "rsa-1024"), ("rsa_generate", "rsa-1024")):
        failures.expect(f"{wanted} is a row", wanted in found, found)
    estimate = server.post("/api/files/estimate", {"inputs": [{"path": path}]}).json
    failures.expect("an estimate", estimate["bytes"] == os.path.getsize(path) and estimate["engines"][0]["seconds"] > 0,
                    estimate)


def chooser(server):
    home = server.get("/api/files").json
    failures.expect("the home comes first", home["path"] == path_text(server.home), home)
    failures.expect("hidden files are hidden", home["entries"] == [] or home["entries"][0]["name"][0] != ".", home)
    shown = server.get("/api/files", path="~", hidden="1").json["entries"]
    failures.expect("unless they are asked for", ".profile" in [entry["name"] for entry in shown], shown)
    made = server.post("/api/files/folder", {"path": server.work, "name": "new folder"})
    failures.expect("a folder is made", os.path.isdir(server.work + "/new folder"), made.body)
    failures.expect("with its command", made.json["command"] == f"mkdir '{server.work}/new folder'", made.body)
    twice = server.post("/api/files/folder", {"path": server.work, "name": "new folder"})
    failures.expect("not twice", twice.status == 409, twice.body)
    outside = server.post("/api/files/folder", {"path": server.work, "name": "../x"})
    failures.expect("not elsewhere", outside.status == 400, outside.body)
    os.symlink("/nowhere", server.work + "/new folder/broken")
    os.symlink("/", server.work + "/new folder/root")
    kinds = {entry["name"]: entry["kind"] for entry in server.get("/api/files", path=server.work + "/new folder").json["entries"]}
    failures.expect("links are named", kinds == {"broken": "broken_link", "root": "link_to_folder"}, kinds)
    missing = server.get("/api/files", path="/nowhere/at/all")
    failures.expect("a missing folder", missing.status == 404 and missing.json["error"]["where"] == "/nowhere/at/all",
                    missing.body)
    places = server.get("/api/files/places").json["places"]
    failures.expect("places", places[0]["kind"] == "home" and places[-1]["kind"] == "root", places)


def main():
    with Server() as server:
        server.open_session()
        engine = server.get("/api/engine").json
        each_suite_and_codec(server, engine)
        for part in (keys, wrong_passphrase_and_damage, options_in_messages, uploads_and_folders, cancel, compare, chooser):
            part(server)
    failures.expect("no error is printed", server.errors == "", server.errors)
    failures.end()


if __name__ == "__main__":
    main()
