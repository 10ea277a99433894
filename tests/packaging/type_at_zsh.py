#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types words and a tab at an interactive zsh, and prints the lines as zsh completed them.

    type_at_zsh.py ZDOTDIR LINE…

The folder's .zshrc makes the prompt end with "ready> ", and control-X print the line between < and >.
"""
import os
import pty
import re
import select
import sys

pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(ZDOTDIR=sys.argv[1], TERM="dumb")
    os.execvp("zsh", ["zsh", "-i"])


def read_until(pattern, seconds=30):
    """All that zsh shows until the pattern is in it."""
    shown = ""
    while not re.search(pattern, shown):
        if not select.select([terminal], [], [], seconds)[0]:
            sys.exit(f"zsh did not show {pattern!r}: {shown!r}")
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


read_until("ready> $")
for line in sys.argv[2:]:
    os.write(terminal, line.encode() + b"\t\x18")
    print(re.search(r"<([^<>]*)>\r", read_until(r"<[^<>]*>\r")).group(1).rstrip())
    os.write(terminal, b"\n")
    read_until("ready> $")
os.write(terminal, b"exit\n")
os.close(terminal)
os.waitpid(pid, 0)
