#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of English in CONTRIBUTING.md, as far as a program can see them.

    words.py [ROOT]

Rules: "words" (phrases that CONTRIBUTING.md names; "somebody" in documents), "sentence" (a sentence that begins with Who,
Whoever or Of what, and is no question), "width" (text of a document past 100 columns; tables, links
and generated documents may be wider) and "head" (a source that begins with "See x.h.").

All documents are checked. Sources are checked in the folders of READ, and that list grows: read every
comment and message of a folder, mend them, and add the folder. Text in double quotes and in code spans
of documents is not checked, so that rules can be explained.

Prints one line a breach: FILE:LINE: RULE: WHAT. Exit status 1 when there is one. Needs no build.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import tidy  # noqa: E402

WIDTH_MAX = 100
# Folders whose comments and messages were read. Add yours when you have read it.
READ = [
    "docs/man/", "fs/", "gpu_engine/", "metadata/", "packaging/", "tests/hostile/", "tests/measure/",
    "tests/tidy/", "tools/",
]
# They name what they forbid.
EXEMPT = ["tests/tidy/words.py", "tests/tidy/words_test.py"]

GAP = r'(?:[\s"]|//|#)+'  # between words, also across a line's end in a comment or a string
PHRASES = [r"\bbeside\b"] + [GAP.join(words.split()).join([r"\b", r"\b"])
                             for words in ("so many", "at the most", "by the way of")]
PHRASE = re.compile("|".join(PHRASES), re.I)
SENTENCE = re.compile(r"\b(Who|Whoever|Of" + GAP + r"what)\b([^.!?]*[.!?]?)")
# In what users read, a person has a name: an attacker, another user, a colleague.
NAMELESS = re.compile(r"\bsomebody\b", re.I)
HEAD = re.compile(r"// See \S+\.h\.$")
TEXT = tidy.CODE + tidy.SCRIPT + (".in", ".md", ".service", ".timer")


def is_man_page(name):
    return name.startswith("docs/man/")


def is_generated(text):
    return any(line.startswith("Written by `") for line in text.splitlines()[:10])


def without_quotes(text):
    """The text of a document, quoted words and code blanked out, everything at its place."""
    return re.sub(r'```.*?```|`[^`]*`|"[^"]*"', lambda m: re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def is_checked(name):
    if name in EXEMPT:
        return False
    if name.endswith(".md"):
        return True
    is_text = name.endswith(TEXT) or is_man_page(name)
    return is_text and name.startswith(tuple(READ))


class Words:
    def __init__(self, root):
        self.breaches = []
        self.count = 0
        for name in tidy.files_of(root):
            if not is_checked(name):
                continue
            with open(os.path.join(root, name), encoding="utf-8", errors="replace") as file:
                text = file.read()
            self.count += 1
            self.check_phrases(name, without_quotes(text) if name.endswith(".md") else text)
            if name.endswith(tidy.CODE):
                self.check_head(name, text)
            if (name.endswith(".md") and not is_generated(text)) or is_man_page(name):
                self.check_nameless(name, without_quotes(text))
                self.check_width(name, text)

    def breach(self, name, line, rule, what):
        self.breaches.append(f"{name}:{line}: {rule}: {what}")

    def check_phrases(self, name, text):
        def line_of(found):
            return text.count("\n", 0, found.start()) + 1

        for found in PHRASE.finditer(text):
            self.breach(name, line_of(found), "words", re.sub(GAP, " ", found.group(0)))
        for found in SENTENCE.finditer(text):
            if not found.group(2).endswith("?"):
                self.breach(name, line_of(found), "sentence", f"it begins with {found.group(1)}")

    def check_nameless(self, name, text):
        for found in NAMELESS.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            self.breach(name, line, "words", f"{found.group(0)}: name the person")

    def check_head(self, name, text):
        lines = text.splitlines()
        if len(lines) > 1 and HEAD.match(lines[1]):
            self.breach(name, 2, "head", "it only names another file")

    def check_width(self, name, text):
        for number, line in enumerate(text.splitlines(), 1):
            is_free = line.startswith("|") or "](" in line or "://" in line
            if len(line) > WIDTH_MAX and not is_free:
                self.breach(name, number, "width", f"{len(line)} columns")


def main():
    root = os.path.realpath(
        sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    words = Words(root)
    if words.count == 0:
        sys.exit(f"words: no text below {root}")
    for line in words.breaches:
        print(line)
    print(f"words: {words.count} files, {len(words.breaches)} breaches")
    sys.exit(1 if words.breaches else 0)


if __name__ == "__main__":
    main()
