#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How soon the page of nacre web is painted in headless Chromium, next to an empty page that a
small server of the same machine gives: that one is what the browser takes by itself.

    web_paint.py --bin DIR [--rounds N]

Each round loads both, first without the browser's cache and then with it, and asks the browser's own
clock (Paint Timing): the first paint, the first paint with content, and when the list of volumes is
there. Also told: requests, bytes as they were sent, and bytes unpacked. Prints medians in ms. Nothing
else should run on the machine.
"""
import argparse
import http.server
import os
import statistics
import sys
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../web"))

EMPTY = b"<!doctype html><html lang=en><title>empty</title><body><p>nothing</p></body></html>"
# The application is there once a heading stands in its main part, which the modules make.
FIGURES = """
    const paint = Object.fromEntries(performance.getEntriesByType('paint').map((one) => [one.name, one.startTime]));
    const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
    const assets = all.filter((one) => !one.name.includes('/api/'));
    return { first: paint['first-paint'] ?? null, content: paint['first-contentful-paint'] ?? null,
      ready: performance.getEntriesByName('nacre-ready')[0]?.startTime ?? null, requests: assets.length,
      sent: assets.reduce((sum, one) => sum + one.encodedBodySize, 0),
      unpacked: assets.reduce((sum, one) => sum + one.decodedBodySize, 0) };"""
WATCH = """
    new MutationObserver((_, observer) => {
      if (!document.querySelector('main h1')) return;
      performance.mark('nacre-ready');
      observer.disconnect();
    }).observe(document, { childList: true, subtree: true });"""


class Empty(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # noqa: N802, the name is the library's
        self.send_response(200 if self.path == "/" else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(EMPTY)))
        self.end_headers()
        self.wfile.write(EMPTY)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    os.environ["NACRE_BIN"] = os.path.realpath(arguments.bin)
    import page_fixture  # reads NACRE_BIN
    empty = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty)
    threading.Thread(target=empty.serve_forever, daemon=True).start()
    page = page_fixture.Page()
    try:
        measure(page, f"http://127.0.0.1:{empty.server_port}/", arguments.rounds)
    finally:
        page.close()
        empty.shutdown()


def figures(browser, is_own):
    """None as long as the page is not complete."""
    found = browser.script(FIGURES)
    is_complete = found["content"] is not None and (found["ready"] is not None or not is_own)
    return found if is_complete else None


def measure(page, empty, rounds):
    browser = page.browser
    place = urllib.parse.urlsplit(page.address)
    own = f"{place.scheme}://{place.netloc}/"
    browser.cdp("Page.enable", {})
    browser.cdp("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    taken = {}
    for _ in range(rounds):
        for is_cold in (True, False):
            browser.cdp("Network.setCacheDisabled", {"cacheDisabled": is_cold})
            for name, address in (("empty page", empty), ("nacre web", own)):
                browser.open(address)
                found = browser.until(lambda is_own=address == own: figures(browser, is_own), f"{name} is not painted")
                taken.setdefault((name, is_cold), []).append(found)
    print("| page | cache | first paint | with content | application there | requests | KB sent | KB unpacked |")
    print("|---|---|---|---|---|---|---|---|")
    for (name, is_cold), found in sorted(taken.items()):
        def middle(key, found=found):
            values = [one[key] for one in found if one[key] is not None]
            return f"{statistics.median(values):.0f} ({min(values):.0f})" if values else "–"
        print(f"| {name} | {'empty' if is_cold else 'filled'} | {middle('first')} | {middle('content')} | {middle('ready')} | "
              f"{found[-1]['requests']} | {found[-1]['sent'] / 1000:.1f} | {found[-1]['unpacked'] / 1000:.1f} |")
    print("\nms, the median of the rounds and in brackets the least")


if __name__ == "__main__":
    main()
