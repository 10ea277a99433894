#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a mount tells of itself: nacre stats as text and JSON, nacre file, and the metrics, which are
scraped over a port and a socket, parsed by a strict reader, and compared with the JSON. The example
dashboard must use names that there are. No file's name may show in any of it.

    stats_commands.py DASHBOARD
"""
import errno
import http.client
import json
import os
import re
import socket
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from volume import Failure, Volume, leave_others_mounts, skip_part, wait_for  # noqa: E402

SECRET_NAME = "an-unspeakable-name"


def check(condition, what):
    if not condition:
        raise Failure(what)


def errno_of(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def stats_of(volume):
    return json.loads(volume.run("nacre", "stats", "--json", volume.mnt)[1])["stats"]


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=300)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(300)
        self.sock.connect(self.path)


def fetch(connection, path="/metrics", method="GET", **headers):
    connection.request(method, path, headers=headers)
    reply = connection.getresponse()
    body = reply.read().decode()
    connection.close()
    return reply, body


LABEL = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"([a-zA-Z_:][\w:]*)(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def parse(text):
    """{family: (type, {(name, labels): value})}; every breach of the format is a failure."""
    families, current = {}, None
    check(text.endswith("\n"), "the last line does not end")
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("# HELP "):
            current = line.split()[2]
            check(current not in families, f"{current} comes twice")
            check(len(line.split()) > 3, f"{current} has no help")
            check(lines[i + 1].startswith(f"# TYPE {current} "), f"{current} has no type")
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            check(name == current and kind in ("counter", "gauge", "histogram"), line)
            families[name] = (kind, {})
        else:
            found = SAMPLE.fullmatch(line)
            check(found, f"no sample: {line}")
            name, labels, value = found.groups()
            kind, samples = families[current]
            if kind == "histogram":
                check(re.fullmatch(re.escape(current) + "_(bucket|sum|count)", name), line)
            else:
                check(name == current, line)
            check(kind != "counter" or current.endswith("_total"), f"{current} is a counter")
            key = (name, tuple(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")))
            check(key not in samples, f"twice: {line}")
            samples[key] = float(value)
    return families


def check_histograms(families):
    for family, (kind, samples) in families.items():
        if kind != "histogram":
            continue
        series = {}
        for (name, labels), value in samples.items():
            rest = tuple(pair for pair in labels if pair[0] != "le")
            series.setdefault(rest, {})[(name, dict(labels).get("le"))] = value
        for labels, values in series.items():
            buckets = sorted((float(le), value) for (name, le), value in values.items() if le)
            counts = [value for _, value in buckets]
            check(counts == sorted(counts), f"{family} {labels}: buckets are not cumulative")
            check(buckets[-1] == (float("inf"), values[(family + "_count", None)]),
                  f"{family} {labels}: +Inf is not the count")
            check((family + "_sum", None) in values, f"{family} {labels} has no sum")


def value(families, family, **labels):
    return families[family][1][(family, tuple(labels.items()))]


def work(volume):
    with open(os.path.join(volume.mnt, SECRET_NAME), "wb") as file:
        file.write(b"compressible " * 300_000)
        file.flush()
        os.fsync(file.fileno())
    with open(os.path.join(volume.mnt, "random"), "wb") as file:
        file.write(os.urandom(1_500_000))
        file.flush()
        os.fsync(file.fileno())
    # A name that is not there is an answer, and no error; an attribute that is not there is one.
    check(errno_of(lambda: os.stat(f"{volume.mnt}/no-such-file")) == errno.ENOENT, "a file?")
    for _ in range(5):
        check(errno_of(lambda: os.removexattr(os.path.join(volume.mnt, "random"), "user.none"))
              == errno.ENODATA, "an attribute?")
    os.mkdir(os.path.join(volume.mnt, "full"))
    with open(os.path.join(volume.mnt, "full", "x"), "wb"):
        pass
    check(errno_of(lambda: os.rmdir(os.path.join(volume.mnt, "full"))) == errno.ENOTEMPTY, "gone")
    os.unlink(os.path.join(volume.mnt, "full", "x"))
    os.rmdir(os.path.join(volume.mnt, "full"))
    volume.run("nacre", "sync", volume.mnt)


def check_stats(volume):
    stats = stats_of(volume)
    operations = stats["requests"]["operations"]
    for name in ("lookup", "write", "fsync", "mkdir", "rmdir", "create"):
        check(name in operations or name == "create", f"nothing is known of {name}: {operations}")
    for name, one in operations.items():
        check(one["count"] > 0 and one["error_count"] <= one["count"], f"{name}: {one}")
        check(one["p50_ns"] <= one["p90_ns"] <= one["p99_ns"] <= one["max_ns"], f"{name}: {one}")
        check(0 < one["max_ns"] <= one["sum_ns"], f"{name}: {one}")
    check(operations["fsync"]["count"] == 2, f"fsync was called twice: {operations['fsync']}")
    check(operations["lookup"]["error_count"] == 0, f"lookup: {operations['lookup']}")
    check(operations["removexattr"]["error_count"] == 5, f"{operations['removexattr']}")
    check(stats["requests"]["errors"]["ENODATA"] >= 5, f"{stats['requests']['errors']}")
    check(stats["requests"]["errors"]["ENOTEMPTY"] == 1, f"{stats['requests']['errors']}")
    codecs = stats["codecs"]
    check(codecs["lz77"]["ratio"] > 5, f"text that repeats: {codecs}")
    check(0.9 < codecs["none"]["ratio"] <= 1, f"random bytes: {codecs}")
    check(sum(one["record_count"] for one in codecs.values())
          == stats["segments"]["appended_record_count"], "records of codecs are not all")
    check(sum(one["payload_count"] for one in stats["engine"]["payload_sizes"])
          == stats["engine"]["payload_count"], "payloads of sizes are not all")
    check(stats["ratio"] > 1.5, f"ratio {stats['ratio']}")
    check(stats["rotation"]["rotation"] == "none" and stats["rotation"]["epoch"] == 1,
          f"{stats['rotation']}")
    text = volume.run("nacre", "stats", volume.mnt)[1]
    for line in text.splitlines()[1:]:
        check(len(line) <= 80, f"more than 80 columns: {line}")
    for words in (r"stored .*ratio [2-9]\.", r"  lz77 +\d+ records", r"lookup +\d+ +\d+ +[\d.]+ .s",
                  r"errors .*ENODATA \d+", r"keys +epoch 1", r"payloads +\d+ below"):
        check(re.search(words, text), f"'{words}' is missing: {text}")
    check(SECRET_NAME not in text, "a file's name in nacre stats")


def check_metrics(volume, connection, dashboard):
    reply, body = fetch(connection())
    check(reply.status == 200, f"{reply.status} {body}")
    check(reply.getheader("Content-Type").startswith("text/plain; version=0.0.4"), "content type")
    families = parse(body)
    check_histograms(families)
    check(SECRET_NAME not in body and "no-such" not in body and volume.mnt not in body,
          "a name in the metrics")
    stats = stats_of(volume)
    check(value(families, "nacre_data_bytes") == stats["data_bytes"], "data bytes")
    check(value(families, "nacre_codec_records_total", codec="lz77")
          == stats["codecs"]["lz77"]["record_count"], "records of lz77")
    count = families["nacre_request_duration_seconds"][1][
        ("nacre_request_duration_seconds_count", (("operation", "fsync"),))]
    check(count == stats["requests"]["operations"]["fsync"]["count"], "fsyncs")
    check(value(families, "nacre_errors_total", errno="ENOTEMPTY") == 1, "ENOTEMPTY")
    check(value(families, "nacre_epoch") == 1, "epoch")
    with open(dashboard, encoding="utf-8") as file:
        panels = json.load(file)["panels"]
    used = set()
    for panel in panels:
        for target in panel.get("targets", []):
            used |= set(re.findall(r"\bnacre_\w+", target["expr"]))
    check(len(used) >= 10, f"the dashboard shows only {used}")
    known = {name for _, samples in families.values() for name, _ in samples} | set(families)
    check(used <= known, f"the dashboard uses {used - known}, which do not exist")
    # The same text when nothing else is asked, and nothing else is to be had.
    check(fetch(connection(), "/")[0].status == 404, "/ is there")
    check(fetch(connection(), "/metrics/../x")[0].status == 404, "/x is there")
    check(fetch(connection(), method="POST")[0].status == 405, "POST is taken")
    for host in ("attacker.example", "127.attacker.example", "127.0.0.1.attacker.example:80", "128.0.0.1"):
        check(fetch(connection(), Host=host)[0].status == 403, f"{host} is taken for this machine")
    for host in ("localhost:9", "127.0.0.1", "127.1.2.3:9", "[::1]:9"):
        check(fetch(connection(), Host=host)[0].status == 200, f"{host} is refused")
    head, nothing = fetch(connection(), method="HEAD")
    check(head.status == 200 and nothing == "", "HEAD")


def metrics(volume, dashboard):
    for address, words in (("0.0.0.0:9101", "other machines could reach"),
                           ("192.168.1.1:9101", "other machines could reach"),
                           ("[::]:9101", "other machines could reach"),
                           ("127.0.0.1", "no port"), ("127.0.0.1:99999", "port is no number"),
                           ("localhost:9101", "no address"), ("unix:relative", "not absolute"),
                           ("unix:/" + "x" * 200, "too long"), ("", "has no value")):
        status, text = volume.mount("-o", f"metrics={address}", expect=(2,))
        check(words in text, f"metrics={address}: exit {status}: {text}")
    path = os.path.join(volume.work, "metrics.sock")
    with open(path, "w", encoding="ascii") as file:
        file.write("mine")
    check("a file of that name" in volume.mount("-o", f"metrics=unix:{path}", expect=(8, 32))[1],
          "a file was taken for a socket")
    with open(path, encoding="ascii") as file:
        check(file.read() == "mine", "a file that is in the way was touched")
    os.unlink(path)
    log = os.path.join(volume.work, "log")

    # What a daemon that was killed left is replaced.
    left = socket.socket(socket.AF_UNIX)
    left.bind(path)
    left.close()
    volume.mount("-o", f"metrics=unix:{path},log-file={log}")
    check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, "others may ask the socket")
    work(volume)
    check_stats(volume)
    check_metrics(volume, lambda: UnixConnection(path), dashboard)
    # A client that says nothing keeps nobody waiting.
    idle = socket.socket(socket.AF_UNIX)
    idle.connect(path)
    check(fetch(UnixConnection(path))[0].status == 200, "an idle client is in the way")
    volume.unmount()
    idle.close()
    check(not os.path.exists(path), "the socket is left behind")

    volume.mount("-o", f"metrics=127.0.0.1:0,log-file={log}")
    wait_for(lambda: re.search(r"metrics are at http://127.0.0.1:(\d+)/metrics", read(log)), 30,
             "the log does not say where the metrics are")
    port = int(re.findall(r"metrics are at http://127.0.0.1:(\d+)/", read(log))[-1])
    work(volume)
    check_metrics(volume, lambda: http.client.HTTPConnection("127.0.0.1", port, timeout=300),
                  dashboard)
    check(SECRET_NAME not in read(log), "a file's name in the log")
    # The port is taken: nothing is mounted, and the words say why.
    with Volume("stats-second") as second:
        second.make()
        text = second.mount("-o", f"metrics=127.0.0.1:{port}", expect=(8, 32))[1]
        check(f"127.0.0.1:{port}" in text and "in use" in text, text)
    volume.unmount()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def codecs_of_files(volume):
    """What nacre file says of each file, added up."""
    total = {}
    for folder, _, names in os.walk(volume.mnt):
        for name in names:
            info = json.loads(volume.run("nacre", "file", "--json", os.path.join(folder, name))[1])
            for codec, counts in info["codecs"].items():
                sums = total.setdefault(codec, dict.fromkeys(counts, 0))
                for field in ("record_count", "plain_bytes", "stored_bytes"):
                    sums[field] += counts[field]
    return total


def files(volume):
    volume.mount()
    name = os.path.join(volume.mnt, "file")
    text = os.urandom(1 << 20)
    with open(name, "wb") as file:
        file.write(b"repeat " * (1 << 17))  # less than a chunk, all of lz77
        file.seek(4 << 20)
        file.write(text)
        file.truncate(8 << 20)
    volume.run("nacre", "sync", volume.mnt)
    info = json.loads(volume.run("nacre", "file", "--json", "--chunks", name)[1])
    check(info["size_bytes"] == 8 << 20 and info["chunk_count"] == 8, f"{info}")
    check(info["hole_chunk_count"] == 6, f"{info}")
    check(info["inode"] == os.stat(name).st_ino, "another inode")
    check(set(info["codecs"]) == {"lz77", "none"} and set(info["epochs"]) == {"1"}, f"{info}")
    check(info["codecs"]["none"]["plain_bytes"] == len(text), f"{info['codecs']}")
    check(info["stored_bytes"] == sum(one["stored_bytes"] for one in info["codecs"].values()),
          "codecs are not all")
    chunk = info["chunks"][0]
    check(chunk["kind"] == "stored" and chunk["pieces"][0]["codec"] == "lz77", f"{chunk}")
    covered = 0
    for chunk in info["chunks"]:
        check(chunk["chunk"] == covered, f"chunks do not follow each other: {chunk}")
        covered += chunk["chunk_count"]
    check(covered == 8, "chunks are missing")
    said = volume.run("nacre", "file", "--chunks", name)[1]
    for words in (r"size +8\.0 MiB", r"8 of up to 1\.0 MiB, 6 of them holes", r"codec lz77 +1 rec",
                  r"epoch 1", r"hole, 3 chunks"):
        check(re.search(words, said), f"'{words}' is missing: {said}")
    for line in said.splitlines()[1:]:
        check(len(line) <= 80, f"more than 80 columns: {line}")
    # Small writes that are synced are rows, and say so.
    small = os.path.join(volume.mnt, "small")
    with open(small, "wb") as file:
        file.write(b"x" * 100)
        file.flush()
        os.fsync(file.fileno())
    info = json.loads(volume.run("nacre", "file", "--json", small)[1])
    check(info["inlined_count"] + info["record_count"] == 1 and info["content_bytes"] == 100,
          f"{info}")
    with open(os.path.join(volume.mnt, "empty"), "wb"):
        pass
    info = json.loads(volume.run("nacre", "file", "--json", os.path.join(volume.mnt, "empty"))[1])
    check(info["chunk_count"] == 0 and info["ratio"] is None, f"{info}")
    # More chunks than one reply has room for.
    many = os.path.join(volume.mnt, "many")
    with open(many, "wb") as file:
        for i in range(0, 1400, 2):
            file.seek(i << 20)
            file.write(b"%d" % i)
    volume.run("nacre", "sync", volume.mnt)
    info = json.loads(volume.run("nacre", "file", "--json", "--chunks", many)[1])
    check(info["chunk_count"] == 1399 and info["hole_chunk_count"] == 699, f"{info['chunk_count']}")
    check(info["record_count"] + info["inlined_count"] == 700, f"{info['record_count']}")
    # What is no file of a volume.
    check("lies on no mounted" in volume.run("nacre", "file", volume.passphrase, expect=(8,))[1],
          "a file that lies elsewhere")
    check("no regular file" in volume.run("nacre", "file", volume.mnt, expect=(2,))[1], "a folder")
    volume.run("nacre", "file", os.path.join(volume.mnt, "nothing"), expect=(8,))
    volume.run("nacre", "sync", volume.mnt)
    of_files = codecs_of_files(volume)
    volume.unmount()
    # Of the whole volume, whenever it was written, the check that opens all of it says the same.
    said = volume.run("fsck.nacre", "--deep", "--json", "--passphrase-file", volume.passphrase, volume.path)[1]
    of_volume = json.loads(said)["records"]["codecs"]
    check(set(of_volume) == set(of_files) == {"lz77", "none"}, f"{of_volume}, {of_files}")
    for codec, counts in of_files.items():
        for field in ("record_count", "plain_bytes", "stored_bytes"):
            check(of_volume[codec][field] == counts[field], f"{codec} {field}: {of_volume}, {of_files}")
    said = volume.run("fsck.nacre", "--deep", "--passphrase-file", volume.passphrase, volume.path)[1]
    check(re.search(r"  lz77: \d+ records, .* ratio \d+\.\d\d", said), said)


def damage(volume):
    """A record that cannot be opened is told, with exit status 4, beside those that can."""
    volume.mount()
    name = os.path.join(volume.mnt, "hurt")
    with open(name, "wb") as file:
        file.write(os.urandom(3 << 20))
    volume.run("nacre", "sync", volume.mnt)
    pieces = [chunk["pieces"][0] for chunk in
              json.loads(volume.run("nacre", "file", "--json", "--chunks", name)[1])["chunks"]]
    volume.unmount()
    path = os.path.join(volume.path, "segments", f"{pieces[1]['segment']:012d}.seg")
    with open(path, "r+b") as file:
        file.seek(pieces[1]["segment_offset"] + 500)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    volume.mount()
    info = json.loads(volume.run("nacre", "file", "--json", "--chunks", name, expect=(4,))[1])
    check(info["damaged_record_count"] == 1 and info["record_count"] == 24, f"{info}")
    found = [chunk["pieces"][0].get("damage") for chunk in info["chunks"]]
    check(found == [None, "corrupt", None], f"{found}")
    check("1 records cannot be opened" in volume.run("nacre", "file", name, expect=(4,))[1], "words")
    volume.unmount()


def logs(volume):
    """Messages as JSON; and to the journal, where one listens."""
    path = os.path.join(volume.work, "log.json")
    check("expected journal" in volume.mount("-o", "log=somewhere", expect=(2,))[1], "any log")
    check("has no value" in volume.mount("-o", "log=", expect=(2,))[1], "no log")
    volume.mount("-o", f"log=json:{path}")
    work(volume)
    volume.unmount()
    check(stat.S_IMODE(os.stat(path).st_mode) == 0o600, "others may read the log")
    lines = [json.loads(line) for line in read(path).splitlines()]
    for line in lines:
        check(set(line) == {"time", "level", "pid", "program", "volume", "message"}, f"{line}")
        check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"]), f"{line}")
        check(line["volume"] == volume.path and line["program"] == "mount.nacre", f"{line}")
    messages = [line["message"] for line in lines if line["level"] == "info"]
    check(any("is mounted at" in message for message in messages), f"{messages}")
    check(any("everything is durable" in message for message in messages), f"{messages}")
    check(SECRET_NAME not in read(path), "a file's name in the log")
    if os.getuid() != 0:
        skip_part("stats_commands, journal", "only root can put a journal of its own in place")
        return
    done = subprocess.run(["unshare", "-m", "--propagation", "private", sys.executable, "-B",
                           __file__, "--journal"], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        skip_part("stats_commands, journal", done.stdout.strip())
    elif done.returncode != 0:
        raise Failure(f"journal: {done.stdout}{done.stderr}")


def journal():
    """In a mount namespace of its own: a socket in the journal's place."""
    leave_others_mounts()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=False).returncode != 0:
        print("no tmpfs can be mounted over /run")
        sys.exit(77)
    with Volume("stats-journal") as volume:
        volume.make()
        text = volume.mount("-o", "log=journal", expect=(8,))[1]
        check("no journal listens" in text, text)
        os.makedirs("/run/systemd/journal")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind("/run/systemd/journal/socket")
            listener.settimeout(300)
            volume.mount("-o", "log=journal")
            seen = b""
            while b"is mounted at" not in seen:
                seen = listener.recv(1 << 16)
            for field in (f"NACRE_VOLUME={volume.path}", "PRIORITY=6", "SYSLOG_FACILITY=3",
                          "SYSLOG_IDENTIFIER=mount.nacre"):
                check(f"{field}\n".encode() in seen, f"{field} is missing: {seen}")
            volume.unmount()


