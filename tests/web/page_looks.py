#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Screenshots of every page of nacre web with something on it: light, dark, and at a phone's width, the
last in German. It also checks that nothing is cut off at the right.

    page_looks.py [TEST…]

The pictures are in $NACRE_SHOTS, which is web_screenshots in the build folder if it is not set.
"""
import os
import random
import sys
import time

import page_fixture
from page_fixture import PASSPHRASE

MIB = 1 << 20


def fill_home(page):
    """Files as people have them, a key pair, two volumes, and a job or two."""
    words = [word.strip() for word in __doc__.split() + page_fixture.__doc__.split()]
    chance = random.Random(32)
    page.write("Documents/accounts-2026.ods", chance.randbytes(180000))
    page.write("Documents/thesis.odt", " ".join(chance.choice(words) for _ in range(400000)))
    for number in range(412, 418):
        page.write(f"Photos/harbour-{number}.jpg", chance.randbytes(2 * MIB))
    page.write("letter.odt", " ".join(chance.choice(words) for _ in range(90000)))
    page.command("nacre", "crypt", "keygen", "--bits", "3072", page.path("anna"), secret=PASSPHRASE)
    for name, label in (("vault", "Private"), ("tax-2026", "")):
        words = ["--label", label] if label else []
        page.command("mkfs.nacre", "--kdf-memory", "64M", "--kdf-time", "1", *words, page.path(name), secret=PASSPHRASE)
    os.makedirs(page.path("private"), exist_ok=True)
    page.command("mount.nacre", page.path("vault"), page.path("private"), secret=PASSPHRASE)
    page.command("nacre", "key", "add", page.path("vault"), "--recipient", page.path("anna.pub.pem"), "--label", "Ann, 2026",
                 secret=PASSPHRASE)
    copy(page, 3)


def copy(page, count):
    for number in range(count):
        for name in ("Documents/thesis.odt", "Photos/harbour-412.jpg", "Photos/harbour-413.jpg", "Documents/accounts-2026.ods"):
            with open(page.path(name), "rb") as source:
                data = source.read()
            with open(os.path.join(page.path("private"), f"{number}-{os.path.basename(name)}"), "wb") as target:
                target.write(data)
            with open(target.name, "rb") as back:
                os.posix_fadvise(back.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                back.read()


faults = []  # of all pictures of a tour


def look(page, name, full=True):
    width = page.browser.script("return document.documentElement.clientWidth")
    cut = page.browser.script("return document.documentElement.scrollWidth > document.documentElement.clientWidth")
    page.shot(name, full)
    if cut:
        faults.append(f"{name} is wider than {width} pixels")
    faults.extend(f"{name}: {text}" for text in page.browser.script(SPILT))


# Texts that reach over the edge of their box, or of the box around it. What scrolls may be longer.
SPILT = """
    const spilt = [];
    const scrolls = (node) => ['auto', 'scroll'].includes(getComputedStyle(node).overflowX);
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.textContent.trim();
      const node = walker.currentNode.parentElement;
      if (!text || !node.checkVisibility() || node.closest('.visually-hidden, script, option, svg, .skip')) continue;
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      const { left, right } = range.getBoundingClientRect();
      for (let at = node; at && at !== document.body; at = at.parentElement) {
        if (scrolls(at) || getComputedStyle(at).position === 'fixed') break;
        if (getComputedStyle(at).display.startsWith('inline') && !at.matches('.button, .pill')) continue;
        const box = at.getBoundingClientRect();
        if (right > box.right + 1 || left < box.left - 1) {
          spilt.push(`${text.slice(0, 40)} in ${at.tagName}.${at.className}`);
          break;
        }
      }
    }
    for (const node of document.querySelectorAll('.button, .input, .select, .pill, .segmented')) {
      const box = node.parentElement.closest('.item, .card, .dialog-body, .dialog-foot, .main');
      if (!box || !node.checkVisibility() || scrolls(node.parentElement)) continue;
      const { left, right } = box.getBoundingClientRect();
      const { paddingLeft, paddingRight } = getComputedStyle(box);
      const own = node.getBoundingClientRect();
      if (own.right > right - parseFloat(paddingRight) + 1 || own.left < left + parseFloat(paddingLeft) - 1) {
        spilt.push(`${(node.textContent || node.outerHTML).slice(0, 40)} is wider than its place`);
      }
    }
    return spilt;"""


def tour(page, prefix, shown_language="en"):
    browser = page.browser
    vault = page.path("vault").replace("/", "%2F")
    page.go("volumes")
    browser.find(f'[data-volume="{page.path("vault")}"][data-state=mounted]')
    look(page, f"{prefix}_volumes")
    for tab in ("overview", "access", "care"):
        page.go(f"volumes/{vault}/{tab}")
        browser.find("[role=tab][aria-selected=true]")
        browser.until(lambda: browser.script("return !document.querySelector('.skeleton')"), tab)
        look(page, f"{prefix}_volume_{tab}")
    page.go("volumes")
    browser.find("[data-main=not_mounted]").click()
    browser.find("dialog input[type=password]")
    look(page, f"{prefix}_mount", full=False)
    browser.keys("escape")
    browser.gone("dialog")
    page.go("new")
    browser.find("[data-next=place]").click()
    browser.find("[data-next=secret]")
    page.secrets(PASSPHRASE, PASSPHRASE)
    look(page, f"{prefix}_wizard_secret")
    browser.find("[data-next=secret]").click()
    browser.find("[data-next=storage]")
    look(page, f"{prefix}_wizard_storage")
    browser.find("[data-next=storage]").click()
    browser.find("[data-next=review]")
    look(page, f"{prefix}_wizard_review")
    page.go("files/encrypt")
    browser.find(".drop button").click()
    browser.find("dialog .entries")
    browser.find("dialog [data-go]").type(page.path("Photos"))
    browser.keys("enter")
    browser.find("dialog .entry", "harbour-417")
    for number in (412, 413, 415):
        browser.find("dialog .entry", f"harbour-{number}").click()
    look(page, f"{prefix}_chooser", full=False)
    browser.find("dialog .dialog-foot .primary").click()
    browser.gone("dialog")
    page.secrets(PASSPHRASE, PASSPHRASE)
    browser.find(".show-command summary").click()
    browser.script("window.scrollTo(0, 0); document.activeElement.blur()")
    look(page, f"{prefix}_files")
    browser.script("[...document.querySelectorAll('form .check')].find((one) => one.textContent.includes(arguments[0])).click()",
                   {"en": "Replace files", "de": "Dateien ersetzen"}[shown_language])
    browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    page.go("files/decrypt")
    browser.find("[data-submit=decrypt]")
    look(page, f"{prefix}_decrypt")
    page.go("files/compress/des")
    browser.find("[data-submit=compress]")
    look(page, f"{prefix}_compress")
    page.go("keys")
    browser.find("[data-submit=keygen]")
    look(page, f"{prefix}_keys")
    page.go("compare")
    browser.find(".drop button").click()
    browser.find("dialog .entries")
    browser.find("dialog [data-go]").type(page.path("Documents"))
    browser.keys("enter")
    browser.find("dialog .entry", "thesis.odt").click()
    browser.find("dialog .dialog-foot .primary").click()
    browser.gone("dialog")
    browser.find("[data-submit=compare]").click()
    browser.find("main [data-job][data-state=done]", timeout_s=120)
    browser.until(lambda: not browser.all(".toast"), "messages stay")
    look(page, f"{prefix}_compare")
    page.go(f"live/{page.path('private').replace('/', '%2F')}")
    browser.find(".figure-tile")

    def has_curve():
        copy(page, 2)
        return browser.script("""
            return [...document.querySelectorAll('path.line')].some((one) => one.getAttribute('d').split('L').length > 6)""")
    browser.until(has_curve, "no curve is drawn", 60)
    look(page, f"{prefix}_live")
    page.go("activity")
    browser.find("[data-job]")
    look(page, f"{prefix}_activity")
    found = faults.copy()
    faults.clear()
    assert not found, "\n".join(found)


def test_light(page):
    fill_home(page)
    tour(page, "light")


def test_dark(page):
    fill_home(page)
    page.browser.view(1280, 900, "dark")
    tour(page, "dark")


def test_phone_in_german(page):
    fill_home(page)
    page.browser.view(390, 844)
    page.browser.script("localStorage.setItem('nacre.language', 'de')")
    page.browser.reload()
    page.browser.find("main h1")
    tour(page, "phone", "de")


def documents(page):
    """The pictures of docs/WEB.md: page_looks.py documents, with NACRE_PAGE_HOME set to a home that reads well."""
    browser = page.browser
    fill_home(page)
    browser.view(1200, 800)
    page.go("live")
    browser.find(".figure-tile")
    end = time.monotonic() + 100
    while time.monotonic() < end:
        copy(page, random.randrange(1, 3))
        browser.until(lambda begun=time.monotonic(): time.monotonic() > begun + random.random(), "time stands still")
    browser.view(1200, 800, "dark")
    look(page, "web_live", full=False)
    browser.view(1200, 800)
    page.go("volumes")
    browser.find(f'[data-volume="{page.path("vault")}"][data-state=mounted]')
    open_rotation(page)
    page.go("volumes")
    browser.find("[data-volume] .bar")
    look(page, "web_volumes", full=False)
    page.go("files/encrypt")
    browser.find(".drop button").click()
    page.choose("harbour-412.jpg", "harbour-413.jpg", folder=page.path("Photos"))
    page.secrets(PASSPHRASE, PASSPHRASE)
    browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    browser.find(".drop button").click()
    page.choose("letter.odt", folder=page.home)
    page.secrets(PASSPHRASE, PASSPHRASE)
    browser.until(lambda: not browser.all(".toast"), "messages stay")
    browser.script("window.scrollTo(0, 0); document.activeElement.blur()")
    look(page, "web_files", full=False)
    page.go("compare")
    browser.find(".drop button").click()
    page.choose("thesis.odt", folder=page.path("Documents"))
    browser.find("[data-submit=compare]").click()
    browser.find("main [data-job][data-state=done]", timeout_s=120)
    browser.until(lambda: not browser.all(".toast"), "messages stay")
    browser.script("document.querySelector('main [data-job]').scrollIntoView({block: 'start'}); window.scrollBy(0, -16)")
    look(page, "web_compare", full=False)


def open_rotation(page):
    """Begins a rotation that lasts some seconds."""
    with open(os.path.join(page.path("private"), "film.mkv"), "wb") as file:
        for _ in range(40):
            file.write(os.urandom(4 * MIB))
    page.command("nacre", "sync", page.path("private"))
    page.rotate(page.path("vault"), rate="16M")


if __name__ == "__main__":
    if sys.argv[1:] == ["documents"]:
        sys.argv.pop()
        page_fixture.run({"test_documents": documents}, needs_fuse=True)
    page_fixture.run(dict(globals()), needs_fuse=True)
