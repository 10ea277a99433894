#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page as it is sent: few requests, few bytes, and a policy that lets in its own style sheet alone. The
program that makes it of its modules refuses what it would get wrong.

    server_page.py BUNDLE_PAGE
"""
import base64
import gzip
import hashlib
import os
import re
import subprocess
import sys
import tempfile

from server_client import Failures, Server

SIZE_MAX = 150_000  # bytes of all that a page loads, as it is sent
GOOD = {"main.js": "import { b as c } from './a.js';\nc();\n", "a.js": "export const b = () => 1;\n",
        "style.css": "a { color: red; }\n",
        "index.html": '<link rel="stylesheet" href="style.css">\n<script type="module" src="main.js"></script>\n'}


def check_page(server, failures):
    page = server.request("GET", "/", headers={"Accept-Encoding": "gzip"})
    html = gzip.decompress(page.body).decode()
    loaded = set(re.findall(r'(?:src|href)="([^"#]+)"', html))
    failures.expect("a page is one document, one script and one picture", loaded == {"page.js", "icon.svg"}, loaded)
    sizes = {"index.html": len(page.body)}
    for name in loaded:
        sizes[name] = len(server.request("GET", "/" + name, headers={"Accept-Encoding": "gzip"}).body)
    failures.expect(f"it takes at most {SIZE_MAX} bytes", sum(sizes.values()) <= SIZE_MAX, sizes)
    print(f"as sent: {sizes}")
    policy = page.headers["content-security-policy"]
    sheets = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode() for sheet in sheets]
    failures.expect("the policy lets in the sheet of the page by its hash",
                    len(digests) == 1 and f"style-src 'sha256-{digests[0]}';" in policy, policy)
    failures.expect("and nothing else that is inline", "unsafe" not in policy and "script-src 'self';" in policy, policy)
    failures.expect("no script is inline", not re.search(r"<script[^>]*>[^<]", html) and not re.search(r"\son\w+=", html))
    other = server.request("GET", "/api/session")
    failures.expect("answers have the same policy", other.headers["content-security-policy"] == policy, other.headers)


def bundle(program, files, lists=None):
    """The status, what was said, and the script."""
    with tempfile.TemporaryDirectory(prefix="nacre-bundle.") as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        with open(os.path.join(folder, "list.txt"), "w", encoding="utf-8") as file:
            file.write("# names\n" + "\n".join(lists or files) + "\n")
        done = subprocess.run([program, folder, os.path.join(folder, "list.txt"), os.path.join(folder, "out")],
                              capture_output=True, text=True, check=False)
        try:
            with open(os.path.join(folder, "out/page.js"), encoding="utf-8") as file:
                return done.returncode, done.stderr, file.read()
        except FileNotFoundError:
            return done.returncode, done.stderr, ""


def check_bundle(program, failures):
    status, said, script = bundle(program, GOOD)
    failures.expect("good modules are taken", status == 0, said)
    failures.expect("a module comes after those that it imports", script.index("module_a =") < script.index("module_main ="), script)
    for change, words, what in (
            ({"a.js": "export let b = 1;\n"}, "not understood", "a variable that changes"),
            ({"a.js": "import { c } from './main.js';\nexport const b = c;\n"}, "imports itself", "a circle"),
            ({"main.js": "import { d } from './a.js';\n"}, "does not export", "a name that is not exported"),
            ({"main.js": "import { b } from './z.js';\n"}, "not in the list", "a module that is not there"),
            ({"lost.js": "export const d = 1;\n"}, "no module imports it", "a module without a use"),
            ({"main.js": "import {\n  b } from './a.js';\n"}, "not understood", "an import of two lines"),
            ({"style.css": "a::after { content: '</style>'; }\n"}, "</", "a sheet that ends its element")):
        status, said, _ = bundle(program, {**GOOD, **change})
        failures.expect(f"{what} ends the build", status == 1 and words in said, said)


def main():
    failures = Failures()
    check_bundle(sys.argv[1], failures)
    with Server() as server:
        server.open_session()
        check_page(server, failures)
    failures.end()


if __name__ == "__main__":
    sys.exit(main())
