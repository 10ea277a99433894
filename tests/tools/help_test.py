#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every command says of itself, and of what it does not know: --help fits a screen and has examples whose
commands and options exist, what is not known is named with where to look, in any locale and without colours.

NACRE_BIN names the folder of the programs.
"""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
import help_tree  # noqa: E402

BIN = os.environ["NACRE_BIN"]
PROGRAMS = ["mkfs.nacre", "mount.nacre", "fsck.nacre", "nacre"]
LOCALES = ["C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"]  # those that are not installed count as C
LINES_MAX, COLUMNS_MAX = 24, 80
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


def run(words, locale="C.UTF-8"):
    environment = dict(os.environ, LC_ALL=locale, ASAN_OPTIONS="detect_leaks=0")
    return subprocess.run([os.path.join(BIN, words[0])] + words[1:], capture_output=True, text=True, timeout=600,
                          env=environment, stdin=subprocess.DEVNULL, check=False)


def check_plain(name, said):
    """Of what goes into pipes, as all here does."""
    check("\x1b" not in said.stdout + said.stderr, f"{name} writes escape sequences into a pipe")


def check_example(name, example, tree):
    """Its commands and options are those of the programs, where it calls one of ours."""
    for part in re.split(r"[|;]|&&", example):
        words = re.split(r"\s{2,}", part.strip())[0].split()
        if not words or words[0] not in tree:
            continue
        command = tree[words[0]]
        words = words[1:]
        while words and command.commands:
            below = [one for one in command.commands if one.words[-1] == words[0]]
            check(below, f"{name}: in its example {example!r}, {words[0]} is no command")
            if not below:
                return
            command, words = below[0], words[1:]
        known = {flag for option in command.options for flag in option.flags}
        for word in words:
            flag = word.split("=")[0]
            check(not flag.startswith("-") or flag in known, f"{name}: its example {example!r} has {flag}")


def check_help(command, tree):
    name = command.name()
    said = run(command.words + ["--help"])
    check(said.returncode == 0 and not said.stderr, f"{name} --help ended with {said.returncode}: {said.stderr}")
    check_plain(f"{name} --help", said)
    lines = said.stdout.splitlines()
    check(len(lines) <= LINES_MAX, f"{name} --help takes {len(lines)} lines")
    for line in lines:
        check(len(line) <= COLUMNS_MAX, f"{name} --help has a line of {len(line)}: {line}")
    check(lines and lines[0].startswith(f"Usage: {name} "), f"{name} --help does not begin with its usage")
    # Nothing is hidden: what --help-all tells of is at least named.
    for option in command.options:
        flags = set(option.flags) - {"-h", "--help", "--help-all", "--version"}
        named = any(re.search(re.escape(flag) + r"(?![\w-])", said.stdout) for flag in flags)
        check(not flags or named, f"{name} --help does not name {option.flags}")
    check(command.examples, f"{name} --help has no example")
    for example in command.examples:
        check_example(name, example, tree)
    for line in run(command.words + ["--help-all"]).stdout.splitlines():
        check(len(line) <= COLUMNS_MAX, f"{name} --help-all has a line of {len(line)}: {line}")


def check_refused(name, said, words):
    check(said.returncode == 2, f"{name} ended with {said.returncode}, not 2: {said.stderr}")
    check(not said.stdout, f"{name} writes to standard output: {said.stdout}")
    for word in words:
        check(word in said.stderr, f"{name} does not say {word!r}: {said.stderr}")
    check_plain(name, said)


def check_mistakes(command):
    name = command.name()
    help_call = f"'{name} --help'"
    check_refused(f"{name} --no-such-option", run(command.words + ["--no-such-option"]),
                  ["--no-such-option", help_call, command.words[0] + ": "])
    if command.commands:
        check_refused(f"{name} frob", run(command.words + ["frob"]), ["frob", help_call])
    required = [one.flags[0] for one in command.positionals if one.required]
    if command.commands or required:
        check_refused(name, run(command.words), required[:1] + [help_call])
    if not command.commands and not any(one.repeats for one in command.positionals):
        many = ["/no/such"] * len(command.positionals) + ["one-too-many"]
        check_refused(f"{name} {' '.join(many)}", run(command.words + many), ["one-too-many", help_call])
    for option in command.options:
        if option.value and not option.repeats:
            flag = option.flags[-1]
            check_refused(f"{name} {flag}", run(command.words + ["/no/such"] * len(required) + [flag]),
                          [flag, help_call])


def check_locales():
    """The same bytes whatever the locale: a comma in a number would break who reads it."""
    for words in (["nacre", "--help"], ["mkfs.nacre", "--help-all"], ["nacre", "stats", "/no/such"]):
        texts = {(said.returncode, said.stdout, said.stderr) for said in (run(words, one) for one in LOCALES)}
        check(len(texts) == 1, f"{' '.join(words)} depends on the locale: {texts}")
    with tempfile.TemporaryDirectory() as folder:
        plain = os.path.join(folder, "plain")
        with open(plain, "wb") as file:
            file.write(bytes(range(256)) * 8192)  # 2 MiB: said as 2.0 MiB
        secret = os.path.join(folder, "secret")
        with open(secret, "w", encoding="ascii") as file:
            file.write("correct horse\n")
        for locale in LOCALES:
            said = run(["nacre", "crypt", "encrypt", "-v", "-f", "--kdf-memory", "8192", "--kdf-time", "1",
                        "--passphrase-file", secret, plain], locale)
            check(said.returncode == 0 and "2.0 MiB" in said.stderr, f"under {locale}: {said.stderr}")
            check_plain("nacre crypt encrypt", said)


def main():
    tree = {program: help_tree.read_tree(BIN, program) for program in PROGRAMS
            if os.path.exists(os.path.join(BIN, program))}
    commands = [command for one in tree.values() for command in one.every()]
    for command in commands:
        check_help(command, tree)
        check_mistakes(command)
    check_locales()
    for failure in failures:
        print("FAILED:", failure)
    print(f"{len(commands)} commands, {len(failures)} failures")
    return 1 if failures or len(commands) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
