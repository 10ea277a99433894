# SPDX-License-Identifier: Apache-2.0
"""What the programs say of themselves: reads their --help, subcommand by subcommand, into a tree.
Man pages and completions are written from it, and tests compare with it."""
import os
import re
import subprocess
from dataclasses import dataclass, field

# What stands behind an option, for people and for completions: a name, and "file", "folder" or words.
VALUES = {
    "--chunk-size": ("SIZE", "4K 8K 16K 32K 64K 128K 256K 512K 1M"),
    "--cipher": ("SUITE", "aes-256-gcm aes-192-gcm aes-128-gcm aes-256-ctr aes-192-ctr "
                          "aes-128-ctr aes-256-cbc aes-192-cbc aes-128-cbc"),
    "--codec": ("CODEC", "none lz77 zstd rle huffman gdeflate lzw auto"),
    "--engine": ("ENGINE", "auto cpu cuda"),
    "--identity": ("KEY", "file"),
    "--interval": ("SECONDS", ""),
    "--json": ("FILE", "file"),
    "--kdf-memory": ("SIZE", ""),
    "--kdf-time": ("PASSES", ""),
    "--label": ("LABEL", ""),
    "--level": ("LEVEL", "0 1 2 3 4 5 6 7 8 9"),
    "--log-file": ("FILE", "file"),
    "--new-passphrase-command": ("COMMAND", ""),
    "--new-passphrase-fd": ("NUMBER", ""),
    "--new-passphrase-file": ("FILE", "file"),
    "--padding": ("PADDING", "none padme"),
    "--passphrase-command": ("COMMAND", ""),
    "--passphrase-fd": ("NUMBER", ""),
    "--passphrase-file": ("FILE", "file"),
    "--rate": ("RATE", ""),
    "--recipient": ("KEY", "file"),
    "--salvage": ("TARGET", "folder"),
    "--undo": ("PLAN", "file"),
    "-N": ("NAMESPACE", "file"),
    "-o": ("OPTIONS", "ro rw allow_other nonempty noatime passphrase-file= identity= engine= "
                      "log-file= log= metrics= commit= checkpoint= cache= dirty= space_ratio= readahead= idle= "
                      "io_uring= uid= gid= umask="),
    "-t": ("TYPE", "nacre"),
}
POSITIONALS = {
    "FILE": "file", "MOUNTPOINT": "folder", "PATH": "file", "TARGET": "folder", "VOLUME": "folder",
    "WHAT": "all codecs ciphers checksum rsa seal",
}
COLUMN = 30  # where texts begin


@dataclass
class Option:
    flags: list          # ["-v", "--verbose"]; of a positional its name
    text: str = ""
    value: str = ""      # name of what follows; empty: nothing does
    kind: str = ""       # "file", "folder", or words
    default: str = ""
    repeats: bool = False
    required: bool = False


@dataclass
class Command:
    words: list          # ["nacre", "key", "add"]
    text: str = ""
    positionals: list = field(default_factory=list)
    options: list = field(default_factory=list)
    commands: list = field(default_factory=list)
    footer: list = field(default_factory=list)

    def name(self):
        return " ".join(self.words)

    def every(self):
        yield self
        for command in self.commands:
            yield from command.every()

    def usage(self):
        if self.commands:
            return "[OPTIONS] COMMAND"
        words = ["[OPTIONS]"]
        for one in self.positionals:
            word = one.flags[0] + ("..." if one.repeats else "")
            words.append(word if one.required else f"[{word}]")
        return " ".join(words)


def entries(lines):
    """Pairs of head and text; a text may go on over further lines."""
    found = []
    for line in lines:
        if not line.strip():
            continue
        if line.startswith(" " * (COLUMN - 4)):
            found[-1][1].append(line.strip())
            continue
        head, text = line[2:], ""
        split = len(line) > COLUMN and line[COLUMN - 1] == " " and line[COLUMN] != " "
        # A long head of other options' names may have a space there, too.
        if split and not re.fullmatch(r"(--\S+\s*)+", line[COLUMN:]):
            head, text = line[2:COLUMN], line[COLUMN:]
        found.append((head.strip(), [text.strip()] if text.strip() else []))
    return [(head, " ".join(text)) for head, text in found]


def parse_option(head, text):
    head = re.sub(r"\s*\b(Excludes|Needs):.*", "", head)
    first, _, rest = head.partition(" ")
    option = Option(flags=first.split(","), text=text)
    option.required = bool(re.search(r"\bREQUIRED\b", rest))
    option.repeats = "..." in rest
    words = re.search(r"\{([^}]*)\}", rest)
    default = re.search(r"=(\S+)$", re.sub(r"\s*(REQUIRED|\.\.\.)", "", rest))
    if default:
        option.default = default.group(1)
    if first.startswith("-"):
        if rest:
            name, kind = VALUES.get(option.flags[-1], (rest.split("=")[0].split(":")[0], ""))
            option.value, option.kind = name.split()[0], kind
    else:
        option.kind = POSITIONALS.get(first, "")
    if words:
        option.kind = words.group(1).replace(",", " ")
    return option


def read_help(program, words):
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", ASAN_OPTIONS="detect_leaks=0")
    result = subprocess.run([program] + words[1:] + ["--help"], capture_output=True, text=True,
                            env=environment, stdin=subprocess.DEVNULL, check=False, timeout=60)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(words)} --help ended with {result.returncode}: {result.stderr}")
    return result.stdout


def parse(program, words):
    command = Command(words)
    section, sections = "text", {"text": []}
    for line in read_help(program, words).splitlines():
        heading = re.fullmatch(r"(Positionals|Options|Subcommands):", line)
        if heading:
            section = heading.group(1)
        elif re.match(r"Usage:", line):
            section = "usage"
        elif line and not line.startswith(" ") and section not in ("text", "usage"):
            section = "footer"
        sections.setdefault(section, []).append("" if heading else line)
    command.text = " ".join(line.strip() for line in sections["text"] if line.strip())
    command.positionals = [parse_option(*e) for e in entries(sections.get("Positionals", []))]
    command.options = [parse_option(*e) for e in entries(sections.get("Options", []))]
    command.footer = sections.get("footer", [])
    for head, _ in entries(sections.get("Subcommands", [])):
        command.commands.append(parse(program, words + [head]))
    return command


def read_tree(folder, program):
    return parse(os.path.join(folder, program), [program])
