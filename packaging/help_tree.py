# SPDX-License-Identifier: Apache-2.0
"""Reads the --help-all of the programs, subcommand by subcommand, into a tree.
Man pages and completions are written from it, and tests compare with it."""
import os
import re
import subprocess
from dataclasses import dataclass, field

# The value of an option, for people and for completions: a name, and "file", "folder" or words.
VALUES = {
    "--chunk-size": ("SIZE", "4K 8K 16K 32K 64K 128K 256K 512K 1M"),
    "--cipher": ("SUITE", "aes-256-gcm aes-192-gcm aes-128-gcm aes-256-ctr aes-192-ctr "
                          "aes-128-ctr aes-256-cbc aes-192-cbc aes-128-cbc"),
    "--codec": ("CODEC", "none lz77 zstd rle huffman gdeflate lzw auto"),
    "--engine": ("ENGINE", "auto cpu cuda"),
    "--fingerprint": ("HEX", ""),
    "--identity": ("KEY", "file"),
    "--interval": ("SECONDS", ""),
    "--json": ("FILE", "file"),
    "--kdf-limit": ("SIZE", ""),
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
    "--witness": ("FILE", "file"),
    "--witness-command": ("COMMAND", ""),
    "-N": ("NAMESPACE", "file"),
    "-o": ("OPTIONS", "ro rw allow_other nonempty noatime passphrase-file= identity= fingerprint= "
                      "accept-older-state witness= witness-command= witness-may-fail kdf-limit= "
                      "engine= log-file= log= metrics= sandbox= commit= checkpoint= cache= dirty= "
                      "space_ratio= readahead= idle= io_uring= uid= gid= umask="),
    "-t": ("TYPE", "nacre"),
}
POSITIONALS = {
    "FILE": "file", "MOUNTPOINT": "folder", "PATH": "file", "TARGET": "folder", "VOLUME": "folder",
    "WHAT": "all codecs ciphers checksum rsa seal",
}
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
    examples: list = field(default_factory=list)
    required: set = field(default_factory=set)  # names of positionals

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
    """Pairs of head and text: heads stand two columns in, texts below them six."""
    found = []
    for line in lines:
        if line.startswith("      "):
            found[-1][1].append(line.strip())
        elif line.strip():
            found.append((line.strip(), []))
    return [(head, " ".join(text)) for head, text in found]


def parse_option(head, text):
    """-o, --output OUTPUT... (default X)"""
    head, _, default = head.partition(" (default ")
    *flags, last = head.split(", ")
    last, _, value = last.partition(" ")
    option = Option(flags=flags + [last.removesuffix("...")], text=text, default=default.rstrip(")"))
    option.repeats = head.endswith("...")
    if not last.startswith("-"):
        option.kind = POSITIONALS.get(option.flags[0], "")
    elif value:
        option.value, option.kind = VALUES.get(last, (value.removesuffix("..."), ""))
    return option


def read_help(program, words):
    environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", ASAN_OPTIONS="detect_leaks=0")
    result = subprocess.run([program] + words[1:] + ["--help-all"], capture_output=True, text=True,
                            env=environment, stdin=subprocess.DEVNULL, check=False, timeout=60)
    if result.returncode != 0:
        raise SystemExit(f"{' '.join(words)} --help-all ended with {result.returncode}: {result.stderr}")
    return result.stdout


def parse(program, words):
    command = Command(words)
    section, sections = "text", {}
    for line in read_help(program, words).splitlines():
        heading = re.fullmatch(r"(Arguments|Options|Commands):", line)
        if heading:
            section = heading.group(1)
            continue
        if line.startswith("Usage:"):
            command.required = set(re.findall(r"(?<= )[A-Z]+", re.sub(r"\[[^]]*\]", "", line)))
            continue
        if line and not line.startswith(" ") and section != "text":
            section = "examples" if line == "Examples:" else "footer"
        sections.setdefault(section, []).append(line)
    command.text = " ".join(line.strip() for line in sections["text"] if line.strip()).rstrip(".")
    command.positionals = [parse_option(*e) for e in entries(sections.get("Arguments", []))]
    for one in command.positionals:
        one.required = one.flags[0] in command.required
    command.options = [parse_option(*e) for e in entries(sections.get("Options", []))]
    command.footer = sections.get("footer", [])
    command.examples = [line.strip() for line in sections.get("examples", [])[1:] if line.strip()]
    for line in sections.get("Commands", []):
        if line.startswith("  ") and not line.startswith("   "):
            command.commands.append(parse(program, words + [line.split()[0]]))
    return command


def read_tree(folder, program):
    return parse(os.path.join(folder, program), [program])
