#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The man pages, as they are built from docs/man and --help: every command has a page of its own,
every command, option and mount option of --help is in its page and the other way round, pages render
without a warning, and what they refer to exists.

NACRE_BIN names the folder of the programs.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, os.path.join(ROOT, "packaging"))
import help_tree  # noqa: E402

BIN = os.environ["NACRE_BIN"]
PROGRAMS = ["mkfs.nacre", "mount.nacre", "fsck.nacre", "nacre"]
# Pages of others that ours refer to.
OTHERS = {"fstab(5)", "pam_mount(8)", "mount(8)", "umount(8)", "sync(1)", "syncfs(2)", "fsync(2)",
          "open_by_handle_at(2)", "systemd.mount(5)", "systemd.timer(5)", "openssl(1)", "df(1)",
          "ssh(1)", "xdg-open(1)"}
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


def rendered(path):
    """As people see it, without what makes letters bold."""
    environment = dict(os.environ, MANWIDTH="400", LC_ALL="C.UTF-8", MAN_KEEP_FORMATTING="")
    text = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", path], env=environment,
                          capture_output=True, text=True, check=False)
    check(text.returncode == 0 and not text.stderr.strip(),
          f"{os.path.basename(path)} renders with a complaint: {text.stderr.strip()[:500]}")
    return re.sub(r".\x08", "", text.stdout).replace("‐", "-").replace("−", "-")


def flags_in(text):
    """The options that a page lists: those at the front of an entry."""
    found = set()
    for line in text.splitlines():
        entry = re.match(r"\s{3,8}((?:-\w|--[\w-]+)(?:, --[\w-]+)*)(\s|$)", line)
        if entry:
            found |= set(entry.group(1).split(", "))
    return found


def check_command_page(folder, command, section):
    name = f"{'-'.join(command.words)}.{section}"
    path = os.path.join(folder, f"man{section}", name)
    text = rendered(path)
    for needed in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS"):
        check(f"\n{needed}\n" in text, f"{name} has no section {needed}")
    below = [command] if len(command.words) == 1 else list(command.every())
    of_help = {flag for one in below if not one.commands or len(command.words) == 1
               for option in one.options for flag in option.flags}
    of_page = flags_in(text.split("\nOPTIONS\n", 1)[1].split("\nMOUNT OPTIONS\n")[0])
    check(of_help == of_page, f"{name}: options of --help alone: {sorted(of_help - of_page)}, "
                              f"of the page alone: {sorted(of_page - of_help)}")
    for one in below[1:]:
        if not one.commands:
            check(f"\n   {one.name()}\n" in text, f"{name} has nothing on {one.name()}")
    for one in command.positionals:
        check(one.flags[0] in text, f"{name} has nothing on {one.flags[0]}")
    if command.words == ["nacre"]:
        for one in command.commands:
            check(f"nacre-{one.words[-1]}(1)" in text, f"nacre.1 does not name {one.name()}")
    return text


def check_sources():
    """A page that was not built can be read, too, by whoever has the sources alone."""
    for path in sorted(glob.glob(ROOT + "/docs/man/*.[18]")):
        text = rendered(path)
        name = os.path.basename(path)
        check(re.search(r"\nNAME\n\s+" + re.escape(name[:-2]) + " — ", text),
              f"{name}, not built, has no name: {text[:200]}")
        check(text.startswith(name[:-2].upper() + "("), f"{name}, not built, has no head")
        check("--help says" in text and 'built from' not in text, f"{name}, not built, does not say what is missing")


def check_mount_options(page):
    """The list that an unknown option brings up, against the section of the page."""
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run([BIN + "/mount.nacre", folder, folder, "-o", "no-such-option"],
                              capture_output=True, text=True, check=False).stderr
    listed = re.search(r"there are: (.*)", said)
    check(listed, f"mount.nacre does not list its options: {said}")
    if not listed:
        return
    known = {word.split("=")[0] for word in listed.group(1).split()}
    section = page.split("\nMOUNT OPTIONS\n", 1)[1].split("\nFILES\n", 1)[0]
    shown = set()
    for line in section.splitlines():
        if re.match(r"     \S", line) and not re.match(r"     [A-Z]\w* ", line.split("  ")[0] + " "):
            entry = re.split(r"\s{2,}", line.strip())[0]
            if re.fullmatch(r"[\w-]+(=[A-Z]+)?(, [\w-]+(=[A-Z]+)?)*", entry):
                shown |= {word.split("=")[0] for word in entry.split(", ")}
    check(known == shown, f"mount options of mount.nacre alone: {sorted(known - shown)}, "
                          f"of the page alone: {sorted(shown - known)}")


def check_references(folder, texts):
    own = {f"{name.rsplit('.', 1)[0]}({name[-1]})" for name in texts}
    for name, text in texts.items():
        for reference in set(re.findall(r"(?<![\w.])([a-z][\w.-]*\([1-8]\))", text)):
            if name == "nacre-format.5":  # names system calls in passing
                continue
            check(reference in own | OTHERS, f"{name} refers to {reference}, which is not there")
    check(len(texts) == sum(len(files) for _, _, files in os.walk(folder)),
          "a page was written that nothing here looks at")


def main():
    if shutil.which("man") is None or shutil.which("groff") is None:
        print("skipped: packaging_manual: there is no man or groff")
        return 77
    texts = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-B", ROOT + "/packaging/write_manual.py", "--bin", BIN,
                        "--pages", ROOT + "/docs/man", "--format", ROOT + "/docs/FORMAT.md",
                        "--version", "0.0.0", "--out", folder] + PROGRAMS, check=True)
        for program in PROGRAMS:
            tree = help_tree.read_tree(BIN, program)
            section = 8 if "." in program else 1
            for command in [tree] + tree.commands:
                text = check_command_page(folder, command, section)
                texts[f"{'-'.join(command.words)}.{section}"] = text
                for line in text.splitlines():
                    check(len(line) <= 400, f"{command.name()}: a line runs over")
        texts["nacre-format.5"] = rendered(folder + "/man5/nacre-format.5")
        with open(ROOT + "/docs/FORMAT.md", encoding="utf-8") as file:
            for heading in re.findall(r"^## (.*)", file.read(), re.M):
                plain = re.sub(r"[`*]", "", heading).upper()
                check(f"\n{plain}\n" in texts["nacre-format.5"], f"nacre-format.5 lacks {plain}")
        check_mount_options(texts["mount.nacre.8"])
        check_sources()
        check_references(folder, texts)
        for page in os.listdir(ROOT + "/docs/man"):
            check(page in texts, f"docs/man/{page} is of no command")
        if shutil.which("mandoc"):
            for name in texts:
                path = os.path.join(folder, f"man{name[-1]}", name)
                said = subprocess.run(["mandoc", "-Tlint", "-W", "warning", path],
                                      capture_output=True, text=True, check=False)
                check(said.returncode == 0, f"mandoc: {said.stdout.strip()[:500]}")
        else:
            print("skipped: packaging_manual, a second judge: there is no mandoc")
    for failure in failures:
        print("FAILED:", failure)
    print(f"{len(texts)} pages, {len(failures)} failures")
    return 1 if failures or len(texts) < 12 else 0


if __name__ == "__main__":
    sys.exit(main())
