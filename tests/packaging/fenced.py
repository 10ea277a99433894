#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the fenced blocks of a language, one after the other, from a Markdown file, or from one of its
sections.

    fenced.py FILE LANGUAGE [HEADING]
"""
import re
import sys

path, language = sys.argv[1:3]
heading = sys.argv[3] if len(sys.argv) > 3 else None
inside, wanted, found = False, heading is None, 0
with open(path, encoding="utf-8") as file:
    for line in file:
        fence = re.match(r"```(\w*)", line)
        if inside:
            if fence:
                inside = False
            else:
                sys.stdout.write(line)
        elif fence and fence.group(1) == language and wanted:
            inside, found = True, found + 1
        elif heading and line.startswith("#"):
            wanted = line.lstrip("# ").strip() == heading
if not found:
    sys.exit(f"{path} has no block of {language}" + (f" in {heading}" if heading else ""))
