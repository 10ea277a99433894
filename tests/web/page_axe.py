#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks axe-core, a judge of accessibility, about every page and the important dialogs of nacre web, light
and dark and at a phone's width. It fails for whatever axe-core calls serious or critical, and prints the rest.

    NACRE_AXE=axe.min.js page_axe.py [TEST…]

axe-core is no part of Nacre: `npm pack axe-core` gets it, and NACRE_AXE names its file package/axe.min.js.
"""
import json
import os
import sys

import page_fixture
from page_fixture import PASSPHRASE
from page_looks import fill_home

GRAVE = ("serious", "critical")
RUN = """
    const done = arguments[arguments.length - 1];
    axe.run(document, { resultTypes: ['violations'] }).then((found) => done(JSON.stringify(found.violations.map((one) => ({
      id: one.id, impact: one.impact, help: one.help,
      nodes: one.nodes.map((node) => node.target.join(' ') + ' ' + node.html.slice(0, 200)) })))),
      (error) => done(JSON.stringify({ error: String(error) })));"""


class Judge:
    def __init__(self, page):
        self.page, self.found, self.judged = page, [], 0
        with open(os.environ["NACRE_AXE"], encoding="utf-8") as file:
            self.source = file.read()

    def look(self, name):
        browser = self.page.browser
        if browser.script("return typeof axe") == "undefined":
            # The driver runs it beside the page's policy, which lets no other script in.
            browser.script(self.source + "\nwindow.axe = axe;")
        browser.until(lambda: browser.script("""
            return document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getTiming().iterations > 9)"""),
                      "transitions do not end")
        answer = json.loads(browser.script_async(RUN))
        assert isinstance(answer, list), answer
        self.judged += 1
        for one in answer:
            print(f"  {name}: {one['impact']}: {one['id']}: {one['help']}", flush=True)
            for node in one["nodes"][:4]:
                print(f"      {node}", flush=True)
            if one["impact"] in GRAVE:
                self.found.append(f"{name}: {one['id']}")

    def end(self):
        print(f"  {self.judged} views were judged", flush=True)
        assert self.judged > 20, "pages are missing"
        assert not self.found, f"axe-core finds {self.found}"


def dialog(page, judge, name, selector, text=None):
    page.browser.find(selector, text).click()
    page.browser.find("dialog[open] .dialog-body")
    page.browser.until(lambda: not page.browser.all("dialog .skeleton"), "the dialog is not complete")
    judge.look(name)
    page.browser.keys("escape")
    page.browser.gone("dialog")


def tour(page):
    fill_home(page)
    browser, judge = page.browser, Judge(page)
    vault = page.path("vault").replace("/", "%2F")
    page.go("volumes")
    browser.find(f'[data-volume="{page.path("vault")}"][data-state=mounted]')
    judge.look("volumes")
    dialog(page, judge, "dialog of a mount", "[data-main=not_mounted]")
    for tab in ("overview", "access", "care"):
        page.go(f"volumes/{vault}/{tab}")
        browser.find("[role=tab][aria-selected=true]")
        browser.until(lambda: not browser.all(".skeleton"), tab)
        judge.look(f"volume, {tab}")
    dialog(page, judge, "dialog of a rotation", "[data-care=rotate]")
    dialog(page, judge, "dialog of a backup", "[data-care=backup]")
    page.go(f"volumes/{vault}/access")
    browser.find("[data-recipient]")
    dialog(page, judge, "dialog of a new access", "main button", "Add")
    page.go("new")
    judge.look("wizard, place")
    browser.find("[data-next=place]").click()
    browser.find("[data-next=secret]")
    judge.look("wizard, passphrase")
    browser.find("[data-next=secret]").click()
    judge.look("wizard, a fault")
    page.secrets(PASSPHRASE, PASSPHRASE)
    browser.find("[data-next=secret]").click()
    browser.find("[data-next=storage]")
    judge.look("wizard, storage")
    browser.find("[data-next=storage]").click()
    browser.find("[data-next=review]")
    judge.look("wizard, review")
    for operation in ("encrypt", "decrypt", "compress", "inspect"):
        page.go(f"files/{operation}")
        browser.find(f"[data-submit={operation}]")
        judge.look(f"files, {operation}")
    page.go("files/encrypt/des")
    browser.find("[data-submit=encrypt]").click()
    browser.find("form [role=alert]")
    judge.look("files, DES and a fault")
    dialog(page, judge, "dialog of files", ".drop button")
    page.add_files("letter.odt")
    page.go("files/encrypt")
    page.secrets(PASSPHRASE, PASSPHRASE)
    browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    judge.look("files, a job")
    page.go("keys")
    browser.find("[data-submit=keygen]")
    judge.look("keys")
    page.go("compare")
    browser.find("[data-submit=compare]")
    judge.look("compare")
    browser.find(".drop button").click()
    page.choose("letter.odt", folder=page.home)
    browser.find("[data-submit=compare]").click()
    browser.find("main [data-job][data-state=done]", timeout_s=120)
    judge.look("compare, results")
    page.go("live")
    browser.find(".figure-tile")
    browser.find(".log li")
    judge.look("live")
    page.go("activity")
    browser.find("[data-job]")
    judge.look("activity")
    page.server.terminate()
    page.server.wait()
    browser.find("main, #app", "does not answer", timeout_s=60)
    judge.look("no answer")
    browser.open("about:blank")
    browser.messages()  # the refused connections are meant
    judge.end()


def test_light(page):
    tour(page)


def test_dark(page):
    page.browser.view(1280, 900, "dark")
    tour(page)


def test_phone(page):
    page.browser.view(390, 844)
    tour(page)


if __name__ == "__main__":
    if not os.path.exists(os.environ.get("NACRE_AXE", "")):
        page_fixture.skip("page_axe", "NACRE_AXE names no axe.min.js (npm pack axe-core)")
    page_fixture.run(dict(globals()), needs_fuse=True)
