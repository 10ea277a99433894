# SPDX-License-Identifier: Apache-2.0
"""What every test of the page shares: a server with a home of its own, a browser, and the steps that
many tests take. A test is a script with functions named test_…; run() calls them in turn, each with
a fresh page, and tells which failed.
"""
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.parse

import webdriver

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("NACRE_BIN", os.path.join(SOURCE, "build/ci/bin"))
SHOTS = os.environ.get("NACRE_SHOTS", os.path.join(os.path.dirname(BIN), "web_screenshots"))
PASSPHRASE = "twelve Lanterns over harbour 7"


def skip(what, why):
    print(f"skipped: {what}: {why}")
    sys.exit(77)


class Page:
    """A running `nacre web` with its own home, and a browser that has its page open."""

    def __init__(self, width=1280, height=900, language="en-US", scheme="light"):
        self.folder = tempfile.mkdtemp(prefix="nacre-page-")
        # NACRE_PAGE_HOME names another folder, whose name then stands in the screenshots.
        self.home = os.environ.get("NACRE_PAGE_HOME") or os.path.join(self.folder, "home")
        self.downloads = os.path.join(self.folder, "downloads")
        for folder in (self.home, self.downloads):
            os.makedirs(folder, exist_ok=True)
        self.environment = dict(os.environ, HOME=self.home, PATH=f"{BIN}:{os.environ['PATH']}")
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
            self.environment.pop(name, None)
        self.server = None
        self.browser = None
        try:
            self.start_server()
            self.browser = webdriver.Browser(width, height, downloads=self.downloads, language=language, scheme=scheme)
            self.browser.open(self.address)
            self.browser.find("main h1")
        except BaseException:
            self.close()
            raise

    def start_server(self, *options):
        self.output = open(os.path.join(self.folder, "server.log"), "w+b")
        self.server = subprocess.Popen([f"{BIN}/nacre", "web", "--no-open", *options], env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=self.output, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 30 * webdriver.PATIENCE
        while True:
            with open(self.output.name, encoding="utf-8") as log:
                found = [word for word in log.read().split() if "#token=" in word]
            if found:
                self.address = found[0]
                return
            if self.server.poll() is not None or time.monotonic() > deadline:
                with open(self.output.name, encoding="utf-8") as log:
                    raise AssertionError(f"nacre web did not start: {log.read()}")
            time.sleep(0.02)

    def second_address(self):
        """A one-time address for another page of the same server."""
        token = self.browser.script("return sessionStorage.getItem('nacre.token')")
        place = urllib.parse.urlsplit(self.address).netloc
        call = http.client.HTTPConnection(place)
        call.request("POST", "/api/session/link", "{}", {"Authorization": f"Bearer {token}", "Content-Type": "application/json",
                                                         "Origin": f"http://{place}"})
        answer = json.loads(call.getresponse().read())
        call.close()
        return answer["url"]

    def path(self, name):
        return os.path.join(self.home, name)

    def write(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def command(self, *words, secret=None, fails=False):
        """Runs a program of Nacre; `secret` goes through --passphrase-fd."""
        words = [os.path.join(BIN, words[0]), *words[1:]]
        if secret is not None:
            words += ["--passphrase-fd", "0"]
        done = subprocess.run(words, env=self.environment, input=(secret or "").encode(), capture_output=True,
                              timeout=300 * webdriver.PATIENCE)
        if (done.returncode != 0) != fails:
            raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}")
        return done.stdout.decode()

    # Steps on the page.
    def go(self, address):
        changes = self.browser.script("""
            const changes = location.hash !== arguments[0];
            location.hash = arguments[0];
            return changes;""", f"#/{address}")
        self.browser.until(lambda: self.browser.script("""
            const main = document.querySelector('main');
            return main && (!arguments[1] || main.dataset.address === arguments[0]) && !main.querySelector('.skeleton')
              && Boolean(main.querySelector('h1'));""", f"#/{address}", changes), f"page {address} is not shown")

    def shot(self, name, full=False):
        os.makedirs(SHOTS, exist_ok=True)
        self.browser.until(lambda: self.browser.script(
            "return document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getTiming().iterations > 9)"),
                           "transitions do not end")
        self.browser.screenshot(os.path.join(SHOTS, f"{name}.png"), full)

    def secrets(self, *texts, within=""):
        """Types into the password fields that are shown, in their order."""
        def shown():
            fields = [field for field in self.browser.all(f"{within} input[type=password]") if field.is_shown]
            return fields if len(fields) == len(texts) else None
        fields = self.browser.until(shown, f"there are not {len(texts)} fields for passphrases")
        for field, text in zip(fields, texts):
            field.clear()
            field.type(text)

    def choose(self, *names, folder=None):
        """In the open chooser: goes to a folder, and takes the entries with these names."""
        browser = self.browser
        browser.find("dialog .entries")
        if folder:
            place = browser.find("dialog [data-go]")
            place.type(folder)
            browser.keys("enter")
            browser.until(lambda: browser.script("""
                const list = document.querySelector('dialog .entries');
                return list.dataset.path === arguments[0] && !list.hasAttribute('aria-busy') &&
                  document.querySelector('dialog [data-go]').value === '';""", folder.replace("%", "%25")), f"{folder} is not listed")
        for name in names:
            browser.until(lambda name=name: browser.script("""
                const wanted = arguments[0];
                const entry = [...document.querySelectorAll('dialog .entry')].find(
                  (one) => one.querySelector('.grow').textContent === wanted);
                if (!entry) return false;
                entry.click();
                return entry.getAttribute('aria-selected') === 'true';""", name), f"{name} is not in the dialog")
        browser.find("dialog:has(.entries) .dialog-foot .primary").click()
        browser.gone("dialog .entries")

    def add_files(self, *names):
        self.browser.find(".drop button").click()
        self.choose(*names, folder=self.home)

    def job(self, kind, state="done", timeout_s=60):
        """Waits for the newest job of a kind to end so, and returns its card."""
        def look():
            card = self.browser.script("return document.querySelector(`[data-job][data-kind=${arguments[0]}]`)", kind)
            now = card.attribute("data-state") if card else None
            if now in ("done", "failed", "cancelled") and now != state:
                raise AssertionError(f"{kind} ended as {now}: {card.text}")
            return card if now == state else None
        return self.browser.until(look, f"no job {kind} is {state}", timeout_s)

    def rotate(self, volume, rate=""):
        """Begins a rotation of a volume's key on its page, with a speed limit if one is given."""
        self.go(f"volumes/{volume.replace('/', '%2F')}/care")
        self.browser.find("[data-care=rotate]").click()
        self.secrets(PASSPHRASE, within="dialog")
        if rate:
            self.browser.find("dialog details summary").click()
            self.browser.script("""
                const rate = [...document.querySelectorAll('dialog select')].pop();
                rate.value = arguments[0]; rate.dispatchEvent(new Event('change'));""", rate)
        self.browser.find("dialog .primary").click()
        self.browser.gone("dialog", timeout_s=60)

    def close(self):
        if self.browser:
            self.browser.close()
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as mounts:
            own = [line.split()[1] for line in mounts if line.split()[1].startswith((self.folder, self.home))]
        for place in own:
            subprocess.run([f"{BIN}/nacre", "umount", place], env=self.environment, capture_output=True, timeout=120)
            if os.path.ismount(place):
                subprocess.run(["fusermount3", "-u", "-z", place], capture_output=True, timeout=60)
        if self.server and self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(timeout=60)
        shutil.rmtree(self.folder, ignore_errors=True)


def run(tests, needs_fuse=False, **options):
    """Runs the functions named test_… of a script, each with a page of its own."""
    lacking = webdriver.missing()
    name = os.path.basename(sys.argv[0])
    if lacking:
        skip(name, f"this system has no {lacking}")
    if needs_fuse and not os.access("/dev/fuse", os.R_OK | os.W_OK):
        skip(name, "/dev/fuse cannot be opened")
    failed = 0
    for test_name, test in tests.items():
        if not test_name.startswith("test_") or (len(sys.argv) > 1 and test_name not in sys.argv[1:]):
            continue
        page = Page(**options)
        try:
            test(page)
            complaints = [text for text in page.browser.messages() if "the server responded with a status" not in text]
            assert not complaints, f"the console has {complaints}"
            print(f"ok: {test_name}", flush=True)
        except BaseException as error:  # any failure: tell it, keep a picture, go on with the next test
            failed += 1
            print(f"FAILED: {test_name}: {error}", flush=True)
            traceback.print_exc()
            try:
                page.shot(f"failed_{test_name}")
            except Exception as second:
                print(f"no screenshot: {second}")
            if isinstance(error, KeyboardInterrupt):
                raise
        finally:
            page.close()
    sys.exit(1 if failed else 0)
