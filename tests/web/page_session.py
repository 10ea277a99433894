#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of nacre web as a whole: its session, reloads, two pages at once, a page that is closed during a
job, languages, theme, the keyboard, sizes, names for screen readers, and contrast.

    page_session.py [TEST…]
"""
import os
import re

import page_fixture
import webdriver
from page_fixture import PASSPHRASE


ADDRESSES = ["volumes", "new", "files/encrypt", "files/decrypt", "files/compress", "files/inspect", "keys", "compare", "live", "activity"]
RAW_BYTES_MAX = 150 * 1024


def big_job(page, size=6 << 30):
    """Starts an encryption that takes a while, of a file that takes no place on the disk."""
    with open(page.path("big.bin"), "wb") as file:
        file.truncate(size)
    page.go("files/encrypt")
    page.add_files("big.bin")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()


def test_the_token_leaves_the_address_bar_and_a_reload_keeps_the_session(page):
    assert "token" not in page.browser.url, page.browser.url
    assert page.browser.script("return sessionStorage.length") >= 1
    assert page.browser.script("return document.cookie") == ""
    page.go("files/decrypt")
    page.browser.reload()
    page.browser.find("main h1", "Files")
    page.browser.find("[data-submit=decrypt]")


def test_a_page_without_a_session_says_what_to_do(page):
    page.browser.script("sessionStorage.clear()")
    page.browser.reload()
    page.browser.find("h1", "no session")
    assert "nacre web" in page.browser.find("main pre").text
    page.shot("no_session")


def test_a_used_address_is_refused(page):
    page.browser.new_tab()
    page.browser.open(page.address)
    page.browser.find("h1", "no session")
    assert "token" not in page.browser.url


def test_another_tab_is_opened_from_the_first(page):
    page.browser.find(".another").click()
    page.browser.until(lambda: len(page.browser.tabs) == 2, "no tab is opened")
    page.browser.tab([tab for tab in page.browser.tabs if tab != page.browser.current_tab][0])
    page.browser.find("main h1", "Volumes")
    assert "token" not in page.browser.url, page.browser.url


def test_an_unknown_section_is_told(page):
    for address, name in (("nothing", "nothing"), ("files/shred", "shred"), ("volumes/%2Ftmp/nothing", "nothing")):
        page.go(address)
        page.browser.find("main", f"There is no section “{name}”")
        page.browser.gone("main .skeleton")
        page.browser.find("main a", "All volumes").click()
        page.browser.find("main h1", "Volumes")


def test_an_ended_server_is_told(page):
    page.server.terminate()
    page.server.wait(timeout=60)
    page.browser.find("[role=alert]", "does not answer")
    page.browser.messages()  # refused connections are what this test makes


def test_two_pages_see_the_same_jobs(page):
    first = page.browser.current_tab
    link = page.second_address()
    second = page.browser.new_tab()
    page.browser.open(link)
    page.browser.find("main h1")
    page.go("activity")
    page.browser.tab(first)
    page.write("letter.odt", "x" * 5000)
    page.go("files/encrypt")
    page.add_files("letter.odt")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    page.browser.tab(second)
    page.job("encrypt")
    page.browser.find("[data-job] [aria-label='Remove from the list']").click()
    page.browser.find("main .empty")
    page.browser.tab(first)
    page.browser.gone("[data-job]")


def test_a_job_survives_its_page_and_can_be_cancelled(page):
    first = page.browser.current_tab
    link = page.second_address()
    big_job(page)
    page.browser.find("[data-job][data-state=running] [role=progressbar]")
    other = page.browser.new_tab()
    page.browser.tab(first)
    page.browser.close_tab()
    page.browser.tab(other)
    page.browser.open(link)
    page.browser.find("main h1")
    page.go("activity")
    card = page.browser.find("[data-kind=encrypt]")
    assert card.attribute("data-state") == "running", "the machine is too fast for this size"
    page.browser.find("[data-kind=encrypt] button", "Cancel").click()
    page.job("encrypt", "cancelled")
    page.browser.until(lambda: not [name for name in os.listdir(page.home) if "ncr" in name], "an unfinished output is left")


def test_progress_has_rate_and_time_left(page):
    big_job(page)
    card = page.browser.find("[data-kind=encrypt][data-state=running]")
    page.browser.until(lambda: re.search(r"%.*iB of .*iB/s.*left", card.text), "no progress is shown")
    page.shot("running")
    page.browser.find("[data-kind=encrypt] button", "Cancel").click()
    page.job("encrypt", "cancelled")


def test_languages_have_the_same_texts(page):
    folder = os.path.join(page_fixture.SOURCE, "tools/web/assets")
    texts = {}
    for language in ("en", "de"):
        with open(os.path.join(folder, f"texts_{language}.js"), encoding="utf-8") as file:
            texts[language] = page.browser.script(file.read().replace("export default", "return"))
    en, de = texts["en"], texts["de"]
    assert len(en) > 300 and set(en) == set(de), set(en) ^ set(de)
    holes = {key: sorted(re.findall(r"\{\w+\}", text)) for key, text in en.items()}
    assert not [key for key, text in de.items() if sorted(re.findall(r"\{\w+\}", text)) != holes[key]]
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".js"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            used = set(re.findall(r"\bt\('([^']+)'", file.read()))
        assert used <= set(en), f"{name} uses {used - set(en)}"


def test_german_and_dark(page):
    selects = page.browser.all(".preferences select")
    page.browser.script("arguments[0].value = 'de'; arguments[0].dispatchEvent(new Event('change'))", selects[1])
    page.browser.find(".nav a", "Dateien")
    assert page.browser.script("return document.documentElement.lang") == "de"
    light = page.browser.script("return getComputedStyle(document.body).backgroundColor")
    theme = page.browser.all(".preferences select")[0]
    page.browser.script("arguments[0].value = 'dark'; arguments[0].dispatchEvent(new Event('change'))", theme)
    assert page.browser.script("return getComputedStyle(document.body).backgroundColor") != light


def test_the_keyboard_is_enough(page):
    page.write("folder/letter.odt", "x" * 5000)
    page.browser.reload()
    page.browser.find("main h1")
    page.browser.keys("tab")
    assert "Skip" in page.browser.script("return document.activeElement.textContent")
    page.browser.keys("tab", "tab", "enter")  # the second link of the navigation: Files
    page.browser.find("form .drop")
    assert page.browser.script("return document.activeElement.tagName") == "H1"
    for _ in range(30):
        page.browser.keys("tab")
        if page.browser.script("return Boolean(document.activeElement.closest('.drop'))"):
            break
    page.browser.keys("enter")
    page.browser.find("dialog .entry", "folder")
    assert page.browser.script("return document.activeElement.getAttribute('role')") == "listbox"
    page.browser.keys("f", "enter")  # types ahead to the folder and opens it
    page.browser.find("dialog .entry", "letter.odt")
    page.browser.keys("space", "enter")
    page.browser.gone("dialog")
    page.browser.find("form li", "letter.odt")
    # Escape closes a dialog, and the focus goes back to what opened it.
    page.browser.keys("enter")
    page.browser.find("dialog .entries")
    page.browser.keys("escape")
    page.browser.gone("dialog")
    assert page.browser.script("return Boolean(document.activeElement.closest('.drop'))")


def has_name(page, element):
    """Whether a screen reader can tell an element that is shown. A list may have replaced it meanwhile."""
    try:
        return not element.is_shown or bool(element.label)
    except webdriver.WebDriverError as error:
        if "stale element" in str(error):
            return True
        raise


def test_everything_has_a_name_and_enough_contrast(page):
    for scheme in ("light", "dark"):
        page.browser.view(1280, 900, scheme)
        for address in ADDRESSES:
            page.go(address)
            for element in page.browser.all("main a, main button, main input, main select, nav a, .preferences select"):
                assert has_name(page, element), f"{address}: without a name: {element.value_of('outerHTML')[:300]}"
            low = page.browser.script(CONTRAST)
            assert not low, f"{address}, {scheme}: {low}"
            assert page.browser.script("return document.querySelectorAll('h1').length") == 1, address


# Texts whose contrast with what is behind them is below 4.5, or 3 if they are large. Disabled ones may be.
CONTRAST = """
    const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
    const rgba = (color) => {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const light = (color) => {
      const [r, g, b] = color.map((one) => one / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (node) => {
      for (let at = node; at; at = at.parentElement) {
        const color = rgba(getComputedStyle(at).backgroundColor);
        if (color[3] > 250) return color;
      }
      return [255, 255, 255, 255];
    };
    const low = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || !node.checkVisibility()) continue;
      if (node.closest('[disabled], .visually-hidden, script, option, .skip')) continue;
      if (node.closest('label')?.querySelector('input:disabled')) continue;
      const style = getComputedStyle(node);
      const [a, b] = [light(rgba(style.color)), light(behind(node))].sort((x, y) => y - x);
      const ratio = (a + 0.05) / (b + 0.05);
      const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
      if (ratio < (isLarge ? 3 : 4.5)) low.push(`${walker.currentNode.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
    return low;"""


def test_no_page_is_wider_than_a_phone(page):
    page.browser.view(390, 844)
    for address in ADDRESSES:
        page.go(address)
        width = page.browser.script("return document.documentElement.scrollWidth")
        assert width <= 390, f"{address} is {width} pixels wide"


def test_the_page_is_small_and_paints_at_once(page):
    for address in ADDRESSES:
        page.go(address)
    sizes = page.browser.script("""
        const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
        return entries.filter((one) => !one.name.includes('/api/')).map((one) => [one.name, one.encodedBodySize]);""")
    assert all(name.startswith(page.address.split("#")[0]) for name, _ in sizes), f"something comes from elsewhere: {sizes}"
    total = sum(size for _, size in sizes)
    print(f"   the page and all its parts: {total / 1024:.0f} KiB in {len(sizes)} files")
    page.browser.reload()
    page.browser.find("main h1")
    paints = page.browser.until(lambda: page.browser.script(
        "return performance.getEntriesByType('paint').map((one) => [one.name, one.startTime])"), "nothing was painted")
    print(f"   {paints}")
    assert total < RAW_BYTES_MAX, f"{total} bytes"


if __name__ == "__main__":
    page_fixture.run(dict(globals()))
