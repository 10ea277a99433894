#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Another program takes the port of a nacre web that has ended, and answers the open page as the real
server would. The page sends it nothing but requests for a proof, and says that its session is lost.

    page_takeover.py [TEST…]
"""
import http.server
import json
import threading
import time
import urllib.parse

import page_fixture
import webdriver
from page_fixture import PASSPHRASE

VOLUME = {"path": "/home/a/vault", "name": "false vault", "shown": "/home/a/vault", "label": "", "volume_id": "", "fingerprint": "",
          "is_known": True, "state": "not_mounted", "state_text": "not mounted", "mountpoint": None, "read_only": False,
          "is_mine": True, "daemon": None, "rotation": None, "scrub": None, "space": None, "last_mountpoint": "/home/a/p",
          "commands": {"mount": "x", "unmount": "y"}}
ANSWERS = {"/api/volumes": {"volumes": [VOLUME]}, "/api/jobs": {"jobs": []}, "/api/secrets": {"secret": "00"},
           "/api/session": {"version": "0.1.0", "user": "a", "home": "/home/a", "idle_minutes": 10},
           "/api/session/proof": {"proof": "00" * 32}}


class FalseServer:
    """Listens at a port and keeps what it is asked: (method, path, headers, body)."""

    def __init__(self, port, answers=None, status=200):
        asked = self.asked = []
        replies = {**ANSWERS, **(answers or {})}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = urllib.parse.urlsplit(self.path).path
                asked.append((self.command, self.path, str(self.headers), body))
                is_script = path.endswith(".js")
                out = b"document.title = 'false code runs'" if is_script else json.dumps(replies.get(path, {})).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/javascript" if is_script else "application/json")
                self.send_header("Content-Length", str(len(out)))
                self.end_headers()
                self.wfile.write(out)

            do_GET = do_POST = do_DELETE = answer

        class Listener(http.server.ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        self.server = self.listen(Listener, port, Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @staticmethod
    def listen(listener, port, handler):
        """The kernel may need a moment until the ended server's port is free."""
        deadline = time.monotonic() + 60 * webdriver.PATIENCE
        while True:
            try:
                return listener(("127.0.0.1", port), handler)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def expect_nothing_but_nonces(self):
        assert self.asked, "the page asked for no proof"
        for method, path, headers, body in self.asked:
            seen = f"{method} {path}\n{headers}\n{body[:200]}"
            assert method == "GET" and path.startswith("/api/session/proof?") and not body, f"the false server received {seen}"
            assert "authorization" not in headers.lower(), f"the false server received a token: {seen}"


def port_of(page):
    return urllib.parse.urlsplit(page.address).port


def end_server(page):
    page.server.terminate()
    page.server.wait(timeout=60 * webdriver.PATIENCE)


def expect_lost(page, false_server):
    page.browser.find("h1", "session is lost")
    assert "Close this tab" in page.browser.find("main").text
    # Nothing brings the page back to that server: no address, no key, no event.
    for address in ("keys", "files/encrypt", "volumes", "live"):
        page.browser.script("location.hash = arguments[0]; document.dispatchEvent(new Event('visibilitychange'))", f"#/{address}")
    kept = page.browser.script("return Object.keys(sessionStorage)")
    assert not kept, f"the page still keeps {kept}"
    # A request of the test's own comes after all that the page has sent.
    page.browser.script("return fetch('/api/session/proof?last').then(() => true)")
    assert page.browser.script("return document.title") == "This session is lost – Nacre"
    page.browser.find("h1", "session is lost")
    false_server.expect_nothing_but_nonces()
    page.browser.messages()  # refused connections are what this test makes


def test_a_false_server_gets_no_token_and_no_module(page):
    end_server(page)
    with FalseServer(port_of(page)) as false_server:
        expect_lost(page, false_server)
        assert "false vault" not in page.browser.script("return document.body.textContent")
        page.shot("lost_to_another_server")


def test_a_false_server_after_the_away_message(page):
    end_server(page)
    page.browser.find("[role=alert]", "does not answer")
    with FalseServer(port_of(page)) as false_server:
        expect_lost(page, false_server)