def top(volume):
    volume.mount()
    work(volume)
    said = volume.run("nacre", "top", volume.mnt)[1]
    for words in (r"health +ok", r"written .*B/s of files", r"requests +/s", r"keys +epoch 1",
                  r"all +\d+"):
        check(re.search(words, said), f"'{words}' is missing: {said}")
    check("\033" not in said, "colours where there is no terminal")
    for line in said.splitlines()[1:]:
        check(len(line) <= 80, f"more than 80 columns: {line}")
    volume.run("nacre", "top", "--interval", "0", volume.mnt, expect=(2,))
    volume.unmount()
    volume.run("nacre", "top", "--once", volume.mnt, expect=(8,))
    check("is not mounted" in volume.run("nacre", "top", volume.path, expect=(8,))[1], "words")


def main():
    for test in (files, damage, logs, top):
        with Volume(f"stats-{test.__name__}") as volume:
            volume.make("--chunk-size", "1M")
            test(volume)
    with Volume("stats-metrics") as volume:
        volume.make()
        if "built without" in volume.mount("-o", "metrics=127.0.0.1:0", expect=(0, 8))[1]:
            skip_part("stats_commands, metrics", "there is no libmicrohttpd")
            volume.mount()
            work(volume)
            check_stats(volume)
            volume.unmount()
        else:
            volume.unmount()
            metrics(volume, sys.argv[1])
    print("stats, file and metrics: good")


if __name__ == "__main__":
    try:
        if sys.argv[1] == "--journal":
            journal()
        else:
            main()
    except Failure as failure:
        sys.exit(f"FAILED: {failure}")
