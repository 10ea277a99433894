#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server of nacre web ends when no page asks any more, not while a page does or a job runs; and what it says when it
cannot begin.
"""
import os
import subprocess
import time

from server_client import NACRE_BIN, Failures, Server

MINUTE_SECONDS = 60
failures = Failures()


def ends_when_idle():
    """The server's minute begins anew with each request that has a token, and with no other."""
    with Server("--idle-minutes", "1") as server:
        server.open_session()
        begin = time.monotonic()
        try:
            server.process.wait(MINUTE_SECONDS / 2)
            failures.expect("it runs for a while", False, server.process.returncode)
        except subprocess.TimeoutExpired:
            server.post("/api/alive")
        try:
            # A request without a token does not keep it alive.
            server.process.wait(MINUTE_SECONDS / 2)
        except subprocess.TimeoutExpired:
            server.request("GET", "/")
        status = server.process.wait(10 * MINUTE_SECONDS)
        seconds = time.monotonic() - begin
        failures.expect("it ends by itself", status == 0, status)
        failures.expect("a minute after the last page asked", seconds >= 1.5 * MINUTE_SECONDS - 2, seconds)
        left = [name for name in os.listdir(server.home + "/.cache/nacre") if name.startswith("web-")]
        failures.expect("nothing private is left", left == [], left)
    failures.expect("and says why", "no page was open for 1 minutes" in server.errors, server.errors)


def stays_for_a_job():
    with Server("--idle-minutes", "1") as server:
        server.open_session()
        pipe = server.work + "/pipe"
        os.mkfifo(pipe)
        writer = os.open(pipe, os.O_RDWR)
        # The server opens regular files alone, but the command that it runs waits for the pipe.
        answer = server.post("/api/files/inspect", {"inputs": [{"path": pipe}]})
        try:
            server.process.wait(MINUTE_SECONDS + 5)
            failures.expect("it stays for a job", False, server.process.returncode)
        except subprocess.TimeoutExpired:
            server.post(f"/api/jobs/{answer.json['job']['id']}/cancel")
        os.write(writer, b"x")
        os.close(writer)
        failures.expect("the job is cancelled", server.wait(answer)["state"] == "cancelled")


def refuses_to_begin():
    with Server() as server:
        for options, status, words in ((["--port", str(server.port)], 32, "in use"), (["--port", "99999"], 2, ""),
                                       (["--socket", "/tmp/" + "a" * 200], 8, "too long"),
                                       (["--socket", server.home + "/.profile"], 32, "in use"),
                                       (["--idle-minutes", "0"], 2, ""),
                                       (["--port", "1", "--socket", "/tmp/x"], 2, "together")):
            done = subprocess.run([os.path.join(NACRE_BIN, "nacre"), "web", "--no-open", *options], capture_output=True,
                                  text=True, env=server.environment, check=False, timeout=MINUTE_SECONDS)
            failures.expect(f"{options}: status {status}", done.returncode == status, (done.returncode, done.stderr))
            failures.expect(f"{options}: {words}", words in done.stderr, done.stderr)


def main():
    refuses_to_begin()
    ends_when_idle()
    stays_for_a_job()
    failures.end()


if __name__ == "__main__":
    main()
