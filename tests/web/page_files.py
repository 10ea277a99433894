#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files on the page of nacre web, in a real browser: what the page encrypts `nacre crypt` decrypts, and
the other way round; keys, legacy ciphers, downloads, drops, wrong passphrases, names that are markup.

    page_files.py [TEST…]
"""
import os
import subprocess

import page_fixture
from page_fixture import PASSPHRASE

MARKUP = "<img src=x onerror=\"document.title='owned'\">&amp;%41.txt"
TEXT = "All that glisters is not gold.\n" * 3000


def read(path):
    with open(path, "rb") as file:
        return file.read()


def test_the_page_encrypts_and_the_command_decrypts(page):
    page.write("letter.odt", TEXT)
    page.go("files/encrypt")
    page.add_files("letter.odt")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    card = page.job("encrypt")
    assert "letter.odt" in card.text, card.text
    os.remove(page.path("letter.odt"))
    page.command("nacre", "crypt", "decrypt", page.path("letter.odt.ncr"), secret=PASSPHRASE)
    assert read(page.path("letter.odt")) == TEXT.encode()
    # The fields are empty afterwards, and the page holds no passphrase.
    assert not page.browser.script("return [...document.querySelectorAll('input[type=password]')].some((one) => one.value)")


def test_the_command_encrypts_and_the_page_decrypts(page):
    page.write("letter.odt", TEXT)
    page.command("nacre", "crypt", "encrypt", page.path("letter.odt"), secret=PASSPHRASE)
    os.remove(page.path("letter.odt"))
    page.go("files/decrypt")
    page.add_files("letter.odt.ncr")
    page.secrets(PASSPHRASE)
    page.browser.find("[data-submit=decrypt]").click()
    page.job("decrypt")
    assert read(page.path("letter.odt")) == TEXT.encode()


def test_a_wrong_passphrase_is_told_with_what_to_do(page):
    page.write("letter.odt", TEXT)
    page.command("nacre", "crypt", "encrypt", page.path("letter.odt"), secret=PASSPHRASE)
    os.remove(page.path("letter.odt"))
    page.go("files/decrypt")
    page.add_files("letter.odt.ncr")
    page.secrets("not this one")
    page.browser.find("[data-submit=decrypt]").click()
    card = page.job("decrypt", "failed")
    assert "passphrase" in card.text.lower() and "letter.odt" in card.text, card.text
    assert not os.path.exists(page.path("letter.odt"))
    assert "this file" in card.text and "volume" not in card.text, card.text
    # The file is still chosen; only the passphrase must be typed again.
    page.browser.find("form li", "letter.odt.ncr")
    page.browser.find("form .note", "type it again")
    page.shot("failed_and_kept")
    page.go("volumes")
    page.go("files/decrypt")
    page.browser.find("form li", "letter.odt.ncr")
    page.secrets(PASSPHRASE)
    page.browser.find("[data-submit=decrypt]").click()
    page.browser.find("[data-kind=decrypt][data-state=done]", timeout_s=60)
    assert read(page.path("letter.odt")) == TEXT.encode()
    page.browser.gone("form li")


def test_a_result_that_exists_names_what_to_tick(page):
    page.write("letter.odt", TEXT)
    page.write("letter.odt.ncr", "something else")
    page.go("files/encrypt")
    page.add_files("letter.odt")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    told = page.job("encrypt", "failed").text
    label = "Replace files that have the name of a result"
    assert f"Tick “{label}”" in told and " -f" not in told, told
    page.browser.find("form label.check", label).click()
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    page.browser.find("[data-kind=encrypt][data-state=done]", timeout_s=60)


def test_a_name_that_is_markup_stays_a_name(page):
    page.write(MARKUP, TEXT)
    page.go("files/encrypt")
    page.add_files(MARKUP)
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    card = page.job("encrypt")
    assert MARKUP in card.text, card.text
    assert not page.browser.all("main img"), "the name has become an image"
    assert page.browser.script("return document.title") != "owned"
    os.remove(page.path(MARKUP))
    page.command("nacre", "crypt", "decrypt", page.path(MARKUP + ".ncr"), secret=PASSPHRASE)
    assert read(page.path(MARKUP)) == TEXT.encode()


def test_key_pair_made_on_the_page_and_encryption_to_it(page):
    page.go("keys")
    page.browser.script("""
        const [name] = document.querySelectorAll('main form input[type=text]');
        name.value = 'anna'; name.dispatchEvent(new Event('input'));""")
    size = page.browser.find("main form select")
    page.browser.script("arguments[0].value = '2048'; arguments[0].dispatchEvent(new Event('change'))", size)
    page.secrets("key secret 9 yellow", "key secret 9 yellow")
    page.browser.find("[data-submit=keygen]").click()
    card = page.job("keygen")
    assert "anna.pub.pem" in card.text, card.text
    assert os.stat(page.path("anna.pem")).st_mode & 0o777 == 0o600
    page.write("letter.odt", TEXT)
    page.go("files/encrypt/rsa/cpu")
    page.add_files("letter.odt")
    page.browser.find("button", "Add a public key").click()
    page.choose("anna.pub.pem", folder=page.home)
    page.browser.find("form li", "2048 bits · ")  # and its fingerprint, to compare with the owner's
    page.browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    os.remove(page.path("letter.odt"))
    page.go("files/decrypt/rsa/cpu")
    page.add_files("letter.odt.ncr")
    page.browser.script("[...document.querySelectorAll('input[value=identity]')][0].click()")
    page.browser.find(".field button", "Browse").click()
    page.choose("anna.pem", folder=page.home)
    page.secrets("key secret 9 yellow")
    page.browser.find("[data-submit=decrypt]").click()
    page.job("decrypt")
    assert read(page.path("letter.odt")) == TEXT.encode()


def three_clicks(page, name):
    """Opens a form as a reader does: the page Files, then the operation. The third click is its button."""
    page.go("volumes")
    page.browser.find(".nav a[data-page=files]").click()
    page.browser.find(f"[data-classical={name}]").click()
    page.browser.find(f"[data-classical={name}][aria-current]" if not name.startswith("keys") else "[data-submit=keygen]")


def test_every_classical_operation_is_three_clicks_away(page):
    """DES, AES and RSA encryption and decryption, and RSA key pairs: each is done on the page, and judged by
    the command. Those of the GPU are there too, and are taken if there is one."""
    page.go("files/encrypt")
    names = page.browser.until(lambda: page.browser.script(
        "return [...document.querySelectorAll('[data-classical]')].map((one) => one.dataset.classical)"), "no classical operations")
    assert len(set(names)) == 14, names
    has_gpu = page.browser.script("return [...document.querySelectorAll('input[value=cuda]')].some((one) => !one.disabled)")
    for engine in ["cpu", "cuda"] if has_gpu else ["cpu"]:
        three_clicks(page, f"keys-rsa-{engine}")
        key = f"key-{engine}"
        page.browser.script("""
            const [name] = document.querySelectorAll('main form input[type=text]');
            name.value = arguments[0]; name.dispatchEvent(new Event('input'));""", key)
        page.browser.find("main form .check input").click()  # without a passphrase
        page.browser.find("[data-submit=keygen]").click()
        page.browser.until(lambda key=key: os.path.exists(page.path(f"{key}.pub.pem")), "no key pair is made", 60)
        for method, cipher in (("des", "des-cbc"), ("aes", "aes-256-gcm"), ("rsa", "aes-256-gcm")):
            name = f"{method}-{engine}.txt"
            page.write(name, TEXT)
            three_clicks(page, f"encrypt-{method}-{engine}")
            page.add_files(name)
            if method == "rsa":
                page.browser.find("button", "Add a public key").click()
                page.choose(f"{key}.pub.pem", folder=page.home)
            else:
                page.secrets(PASSPHRASE, PASSPHRASE)
            page.browser.find("[data-submit=encrypt]").click()
            page.browser.find("[data-kind=encrypt][data-state=done]", name, timeout_s=60)
            shown = page.command("nacre", "crypt", "inspect", "--json", page.path(name + ".ncr"))
            assert f'"{cipher}"' in shown and ('"rsa"' in shown) == (method == "rsa"), shown
            os.remove(page.path(name))
            three_clicks(page, f"decrypt-{method}-{engine}")
            page.add_files(name + ".ncr")
            if method == "rsa":
                page.browser.script("document.querySelector('input[value=identity]').click()")
                page.browser.find(".field button", "Browse").click()
                page.choose(f"{key}.pem", folder=page.home)
            else:
                page.secrets(PASSPHRASE)
            page.browser.find("[data-submit=decrypt]").click()
            page.browser.find("[data-kind=decrypt][data-state=done]", name, timeout_s=60)
            assert read(page.path(name)) == TEXT.encode(), f"{name} differs"


def test_a_full_disk_is_told_and_leaves_no_piece(page):
    small = page.path("small")
    os.mkdir(small)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small]).returncode != 0:
        print("skipped: a full disk: a small disk cannot be mounted here")
        return
    try:
        page.write("photo.jpg", os.urandom(4 << 20))
        page.go("files/encrypt")
        page.add_files("photo.jpg")
        page.browser.script("document.querySelector('input[value=folder]').click()")
        page.browser.find("form .field button", "Browse").click()
        page.choose(folder=small)
        page.secrets(PASSPHRASE, PASSPHRASE)
        page.browser.find("[data-submit=encrypt]").click()
        card = page.job("encrypt", "failed")
        assert "space" in card.text, card.text
        assert os.listdir(small) == [], os.listdir(small)
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_legacy_cipher_needs_consent(page):
    page.write("letter.odt", TEXT)
    page.go("files/encrypt")
    page.add_files("letter.odt")
    page.browser.script("""
        const cipher = document.querySelectorAll('form select')[1];
        cipher.value = 'des-cbc'; cipher.dispatchEvent(new Event('change'));""")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    assert "Tick" in page.browser.find("form [role=alert]").text
    page.browser.find("form .note.warn input").click()
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")


def test_a_drop_is_uploaded_and_its_result_downloaded(page):
    page.go("files/encrypt")
    page.browser.find(".drop")
    page.browser.script("""
        const data = new DataTransfer();
        data.items.add(new File([arguments[0]], 'dropped <b>.txt', {type: 'text/plain'}));
        const drop = new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true});
        document.querySelector('.drop').dispatchEvent(drop);""", TEXT)
    page.browser.find("form li", "Uploaded copy")
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    card = page.job("encrypt")
    page.browser.find("[data-kind=encrypt] button", "Download").click()
    path = os.path.join(page.downloads, "dropped <b>.txt.ncr")
    found = page.browser.until(lambda: [one for one in os.listdir(page.downloads) if one.endswith(".ncr")], "nothing was downloaded")
    path = os.path.join(page.downloads, found[0])
    page.command("nacre", "crypt", "decrypt", "-o", page.path("back.txt"), path, secret=PASSPHRASE)
    assert read(page.path("back.txt")) == TEXT.encode()
    assert card


def test_inspect_without_and_with_a_key(page):
    page.write("letter.odt", TEXT)
    page.command("nacre", "crypt", "encrypt", page.path("letter.odt"), secret=PASSPHRASE)
    page.go("files/inspect")
    page.add_files("letter.odt.ncr")
    page.browser.find("[data-submit=inspect]").click()
    assert "Structure is right" in page.job("inspect").text
    page.add_files("letter.odt.ncr")
    page.browser.script("document.querySelector('input[value=passphrase]').click()")
    page.secrets(PASSPHRASE)
    page.browser.find("[data-submit=inspect]").click()
    page.browser.until(lambda: "Verified" in page.job("inspect").text, "it is not verified")


def test_compare_shows_rates_and_ratios(page):
    page.write("letter.odt", TEXT)
    page.go("compare")
    page.add_files("letter.odt")
    page.browser.find("[data-submit=compare]").click()
    page.browser.find("main [data-job][data-state=done]", timeout_s=120)
    words = page.browser.script("return document.querySelector('main').innerText")
    for one in ("Ratio", "Compression", "Decryption", "aes-256-gcm", "lz77", "/s"):
        assert one in words, f"{one} is not shown"
    page.shot("compare", full=True)


def test_the_shown_command_does_the_same(page):
    page.write("it's a letter.odt", TEXT)
    page.go("files/encrypt")
    page.add_files("it's a letter.odt")
    page.browser.find("form .show-command summary").click()
    before = page.browser.find("form .show-command pre").text
    page.secrets(PASSPHRASE, PASSPHRASE)
    page.browser.find("[data-submit=encrypt]").click()
    page.job("encrypt")
    after = page.browser.script("return document.querySelector('[data-kind=encrypt] .command pre').textContent")
    assert before.split() == after.split(), f"before: {before}\nafter:  {after}"


if __name__ == "__main__":
    page_fixture.run(dict(globals()))