def test_a_false_server_gets_no_passphrase(page):
    page.go("keys")
    page.browser.find("main form")
    page.secrets(*[PASSPHRASE] * len([field for field in page.browser.all("input[type=password]") if field.is_shown]))
    end_server(page)
    with FalseServer(port_of(page)) as false_server:
        # The click and the polls race: whichever comes first finds the false server out.
        page.browser.script("document.querySelector('main form').requestSubmit()")
        expect_lost(page, false_server)
        assert not any(PASSPHRASE.encode() in body for _, _, _, body in false_server.asked)


def test_a_false_server_gets_no_dropped_file(page):
    page.go("files/encrypt")
    end_server(page)
    with FalseServer(port_of(page)) as false_server:
        page.browser.script("""
            const data = new DataTransfer();
            data.items.add(new File(['a dropped secret'], 'plan.txt'));
            document.querySelector('.drop').dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));""")
        expect_lost(page, false_server)


def test_a_passphrase_is_sent_encrypted(page):
    page.write("letter.odt", "x" * 5000)
    page.go("files/encrypt")
    page.browser.script("""
        const real = window.fetch;
        window.sent = [];
        window.fetch = (path, options = {}) => {
          const body = options.body ?? '';
          window.sent.push([path, typeof body === 'string' ? body : new TextDecoder('latin1').decode(body)]);
          return real(path, options);
        };""")
    page.add_files("letter.odt")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    sent = page.browser.script("return window.sent")
    assert any(path == "/api/secrets/sealed" and len(body) == len(PASSPHRASE) + 28 for path, body in sent), sent
    assert not any(PASSPHRASE in body for _, body in sent), sent
    # The server takes no bytes that the page has not encrypted.
    for size in (0, 27, 28, 60):
        status = page.browser.script("""
            const token = sessionStorage.getItem('nacre.token');
            const headers = {Authorization: `Bearer ${token}`, 'Content-Type': 'application/octet-stream'};
            const body = new Uint8Array(arguments[0]);
            return fetch('/api/secrets/sealed', {method: 'POST', headers, body}).then((one) => one.status);""", size)
        assert 400 <= status < 500, status


def test_proofs_that_are_none(page):
    for answers, status in (({"/api/session/proof": {}}, 200), ({"/api/session/proof": {"proof": ""}}, 200),
                            ({"/api/session/proof": {"proof": None}}, 200), ({}, 404), ({}, 401), ({}, 500)):
        end_server(page)
        with FalseServer(port_of(page), answers, status) as false_server:
            expect_lost(page, false_server)
        page.start_server()
        page.browser.open(page.address)
        page.browser.find("main h1", "Volumes")


def test_the_page_goes_on_with_its_own_server(page):
    """A request that fails is no loss: the server proves itself, and the message goes."""
    page.browser.cdp("Network.enable", {})
    offline = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.browser.cdp("Network.emulateNetworkConditions", {**offline, "offline": True})
    page.browser.find("[role=alert]", "does not answer")
    page.browser.cdp("Network.emulateNetworkConditions", {**offline, "offline": False})
    page.browser.gone("[role=alert]")
    page.browser.find("main h1", "Volumes")
    page.browser.messages()


def test_nothing_is_fetched_after_the_start_but_answers(page):
    page.browser.script("performance.clearResourceTimings()")
    for address in ("new", "files/decrypt", "keys", "compare", "live", "activity", "volumes"):
        page.go(address)
    selects = page.browser.all(".preferences select")
    page.browser.script("arguments[0].value = 'de'; arguments[0].dispatchEvent(new Event('change'))", selects[1])
    page.browser.find(".nav a", "Dateien")
    fetched = page.browser.script("return performance.getEntriesByType('resource').map((one) => one.name)")
    others = [name for name in fetched if not urllib.parse.urlsplit(name).path.startswith("/api/")]
    assert not others, f"the page fetched {others}"


if __name__ == "__main__":
    page_fixture.run(dict(globals()))
