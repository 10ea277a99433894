#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the man pages: each command's from its page in docs/man, whose synopsis and options come
from what --help-all says, and nacre-format(5) from FORMAT.md. A command without a page in docs/man gets
one of its help alone.

    write_manual.py --bin DIR --pages DIR --format FILE --version V --out DIR [--gzip]
                    PROGRAM…

In a page, the lines .\\" SYNOPSIS and .\\" OPTIONS, each with the line below it, stand for what is
written here, and so do .Dd and .Os. So the sources are pages that man(1) can show, too.
"""
import argparse
import datetime
import glob
import gzip
import os
import re

import help_tree
import markdown_to_man
from markdown_to_man import escape


def flag_macro(flag):
    return "Fl " + (escape(flag[1:]) if flag.startswith("-") else flag)


def option_item(option):
    words = " , ".join(flag_macro(flag) for flag in option.flags)
    return f".It {words}" + (f" Ar {escape(option.value)}" if option.value else "")


def sentence(text):
    text = text[:1].upper() + text[1:]
    text = escape(text + ("" if text.endswith((".", ":")) else "."))
    return re.sub(r"(?<=[\w)])\. (?=\S)", ".\n", text)


def options_of(command):
    out = []
    if command.positionals or command.options:
        out.append(".Bl -tag -width Ds")
        for one in command.positionals:
            out += [f".It Ar {one.flags[0]}", sentence(one.text)]
        for one in command.options:
            out += [option_item(one), sentence(one.text)]
            if one.repeats:
                out.append("May be given more than once.")
            if one.default not in ("", "0"):
                out += ["The default is", f".Cm {escape(one.default)} ."]
        out.append(".El")
    # The exit status has a section of its own.
    words = [line for line in command.footer if line.strip()]
    while words and not words[0].startswith("Exit status"):
        out += [".Pp"] if words[0] == command.footer[0] else []
        out += sentence(words.pop(0)).splitlines()
    return out


def synopsis_line(command):
    out = [f".Nm {command.name()}"] if len(command.words) > 1 else [".Nm"]
    if command.commands:
        return out + [".Ar COMMAND", ".Op Ar OPTION ..."]
    out.append(".Op Ar OPTION ...")
    for one in command.positionals:
        out.append((".Ar " if one.required else ".Op Ar ") + one.flags[0]
                   + (" ..." if one.repeats else ""))
    return out


def leaves(command, apart):
    """The commands that the page tells of: those below, unless they have pages of their own."""
    if apart and command.commands:
        return [command]
    return [one for one in command.every() if not one.commands]


def exit_status(command):
    for one in command.every():
        text = " ".join(" ".join(one.footer).split())
        found = re.search(r"Exit status: (.*?)(?:\. |$)", text)
        if found and (one is command or len(command.words) > 1):
            return found.group(1)
    return ""


def commands_list(command):
    out = [".Bl -tag -width Ds"]
    for one in command.commands:
        page = "-".join(one.words)
        out += [f".It Cm {one.words[-1]}", sentence(one.text), "See", f".Xr {page} 1 ."]
    return out + [".El"]


def fallback(command, section):
    page = "-".join(command.words)
    below = ".Sh DESCRIPTION\n" + sentence(command.text)
    status = sentence(exit_status(command) or "0 fine; others as of nacre(1)")
    return (f".Dt {page.upper()} {section}\n.Sh NAME\n.Nm {page}\n.Nd {escape(command.text)}\n"
            f".Sh SYNOPSIS\n.\\\" SYNOPSIS\n\n{below}\n.Sh OPTIONS\n.\\\" OPTIONS\n\n"
            f".Sh EXIT STATUS\n{status}\n"
            ".Sh SEE ALSO\n.Xr mkfs.nacre 8\n")


def fill(template, command, version, date):
    apart = len(command.words) == 1
    told = leaves(command, apart)
    synopsis, options = [], []
    for one in told:
        synopsis += synopsis_line(one)
        if len(told) > 1:
            options += [f".Ss {one.name()}", sentence(one.text)]
        options += options_of(one)
    if apart and command.commands:
        options += [".Ss Commands"] + commands_list(command)
    head = f".\\\" SPDX-License-Identifier: Apache-2.0\n.Dd {date}\n.Os Nacre {version}\n"
    text = re.sub(r'^\.(\\" SPDX|Dd|Os).*\n', "", template, flags=re.M)
    # .Dd, .Dt, .Os: in this order.
    text = re.sub(r"^(\.Dt .*\n)", lambda m: head.replace(".Os", m.group(1) + ".Os"), text, count=1)
    for place, lines in (("SYNOPSIS", synopsis), ("OPTIONS", options)):
        text = re.sub(rf'^\.\\" {place}\n.*\n', lambda _, lines=lines: "\n".join([*lines, ""]), text,
                      count=1, flags=re.M)
    return text


def release_date(format_path):
    """That of the newest version in CHANGELOG.md, which lies next to the documents' folder."""
    path = os.path.join(os.path.dirname(format_path), "..", "CHANGELOG.md")
    with open(path, encoding="utf-8") as file:
        day = re.search(r"^## .*(\d{4}-\d\d-\d\d)", file.read(), re.M).group(1)
    return datetime.date.fromisoformat(day).strftime("%B %-d, %Y")


def format_page(path, version, date):
    with open(path, encoding="utf-8") as file:
        body = markdown_to_man.convert(file.read())
    return "\n".join(
        ["'\\\" t", f".Dd {date}", ".Dt NACRE-FORMAT 5", f".Os Nacre {version}", ".Sh NAME",
         ".Nm nacre-format", ".Nd format of a Nacre volume, byte by byte", ".Sh DESCRIPTION"]
        + body + [".Sh SEE ALSO", ".Xr nacre 1 ,", ".Xr nacre-dump 1 ,", ".Xr mkfs.nacre 8", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("--bin", "--pages", "--format", "--version", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--gzip", action="store_true", help="as man pages are installed")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    date = release_date(arguments.format)
    pages = {os.path.basename(path): path for path in glob.glob(arguments.pages + "/*.[158]")}
    written = {"nacre-format.5": format_page(arguments.format, arguments.version, date)}
    for program in arguments.programs:
        tree = help_tree.read_tree(arguments.bin, program)
        for command in [tree] + tree.commands:
            name = "-".join(command.words) + (".8" if "." in program else ".1")
            template = fallback(command, name[-1])
            if name in pages:
                with open(pages[name], encoding="utf-8") as file:
                    template = file.read()
            written[name] = fill(template, command, arguments.version, date)
    for name, text in written.items():
        folder = os.path.join(arguments.out, f"man{name[-1]}")
        os.makedirs(folder, exist_ok=True)
        content = text.encode()
        if arguments.gzip:  # without a time, so that the same pages are the same bytes
            name, content = name + ".gz", gzip.compress(content, mtime=0)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


if __name__ == "__main__":
    main()
