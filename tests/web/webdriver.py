# SPDX-License-Identifier: Apache-2.0
"""A small client of the WebDriver protocol (W3C), for headless Chromium through chromedriver. It uses
Python's own modules alone, so it works with whatever pair of versions the system has.

Waits poll for a condition and end when it holds; a deadline makes them fail, and nothing sleeps
for a fixed time.
"""
import base64
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "tab": "\ue004", "escape": "\ue00c", "down": "\ue015", "up": "\ue013",
        "right": "\ue014", "left": "\ue012", "space": "\ue00d", "home": "\ue011", "end": "\ue010", "back": "\ue003"}
PATIENCE = int(os.environ.get("NACRE_PATIENCE", "1"))


def missing():
    """What lacks on this system to run a browser, or ''."""
    lacking = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return ", ".join(lacking)


class WebDriverError(Exception):
    pass


class Element:
    def __init__(self, browser, reference):
        self.browser = browser
        self.reference = reference

    def _do(self, method, what, body=None):
        return self.browser.request(method, f"/element/{self.reference}/{what}", body)

    def click(self):
        self.browser.script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", self)
        self._do("POST", "click", {})

    def type(self, text):
        self._do("POST", "value", {"text": text})

    def clear(self):
        self._do("POST", "clear", {})

    @property
    def text(self):
        return self._do("GET", "text")

    def value_of(self, name):
        return self._do("GET", f"property/{name}")

    def attribute(self, name):
        return self.browser.script("return arguments[0].getAttribute(arguments[1])", self, name)

    @property
    def is_shown(self):
        return self._do("GET", "displayed")

    @property
    def is_enabled(self):
        return self._do("GET", "enabled")

    @property
    def label(self):
        """What a screen reader calls it."""
        return self._do("GET", "computedlabel")

    @property
    def role(self):
        return self._do("GET", "computedrole")


class Browser:
    """A Chromium of its own with a profile of its own; ended by close()."""

    def __init__(self, width=1280, height=900, downloads=None, language="en-US", scheme="light"):
        self.profile = tempfile.mkdtemp(prefix="nacre-chromium-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(os.path.join(self.profile, "chromedriver.log"), "wb")
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"], stdout=self.log, stderr=self.log)
        self.session = None
        arguments = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--disable-extensions",
                     "--disable-background-networking", "--disable-component-update", "--no-proxy-server",
                     "--hide-scrollbars", f"--user-data-dir={self.profile}/profile",
                     f"--window-size={width},{height}", f"--lang={language}"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        preferences = {"intl.accept_languages": language}
        if downloads:
            preferences["download.default_directory"] = downloads
            preferences["download.prompt_for_download"] = False
        self.until(self._is_ready, "chromedriver does not answer")
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": arguments, "prefs": preferences, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = answer["sessionId"]
        self.scheme = scheme
        self.view(width, height, scheme)
        if downloads:
            self.cdp("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": downloads})

    def _is_ready(self):
        try:
            return self._call("GET", "/status")["ready"]
        except OSError:
            return False

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120 * PATIENCE)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and value.get("error"):
            raise WebDriverError(f"{value['error']}: {value['message']}")
        return value

    def request(self, method, path, body=None):
        return self._call(method, f"/session/{self.session}{path}", body)

    def cdp(self, command, parameters):
        return self.request("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def view(self, width, height, scheme="light"):
        """The size of the page and the colours that the system asks for."""
        self.cdp("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.cdp("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def open(self, url):
        self.request("POST", "/url", {"url": url})

    def reload(self):
        self.request("POST", "/refresh", {})

    @property
    def url(self):
        return self.request("GET", "/url")

    def new_tab(self):
        handle = self.request("POST", "/window/new", {"type": "tab"})["handle"]
        self.request("POST", "/window", {"handle": handle})
        return handle

    def tab(self, handle):
        self.request("POST", "/window", {"handle": handle})

    @property
    def current_tab(self):
        return self.request("GET", "/window")

    @property
    def tabs(self):
        return self.request("GET", "/window/handles")

    def close_tab(self):
        self.request("DELETE", "/window")

    def script(self, text, *arguments):
        sent = [{ELEMENT: one.reference} if isinstance(one, Element) else one for one in arguments]
        return self._back(self.request("POST", "/execute/sync", {"script": text, "args": sent}))

    def script_async(self, text, *arguments):
        """The script's last argument is a function; its argument is the value."""
        self.request("POST", "/timeouts", {"script": 120000 * PATIENCE})
        return self._back(self.request("POST", "/execute/async", {"script": text, "args": list(arguments)}))

    def _back(self, value):
        if isinstance(value, dict) and ELEMENT in value:
            return Element(self, value[ELEMENT])
        if isinstance(value, list):
            return [self._back(one) for one in value]
        return value

    def all(self, selector):
        found = self.request("POST", "/elements", {"using": "css selector", "value": selector})
        return [Element(self, one[ELEMENT]) for one in found]

    def find(self, selector, text=None, timeout_s=20):
        """The first shown element of a selector, whose text has `text`; waits until there is one."""
        def look():
            return self.script("""
                const [selector, text] = arguments;
                return [...document.querySelectorAll(selector)].find((one) => one.checkVisibility() &&
                  (text === null || one.textContent.includes(text) || (one.getAttribute('aria-label') ?? '').includes(text))) ?? null;""",
                               selector, text)
        return self.until(look, f"no {selector} with text {text!r}", timeout_s)

    def gone(self, selector, timeout_s=20):
        self.until(lambda: not self.script(
            "return [...document.querySelectorAll(arguments[0])].some((one) => one.checkVisibility())", selector),
                   f"{selector} is still there", timeout_s)

    def until(self, condition, what, timeout_s=20):
        deadline = time.monotonic() + timeout_s * PATIENCE
        last = None
        while True:
            try:
                value = condition()
                if value:
                    return value
            except WebDriverError as error:
                last = error
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}{f' ({last})' if last else ''}{self._words()}")
            time.sleep(0.05)

    def _words(self):
        """What the page says, for the message of a failure."""
        if not self.session:
            return ""
        try:
            return "\n--- page ---\n" + self.script("return document.body.innerText")[:3000]
        except (WebDriverError, OSError):
            return ""

    def keys(self, *names):
        """Presses keys on what has the focus; a name of KEYS, or text."""
        actions = []
        for name in names:
            for character in KEYS.get(name, name):
                actions += [{"type": "keyDown", "value": character}, {"type": "keyUp", "value": character}]
        self.request("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def messages(self):
        """What the console has received: errors of scripts and refusals of the policy."""
        return [one["message"] for one in self.request("POST", "/se/log", {"type": "browser"}) if one["level"] == "SEVERE"]

    def screenshot(self, path, full=False):
        parameters = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.cdp("Page.getLayoutMetrics", {})["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        data = self.cdp("Page.captureScreenshot", parameters)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def close(self):
        try:
            if self.session:
                self._call("DELETE", f"/session/{self.session}")
        except (OSError, WebDriverError):
            pass
        self.driver.terminate()
        self.driver.wait(timeout=20)
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)
