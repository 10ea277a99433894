#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Volumes on the page of nacre web: from the wizard to a mounted volume, files in it, rotation and
unmount; wrong passphrases; who can open it; scrub, check, repair and backup; the live figures. What
the page says is compared with the kernel's mount table and the commands.

    page_volumes.py [TEST…]
"""
import json
import os
import signal

import page_fixture
from fake_desktop import FakeDesktop
from page_fixture import PASSPHRASE


def make(page, name="vault", mount=False):
    """A volume made by the command, and mounted by it if wanted. Returns its path and its mountpoint."""
    volume, mountpoint = page.path(name), page.path(f"{name}-open")
    page.command("mkfs.nacre", "--kdf-memory", "64M", "--kdf-time", "1", volume, secret=PASSPHRASE)
    if mount:
        os.mkdir(mountpoint)
        page.command("mount.nacre", volume, mountpoint, secret=PASSPHRASE)
    return volume, mountpoint


def row(page, volume, state):
    return page.browser.find(f'[data-volume="{volume}"][data-state={state}]', timeout_s=60)


def open_tab(page, volume, tab):
    page.go(f"volumes/{volume.replace('/', '%2F')}/{tab}")
    page.browser.find("[role=tab][aria-selected=true]")


def test_from_the_wizard_to_files_and_unmount(page):
    page.browser.find("a.button", "New volume").click()
    page.browser.find("[data-next=place]")
    page.shot("wizard_place")
    page.browser.find("[data-next=place]").click()
    page.browser.find("[data-next=secret]").click()
    assert page.browser.find("[aria-invalid=true]"), "an empty passphrase is taken"
    page.secrets(PASSPHRASE, PASSPHRASE + "x")
    page.browser.find("[data-next=secret]").click()
    page.browser.find(".fault", "differ")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-next=secret]").click()
    page.browser.find("[data-next=storage]").click()
    page.browser.find("[data-next=review]").click()
    recovery = page.browser.find("[data-recovery]", timeout_s=120).text.strip()
    page.browser.find("dialog button", "I have kept it").click()
    volume, mountpoint = page.path("private"), page.path("private-open")
    assert os.path.isdir(os.path.join(volume, "db"))
    # The recovery key opens the volume, as the command sees it.
    shown = json.loads(page.command("nacre", "key", "list", "--json", volume, secret=recovery))
    assert len(shown["recipients"]) == 2, shown
    page.browser.find("[data-mount-new]").click()
    page.browser.find("dialog input[type=password]")
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.keys("enter")
    row(page, volume, "mounted")
    assert os.path.ismount(mountpoint)
    with open(os.path.join(mountpoint, "letter.odt"), "w", encoding="utf-8") as file:
        file.write("All that glisters is not gold.\n" * 1000)
    page.shot("volumes_mounted")
    page.browser.find("[data-main=mounted]").click()
    row(page, volume, "not_mounted")
    assert not os.path.ismount(mountpoint)
    # It can be mounted again where it was, and has the file.
    page.browser.find("[data-main=not_mounted]").click()
    page.browser.find("dialog input[type=password]")
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.keys("enter")
    row(page, volume, "mounted")
    assert os.listdir(mountpoint) == ["letter.odt"]


def test_the_wizard_checks_the_place_at_once(page):
    page.write("private/letter.odt", "not a volume")
    page.go("new")
    page.browser.find("form", "private-2")  # what it proposes is free
    name = page.browser.find("form input[type=text]")
    name.clear()
    name.type("private")
    page.browser.find("[data-next=place]").click()
    page.browser.find("form [role=alert]", "is not empty")
    page.browser.find("[data-next=place]")
    page.shot("wizard_taken")
    name.clear()
    name.type("vault")
    page.browser.keys("tab")
    page.browser.find("form", "The volume will be")
    page.browser.gone("form [role=alert]")
    page.browser.find("[data-next=place]").click()
    page.browser.find("[data-next=secret]")


def test_a_failed_check_keeps_what_was_chosen(page):
    volume, _ = make(page)
    open_tab(page, volume, "care")
    page.browser.find("[data-care=check]").click()
    page.browser.find("dialog input[value=deep]").click()
    page.secrets("wrong one", within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.job("check", "failed")
    page.browser.find("[data-care=check]").click()
    page.browser.find("dialog", "what you chose before")
    assert page.browser.script("return document.querySelector('dialog input:checked').value") == "deep"
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.find("[data-kind=check][data-state=done]", timeout_s=60)
    # After it went well, the next one begins afresh.
    page.browser.find("[data-care=check]").click()
    page.browser.find("dialog input[type=radio]")
    page.browser.until(lambda: page.browser.script("return document.querySelector('dialog input:checked').value") == "checksums",
                       "the choice of the last check is still there")


def test_sections_list_their_own_jobs(page):
    volume, _ = make(page)
    open_tab(page, volume, "care")
    for count in range(1, 6):
        page.browser.find("[data-care=check]").click()
        page.browser.find("dialog .primary").click()
        page.browser.gone("dialog", timeout_s=60)
        page.browser.until(lambda count=count: len(page.browser.all("[data-kind=check][data-state=done]")) == count, "a check lasts")
    page.browser.find("details.older summary", "2 older jobs")
    assert len([card for card in page.browser.all("[data-kind=check]") if card.is_shown]) == 3
    page.shot("older_jobs")
    open_tab(page, volume, "access")
    page.browser.find("[data-recipient]")
    page.browser.gone("[data-kind=check]")
    open_tab(page, volume, "care")
    page.browser.find("[data-clear]").click()
    page.browser.gone("[data-job]")


def test_a_wrong_passphrase_is_told_in_the_dialog(page):
    volume, mountpoint = make(page)
    page.browser.reload()
    row(page, volume, "not_mounted")
    page.browser.find("[data-main=not_mounted]").click()
    page.browser.find("dialog input[type=password]")
    assert page.browser.script("return document.activeElement.type") == "password"
    page.secrets("wrong one", within="dialog")
    page.browser.keys("enter")
    told = page.browser.find("dialog [role=alert]", timeout_s=60).text
    assert "passphrase" in told.lower() and "What to do" in told, told
    page.browser.find("dialog", "type it again")
    assert page.browser.script("return document.activeElement.type") == "password", "the passphrase has no focus"
    page.shot("wrong_passphrase")
    assert not os.path.ismount(mountpoint)
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.keys("enter")
    row(page, volume, "mounted")


def test_the_state_is_the_kernels(page):
    volume, mountpoint = make(page)
    page.browser.reload()
    row(page, volume, "not_mounted")
    os.mkdir(mountpoint)
    page.command("mount.nacre", volume, mountpoint, secret=PASSPHRASE)
    row(page, volume, "mounted")  # by the command, not by the page
    page.command("nacre", "umount", mountpoint)
    row(page, volume, "not_mounted")
    page.command("mount.nacre", volume, mountpoint, secret=PASSPHRASE)
    row(page, volume, "mounted")
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"mount.nacre" in words[0] and mountpoint.encode() in words:
            os.kill(int(entry), signal.SIGKILL)
    row(page, volume, "daemon_ended")
    page.browser.find("[data-main=daemon_ended]").click()
    page.browser.find("dialog button", "Detach").click()
    row(page, volume, "not_mounted")


def test_a_busy_volume_is_not_said_to_be_closed(page):
    volume, mountpoint = make(page, mount=True)
    with open(os.path.join(mountpoint, "open.txt"), "w", encoding="utf-8"):
        page.browser.reload()
        row(page, volume, "mounted")
        page.browser.find("[data-main=mounted]").click()
        page.browser.find("dialog [role=alert]", timeout_s=120)
        page.browser.find("dialog button.primary", "Close").click()
        row(page, volume, "mounted")
        assert os.path.ismount(mountpoint)


def test_recipients_and_passphrases(page):
    volume, _ = make(page)
    other = "a second passphrase 4 it"
    open_tab(page, volume, "access")
    page.browser.find("[data-recipient]")
    page.browser.find("button", "Add").click()
    page.browser.find("dialog")
    page.secrets(other, other, PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.until(lambda: len(page.browser.all("[data-recipient]")) == 2, "two recipients are not shown")
    page.command("nacre", "key", "list", volume, secret=other)
    page.shot("access")
    page.browser.find("button", "Change passphrase").click()
    third = "yet another 1 passphrase"
    page.secrets(other, third, third, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.command("nacre", "key", "list", volume, secret=third)
    page.command("nacre", "key", "list", volume, secret=other, fails=True)
    # Remove the first one, proved by the other.
    shown = json.loads(page.command("nacre", "key", "list", "--json", volume, secret=PASSPHRASE))
    assert len(shown["recipients"]) == 2
    first = page.browser.all("[data-recipient]")[0].attribute("data-recipient")
    page.browser.find(f'[data-recipient="{first}"] button').click()
    page.browser.find("dialog .check input").click()  # without a revocation
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.until(lambda: len(page.browser.all("[data-recipient]")) == 1, "it is still shown")


def test_a_colleagues_key_is_shown_with_its_fingerprint_and_added(page):
    volume, _ = make(page)
    page.command("nacre", "crypt", "keygen", "--no-passphrase", "--bits", "2048", page.path("ann"))
    open_tab(page, volume, "access")
    page.browser.find("[data-recipient]")
    page.browser.find("button", "Add").click()
    page.browser.find("dialog input[value=rsa]").click()
    page.browser.find("dialog button", "Browse").click()
    page.choose("ann.pub.pem", folder=page.home)
    page.browser.find("dialog", "2048 bits · ")
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.find("[data-recipient]", "RSA key")
    page.command("nacre", "key", "list", "--identity", page.path("ann.pem"), volume)


def test_rotation_and_scrub_of_a_mounted_volume(page):
    volume, mountpoint = make(page, mount=True)
    with open(os.path.join(mountpoint, "data"), "wb") as file:
        file.write(os.urandom(8 << 20))
    before = page.command("nacre", "key", "list", "--json", volume, secret=PASSPHRASE)
    page.rotate(volume)
    # The job ends when the daemon's rotation does, and says what is left to do.
    card = page.job("rotate", timeout_s=120)
    assert '"none"' in page.command("nacre", "key", "status", "--json", volume), "the job ends before the rotation"
    after = page.command("nacre", "key", "list", "--json", volume, secret=PASSPHRASE)
    fingerprint = json.loads(after)["volume_fingerprint"]
    assert json.loads(before)["volume_fingerprint"] != fingerprint
    shown = page.browser.find("[data-kind=rotate] [data-fingerprint]")
    assert shown.text.replace(" ", "") == fingerprint, shown.text
    assert "Other people" in card.text, card.text
    page.shot("rotated")
    page.browser.find("[data-care=scrub]").click()
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.find("main", "Last scrub", timeout_s=120)
    page.shot("care")


def test_a_rotation_is_still_there_when_the_page_is_opened_again(page):
    volume, mountpoint = make(page, mount=True)
    for number in range(16):
        with open(os.path.join(mountpoint, f"data-{number}"), "wb") as file:
            file.write(os.urandom(8 << 20))
    page.command("nacre", "sync", mountpoint)
    page.rotate(volume, rate="16M")
    page.browser.find(".care [role=progressbar]", timeout_s=60)
    page.browser.find("[data-kind=rotate][data-state=running] [role=progressbar][aria-valuenow]", timeout_s=60)
    page.browser.find("[data-kind=rotate] [data-fingerprint]")  # it is the new one from the beginning on
    first = page.browser.current_tab
    link = page.second_address()
    other = page.browser.new_tab()
    page.browser.tab(first)
    page.browser.close_tab()
    page.browser.tab(other)
    page.browser.open(link)
    page.browser.find(f'[data-volume="{volume}"] .bar')
    page.shot("rotation")
    open_tab(page, volume, "care")
    page.browser.find(".care button", "Pause").click()
    page.browser.find(".care button", "Continue", timeout_s=60)
    assert '"paused"' in page.command("nacre", "key", "status", "--json", volume)
    page.browser.find(".care button", "Continue").click()
    page.browser.find("[data-care=rotate]", timeout_s=120)
    assert '"none"' in page.command("nacre", "key", "status", "--json", volume)
    page.job("rotate", timeout_s=60)
    page.browser.find("[data-kind=rotate] .pill", "Done")


def test_check_and_repair_show_their_plan_first(page):
    volume, _ = make(page)
    open_tab(page, volume, "care")
    page.browser.find("[data-care=check]").click()
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    checked = page.job("check").text
    assert "No damage" in checked and "Records verified" not in checked, f"an empty volume has no records: {checked}"
    page.browser.find("[data-care=repair]").click()
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.find("dialog", "nothing to repair", timeout_s=60)
    page.browser.keys("escape")
    page.browser.gone("dialog")


def damage(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(b"damage" * 4)


def test_a_damaged_volume_is_repaired_after_a_look_at_the_plan(page):
    volume, mountpoint = make(page, mount=True)
    with open(os.path.join(mountpoint, "data"), "wb") as file:
        file.write(os.urandom(1 << 20))
    page.command("nacre", "umount", mountpoint)
    segments = sorted(os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(volume, "segments")) for name in names)
    largest = max(segments, key=os.path.getsize)
    damage(largest, os.path.getsize(largest) // 2)
    open_tab(page, volume, "care")
    page.browser.find("[data-care=check]").click()
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.find("[data-kind=check]", "error", timeout_s=60)
    page.browser.find("[data-care=repair]").click()
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.find("dialog ol li", timeout_s=60)
    page.shot("repair_plan")
    # Damaged further meanwhile, the volume is not repaired by a plan that nobody has seen.
    damage(largest, os.path.getsize(largest) // 4)
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    told = page.browser.find("dialog [role=alert]", timeout_s=60).text
    assert "has changed since this plan" in told and "Plan the repair again" in told and "--" not in told, told
    page.shot("repair_refused")
    assert not os.path.exists(os.path.join(volume, "repair")), "something was repaired"
    page.browser.find("dialog .primary", "Plan a repair").click()
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.find("dialog ol li", timeout_s=60)
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.job("repair")
    page.command("fsck.nacre", volume, secret=PASSPHRASE)


def test_backup_is_a_volume(page):
    volume, mountpoint = make(page, mount=True)
    with open(os.path.join(mountpoint, "letter.odt"), "w", encoding="utf-8") as file:
        file.write("text")
    open_tab(page, volume, "care")
    page.browser.find("[data-care=backup]").click()
    page.browser.find("dialog input[type=text]").type(page.path("copy"))
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.job("backup")
    page.command("fsck.nacre", "--scrub", page.path("copy"))


def test_mounting_at_login_is_switched_on_and_off_and_its_state_is_systemds(page):
    desktop = FakeDesktop(page.path("desktop"))
    page.server.terminate()
    page.server.wait()
    page.environment["PATH"] = f"{desktop.bin}:{page.environment['PATH']}"
    page.start_server()
    page.browser.open(page.address)
    page.browser.find("main h1")
    page.browser.messages()  # those of the page whose server ended are no fault
    volume, _ = make(page)
    desktop.set("no_bus")
    open_tab(page, volume, "overview")
    assert "bus" in page.browser.find("[data-card=login]", "no systemd of the user's own").text
    assert not page.browser.all("[data-login]")
    desktop.set("no_bus", False)
    page.browser.find("[data-login=on]").click()
    page.browser.find("dialog input[value=keyring]")
    page.shot("login_dialog")
    page.secrets("wrong one", within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.find("dialog [role=alert]", timeout_s=60)
    assert not desktop.calls("secret-tool", "store")
    page.secrets(PASSPHRASE, within="dialog")
    page.browser.find("dialog .primary").click()
    page.browser.gone("dialog", timeout_s=60)
    page.browser.find("[data-card=login] .pill.ok", "On")
    page.shot("login_on")
    [enabled] = desktop.calls("systemctl", "enable")
    desktop.set(f"enabled.{enabled[-1]}", False)  # by somebody else
    page.browser.find("[data-login=on]")
    desktop.set(f"enabled.{enabled[-1]}")
    page.browser.find("[data-login=off]").click()
    page.browser.find("[data-login=on]")
    assert desktop.calls("systemctl", "disable") and desktop.calls("secret-tool", "clear")


def test_live_shows_what_is_read_and_written(page):
    _, mountpoint = make(page, mount=True)
    page.go(f"live/{mountpoint.replace('/', '%2F')}")
    page.browser.find(".figure-tile")
    path = os.path.join(mountpoint, "data")
    block = os.urandom(4 << 20)

    def is_drawn():
        with open(path, "wb") as file:
            file.write(block)
        with open(path, "rb") as file:
            file.read()
        return page.browser.script("return document.querySelectorAll('svg.chart path.line').length") >= 2 and \
            "write" in page.browser.script("return document.querySelector('table')?.innerText ?? ''")
    page.browser.until(is_drawn, "no curve is drawn", 30)
    page.shot("live", full=True)


def test_live_shows_the_messages_of_the_log_once_each(page):
    volume, mountpoint = make(page, mount=True)
    page.go(f"live/{mountpoint.replace('/', '%2F')}")
    page.browser.find(".log li", mountpoint)  # that the volume is mounted
    page.command("nacre", "crypt", "keygen", "--no-passphrase", "--bits", "2048", page.path("ann"))
    page.command("nacre", "key", "add", "--recipient", page.path("ann.pub.pem"), volume, secret=PASSPHRASE)
    page.browser.find(".log li", "the keyring was changed")
    texts = page.browser.script("return [...document.querySelectorAll('.log li')].map((one) => one.innerText)")
    assert len(texts) == len(set(texts)), texts
    page.browser.script("document.querySelector('.log').scrollIntoView({block: 'center'})")
    page.shot("live_log")
    page.browser.view(390, 844, "dark")
    page.browser.script("document.querySelector('.log').scrollIntoView({block: 'center'})")
    page.shot("live_log_phone")
    page.browser.view(1280, 900)
    # A page that is opened anew has them, too.
    page.browser.reload()
    page.browser.find(".log li", "the keyring was changed")
    assert page.browser.find(".log").role == "log"


if __name__ == "__main__":
    page_fixture.run(dict(globals()), needs_fuse=True)
