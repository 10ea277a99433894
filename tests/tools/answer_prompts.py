#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a terminal of its own and types answers, each when the command has asked.

    answer_prompts.py ANSWER… -- COMMAND…

A prompt is text that ends with ": ". Prints all that the terminal showed and ends as the command did.
"""
import os
import pty
import select
import sys

split = sys.argv.index("--")
answers, command = sys.argv[1:split], sys.argv[split + 1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown, asked_from = b"", 0
while True:
    ready, _, _ = select.select([terminal], [], [], 60)
    if not ready:
        break
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # the other end is closed
        break
    if not piece:
        break
    shown += piece
    if answers and shown[asked_from:].endswith(b": "):
        asked_from = len(shown)
        os.write(terminal, answers.pop(0).encode() + b"\n")
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
