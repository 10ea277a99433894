#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages of the commands name options, and the page names what to click instead (tools/web/page_words.cpp). This
compares that table with the sources: each of its texts stands in a message, each message with an option is in the
table, or is one that no page can cause, and each hint has its words in each language.

    page_words.py [SOURCE]
"""
import glob
import os
import re
import sys

SOURCE = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
CALL = re.compile(r"\b(?:fail|report|add_context|usage|wrong_key|print_error|print_note|mount_point_error)\("
                  r"|\bError\{|\breturn \{ErrorCode")
OPTION = re.compile(r"(?:^|[ (])(?:--[a-z]|-[a-zA-Z](?=[ ,.;)]|$))")

# Messages that no request of a page can cause: the page has no such action or always gives what they ask for.
OTHER = {
    "tools/bench": "nacre bench is not run by the page",
    "tools/papers": "a program for developers",
    "tools/nacre/bench": "nacre bench is not run by the page",
    "tools/nacre/dump": "nacre dump is not run by the page",
    "tools/nacre/main.cpp": "the page gives the commands that there are",
    "tools/nacre/lock.cpp": "nacre lock is not run by the page",
    "fs/fuse/session_lock.cpp": "nacre lock is not run by the page",
    "tools/nacre/file.cpp": "nacre file is not run by the page",
    "tools/nacre/stats.cpp": "nacre stats is not run by the page",
    "tools/nacre/stats_text.cpp": "nacre stats is not run by the page",
    "tools/nacre/top.cpp": "nacre top is not run by the page",
    "tools/nacre/trim.cpp": "nacre trim is not run by the page",
    "tools/nacre/witness.cpp": "nacre witness is not run by the page",
    "tools/nacre/key_backup.cpp": "the page does not back up keyrings",
    "tools/nacre/key_status.cpp": "nacre key status is not run by the page",
    "tools/nacre/crypt_run.cpp": "the page writes to files, never to a stream",
    "tools/nacre/crypt_keygen.cpp": "a note for people at a terminal, which comes after the work",
    "tools/mount/mount_plan.cpp": "the page gives fixed mount options",
    "tools/fsck/fsck_salvage.cpp": "the page does not salvage",
    "fs/salvage/salvage.cpp": "the page does not salvage",
    "tools/cli/outside_witness.cpp": "the page names no witness elsewhere",
    "tools/cli/command_line.cpp": "the page gives the commands that there are",
}
OTHER_TEXTS = {
    "--witness-may-fail (mount option": "the page names no witness elsewhere",
    "--chunk-size {}: a chunk is": "the page offers sizes that are right",
    "--identity: give the passphrase that is to be changed": "the page asks for a passphrase there",
    "--level goes with --codec": "the page gives no level there",
    "--engine: {} is scrubbed": "the page gives no engine there",
    "--engine is for volumes": "the page gives no engine there",
    "-o names one output": "the page gives a folder alone",
    "-o is for one file": "the page gives a folder alone",
    "--kdf-memory {}: from": "the page gives no cost",
    "--kdf-limit {}: no passphrase": "the page gives no limit",
    "-N {}": "an option of mount(8) alone",
    "the new passphrase has no RSA key, so a rotation": "a note after the work",
    "--no-wait is for mounted volumes": "the page gives it for mounted ones alone",
    "fusermount3 -u": "the end of a message that is in the table",
}


def joined_literals(text):
    """The string literals of a piece of C++; those that stand next to each other are one."""
    found, last_end = [], None
    for match in LITERAL.finditer(text):
        if last_end is not None and text[last_end:match.start()].strip() == "":
            found[-1] += match.group(1)
        else:
            found.append(match.group(1))
        last_end = match.end()
    return [one.replace('\\"', '"').replace("\\n", "\n").replace("\\\\", "\\") for one in found]


def without_comments(text):
    return re.sub(r"^\s*//.*$", "", text, flags=re.M)


def call_texts(text):
    """The literals within each call that makes a message."""
    for match in CALL.finditer(text):
        depth, at, quoted = 0, match.end() - 1, False
        if text[at] not in "({":
            at = text.index("{", match.start())
        begin = at
        while at < len(text):
            character = text[at]
            if character == '"' and text[at - 1] not in "\\'":
                quoted = not quoted
            elif not quoted and character in "({":
                depth += 1
            elif not quoted and character in ")}":
                depth -= 1
                if depth == 0:
                    break
            at += 1
        yield from joined_literals(text[begin:at])


def table():
    with open(f"{SOURCE}/tools/web/page_words.cpp", encoding="utf-8") as file:
        text = without_comments(file.read())
    body = text[text.index("words = {") + len("words = {"):text.index("  };", text.index("words = {"))]
    entries = []
    for part in re.findall(r"\{((?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*)\}", body):
        entries.append(joined_literals(part))
    assert len(entries) > 20 and all(4 <= len(entry) <= 5 for entry in entries), entries
    return entries


def main():
    failures = []
    sources = {}
    for folder in ("tools", "fs", "metadata", "gpu_engine"):
        for path in glob.glob(f"{SOURCE}/{folder}/**/*.cpp", recursive=True):
            name = os.path.relpath(path, SOURCE)
            if name.startswith("tools/web/"):
                continue
            with open(path, encoding="utf-8") as file:
                sources[name] = without_comments(file.read())
    everything = [literal for text in sources.values() for literal in joined_literals(text)]
    entries = table()
    for begin, end, *_ in entries:
        for wanted in (begin, end):
            if not any(wanted in literal for literal in everything):
                failures.append(f"no message has {wanted!r} any more")
    for name, text in sorted(sources.items()):
        if any(name.startswith(other) for other in OTHER):
            continue
        for literal in call_texts(text):
            if not OPTION.search(literal) or any(other in literal for other in OTHER_TEXTS):
                continue
            if not any(begin in literal and end in literal for begin, end, *_ in entries):
                failures.append(f"{name}: a message names an option, and the page has no words for it: {literal!r}")
    for language in ("en", "de"):
        with open(f"{SOURCE}/tools/web/assets/texts_{language}.js", encoding="utf-8") as file:
            texts = file.read()
        for hint in {entry[3] for entry in entries} - {""}:
            if f"'hint.{hint}': '" not in texts:
                failures.append(f"texts_{language}.js has no words for the hint {hint}")
        # A text of the page is no message, but the same holds of it.
        for key, value in re.findall(r"'([\w. ]+)': '([^']*)'", texts):
            if OPTION.search(value):
                failures.append(f"texts_{language}.js, {key}: names an option: {value}")
    for failure in failures:
        print(f"FAILED: {failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
