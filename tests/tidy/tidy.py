#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The house rules as a test: include direction, homes of third parties, leftovers, heads, sizes,
formatting, and documents that name what exists.

    tidy.py [ROOT]

Prints one line a breach: FILE:LINE: RULE: WHAT. Exit status 1 when there is one. Needs no build.
"""
import os
import re
import shutil
import subprocess
import sys

WIDTH_MAX = 100
SCRIPT_WIDTH_MAX = 140  # a command line does not wrap well
LINES_MAX = 500
# Files past LINES_MAX, each with the reason why it is one idea.
LONG_FILES = {
    "tests/model/volume_model_test.cpp": "one table of operations and how each is checked",
    "tests/support/memory_backing.cpp": "one implementation of backing.h, in memory",
}

# tools -> fs -> metadata -> gpu_engine: a folder includes only folders to its right.
CHAIN = ["tools", "fs", "metadata", "gpu_engine"]
# Within a folder: rooms, and files of its root by their names, each of which uses only what stands to
# its right. What a chain does not name is a breach.
CHAINS = {
    "fs": ["fuse", "control", "repair", "salvage", "rotation", "scrub", "mount", "volume", "backup",
           "check", "checkpoint", "cache", "space", "store", "crypt"],
    "metadata": ["rescue", "tables", "sealed_fs", "volume_files", "format", "superblock", "keys",
                 "backing", "text"],
    "gpu_engine": ["seeds", "baseline", "engine.cpp", "cuda", "plan", "cpu", "forget_keys", "engine",
                   "backend", "seal", "payload", "record", "publickey", "codec", "cipher",
                   "checksum", "kdf", "base"],
}

# Header prefixes of each outside world and the only folders that may include them.
HOMES = [
    (r"(openssl/|intel-ipsec-mb|isa-l|lz4|zstd|argon2|libdeflate|zlib|tiff)", ["gpu_engine/"]),
    (r"(cuda|cub/|nvtx|thrust/)", ["gpu_engine/cuda/"]),
    (r"rocksdb/", ["metadata/"]),
    (r"(fuse3/|fuse_lowlevel|fuse\.h|linux/fuse\.h)", ["fs/fuse/"]),
    (r"microhttpd", ["fs/control/", "tools/web/"]),
    (r"(liburing|linux/io_uring)", ["fs/fuse/"]),
    (r"CLI/", ["tools/"]),
]
# The judges that tests compare with are outside worlds too: tests may include anything.
OUTSIDE = ["tests/"]

LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK|stub|not implemented|placeholder)\b")
# A path of the machine that a developer sat at, or the folder of shared material next to a checkout.
MACHINE = re.compile(r"((?<!\w)/work/|/home/\w+|\.\./shared)")
MACHINE_ALLOWED = ("tests/", "tools/", ".ci/")
# Documents whose figures each name the command that makes them, or say that none does.
LEDGERS = ["README.md", "docs/COMPARISON.md", "docs/PERFORMANCE.md", "docs/PERFORMANCE_CUDA.md", "docs/SEEDS.md"]
FIGURE = re.compile(r"\|\s*\**[0-9]")  # a cell that begins with a number
SOURCE = re.compile(r"\bmade by\b[^`]*`|\bnot repeatable\b|\bmade by th\w+ tests\b", re.I)
TERMINAL = re.compile(r"\b(std::cout|std::cerr|fmt::print|printf|puts)\b\s*[(<]")
# What of tools/ prints by itself: all else shows what others wrote, and goes through terminal.h.
OWN_OUTPUT = ("tools/cli/terminal.", "tools/bench/", "tools/nacre/bench", "tools/papers/", "tools/web/bundle_page.",
              "gpu_engine/cuda/kernels/find_des_sboxes")
# Locks that clang's analysis does not see. std::unique_lock and std::shared_lock are for those that move;
# spdlog's sinks have a mutex of their own.
UNSEEN_LOCK = re.compile(r"(?<!base_sink<)\bstd::(\w*mutex|lock_guard|scoped_lock|condition_variable\w*)\b")
LOCK_HOME = "gpu_engine/base/mutex.h"
CODE = (".h", ".cpp", ".cu", ".cuh")
SCRIPT = (".sh", ".py", ".cmake", "CMakeLists.txt")


def files_of(root):
    """Every file that is, or could be, committed."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], capture_output=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.decode().split("\0") if name]
    else:
        names = []
        for folder, folders, found in os.walk(root):
            folders[:] = [f for f in folders if f not in (".git", "build", ".cache")]
            names += [os.path.relpath(os.path.join(folder, f), root) for f in found]
    return sorted({n for n in names if os.path.isfile(os.path.join(root, n))})


class Tidy:
    def __init__(self, root):
        self.root = root
        self.names = files_of(root)
        self.breaches = []
        self.text = {}
        for name in self.names:
            if name.endswith(CODE + SCRIPT + (".md",)) or name.startswith((".ci/", "tools/")):
                with open(os.path.join(root, name), encoding="utf-8", errors="replace") as f:
                    self.text[name] = f.read()

    def breach(self, name, line, rule, what):
        self.breaches.append(f"{name}:{line}: {rule}: {what}")

    def code(self):
        return [n for n in self.text if n.endswith(CODE) and not n.startswith("tests/vectors/")]

    def scripts(self):
        return [n for n in self.text
                if n.endswith(SCRIPT) or n.startswith(".ci/") or self.text[n].startswith("#!")]

    def check_includes(self):
        for name in self.code():
            if name.startswith(tuple(OUTSIDE)):
                continue
            for number, line in enumerate(self.text[name].splitlines(), 1):
                found = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
                if not found:
                    continue
                header = found.group(1)
                self.check_direction(name, number, header)
                for pattern, homes in HOMES:
                    if re.match(pattern, header) and not name.startswith(tuple(homes)):
                        self.breach(name, number, "home", f"{header} belongs to {homes[0]}")

    def place(self, path, chain):
        """Where a file stands in its folder's chain: the room's name, or its own in the folder's root."""
        parts = path.split("/")
        if len(parts) > 2:
            return parts[1]
        return parts[1] if parts[1] in chain else parts[1].split(".")[0]

    def check_direction(self, name, number, header):
        mine, theirs = name.split("/")[0], header.split("/")[0]
        if theirs == "tests":
            self.breach(name, number, "chain", f"{header}: code may not include tests")
        if "/" not in header or mine not in CHAIN or theirs not in CHAIN:
            return
        if CHAIN.index(theirs) < CHAIN.index(mine):
            self.breach(name, number, "chain", f"{header}: {mine} may not include {theirs}")
        if mine != theirs or mine not in CHAINS:
            return
        chain = CHAINS[mine]
        mine, theirs = self.place(name, chain), self.place(header, chain)
        for room in (mine, theirs):
            if room not in chain:
                self.breach(name, number, "chain", f"{room} stands in no chain of tidy.py")
                return
        if chain.index(theirs) < chain.index(mine):
            self.breach(name, number, "chain", f"{header}: {mine} may not include {theirs}")

    def check_words(self):
        for name in self.code() + self.scripts():
            if name.startswith("tests/tidy/"):
                continue
            for number, line in enumerate(self.text[name].splitlines(), 1):
                left = LEFTOVER.search(line)
                if left:
                    self.breach(name, number, "leftover", left.group(0))
                if re.search(r"\bDISABLED_", line):
                    self.breach(name, number, "leftover", "a test that is switched off")
                if len(line) > (WIDTH_MAX if name.endswith(CODE) else SCRIPT_WIDTH_MAX):
                    self.breach(name, number, "width", f"{len(line)} columns")
                if name.endswith(CODE) and not name.startswith(("tests/",) + OWN_OUTPUT):
                    printed = TERMINAL.search(re.sub(r"//.*", "", line))
                    if printed:
                        where = "not by terminal.h" if name.startswith("tools/") else "outside tools/"
                        self.breach(name, number, "terminal", f"{printed.group(1)} {where}")
                if name.endswith(CODE) and not name.startswith("tests/") and name != LOCK_HOME:
                    lock = UNSEEN_LOCK.search(re.sub(r"//.*", "", line))
                    if lock:
                        self.breach(name, number, "lock", f"{lock.group(0)}: {LOCK_HOME} has its own")
        for name, text in self.text.items():
            if name.startswith(MACHINE_ALLOWED):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                place = MACHINE.search(line)
                if place:
                    self.breach(name, number, "machine", place.group(0))

    def has_header(self, name):
        """A header of the same name stands next to the source, and says what both are for."""
        return name.endswith(".cpp") and name[:-len(".cpp")] + ".h" in self.text

    def check_heads(self):
        for name in self.code():
            lines = self.text[name].splitlines()
            if not lines or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
                self.breach(name, 1, "head", "the first line is not the SPDX line")
            elif (len(lines) < 2 or not lines[1].startswith("//")) and not self.has_header(name):
                self.breach(name, 2, "head", "no word on what the file is for")
            if name.endswith((".h", ".cuh")) and "#pragma once" not in lines:
                self.breach(name, 1, "head", "no #pragma once")
            if len(lines) > LINES_MAX and name not in LONG_FILES:
                self.breach(name, LINES_MAX, "size", f"{len(lines)} lines: a second idea moved in")
        for name in self.scripts():
            if name.endswith((".cmake", "CMakeLists.txt")):
                continue
            if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(
                    self.text[name].splitlines()[:2]):
                self.breach(name, 1, "head", "no SPDX line")
            runs = os.access(os.path.join(self.root, name), os.X_OK)
            if self.text[name].startswith("#!") != runs:
                self.breach(name, 1, "head", "executable bit and #! must go together")

    def check_built(self):
        """A source that no CMakeLists.txt names is compiled by nobody."""
        for name in self.code():
            if not name.endswith((".cpp", ".cu")):
                continue
            folder, base = os.path.split(name)
            named = False
            while not named:
                lists = os.path.join(folder, "CMakeLists.txt")
                path = os.path.relpath(name, folder) if folder else name
                named = re.search(r"(?<![\w/.-])" + re.escape(path) + r"(?![\w.-])",
                                  self.text.get(lists, "")) is not None
                if not folder:
                    break
                folder = os.path.dirname(folder)
            if not named:
                self.breach(name, 1, "built", f"no CMakeLists.txt names {base}")

    def check_documents(self):
        tests = set()
        for name in self.code():
            if name.startswith("tests/"):
                tests |= {f"{a}.{b}" for a, b in re.findall(
                    r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", self.text[name])}
        suites = {test.split(".")[0] for test in tests}
        tops = {name.split("/")[0] for name in self.names if "/" in name}
        bases = {os.path.basename(name) for name in self.names}
        for name, text in self.text.items():
            if not name.endswith(".md"):
                continue
            for number, line in enumerate(text.splitlines(), 1):
                for word in re.findall(r"`([^`\s]+)`", line):
                    path = word.rstrip(".,;:/").split(":")[0]
                    if "/" in path and path.split("/")[0] in tops and not re.search(
                            r"[*{}<>…$]", path):
                        full = os.path.join(self.root, path)
                        if not (os.path.exists(full) or path.startswith("build")):
                            self.breach(name, number, "document", f"{path} does not exist")
                    if re.fullmatch(r"\w+\.(sh|py)", word) and word not in bases:
                        self.breach(name, number, "document", f"there is no script {word}")
                    case = re.fullmatch(r"([A-Z]\w*)\.([a-z]\w*_\w+)", word)
                    if case and case.group(1) in suites and word not in tests:
                        self.breach(name, number, "document", f"there is no test {word}")
                for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", line):
                    if not os.path.exists(os.path.join(self.root, os.path.dirname(name), link)):
                        self.breach(name, number, "document", f"{link} does not exist")

    def check_figures(self):
        """In a ledger each section with a table of figures names their source; a document may be written as a whole."""
        for name in LEDGERS:
            section, begin, is_sourced, is_counted = "", 0, False, False
            lines = self.text.get(name, "").splitlines() + ["# the end"]
            if any(line.startswith("Written by `") for line in lines[:10]):
                continue
            for number, line in enumerate(lines, 1):
                if re.match(r"#+ ", line):
                    if is_counted and not is_sourced:
                        self.breach(name, begin, "figures", f"'{section}' names no command that makes them")
                    section, begin, is_sourced, is_counted = line, number, False, False
                is_counted |= line.lstrip().startswith("|") and FIGURE.search(line) is not None
                # A sentence may go on in the next line.
                is_sourced |= SOURCE.search(line + " " + lines[min(number, len(lines) - 1)]) is not None

    def check_checklist(self):
        """docs/SECURITY.md: each attack has a test, and each suite that is named is one."""
        name = "docs/SECURITY.md"
        suites = set()
        for code in self.code():
            if code.startswith("tests/"):
                suites |= set(re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),", self.text[code]))
        lines = self.text.get(name, "").splitlines()
        begin = lines.index("| attack | shown by |") + 2 if "| attack | shown by |" in lines else None
        if name in self.text and begin is None:
            self.breach(name, 1, "checklist", "there is no table '| attack | shown by |'")
        for number, line in enumerate(lines[begin:] if begin else [], (begin or 0) + 1):
            if not line.startswith("|"):
                break
            shown = line.split("|")[2]
            cases = re.findall(r"`([A-Z]\w*)\.[a-z]\w*`", shown)
            if not cases and "`tests/" not in shown:
                self.breach(name, number, "checklist", "no test shows this line")
            for suite in set(cases) - suites:
                self.breach(name, number, "checklist", f"there is no suite {suite}")

    def check_format(self):
        tool = shutil.which("clang-format-14")
        if tool is None or not os.path.exists(os.path.join(self.root, ".clang-format")):
            print("skipped: tidy, formatting: there is no clang-format-14")
            return
        code = self.code()
        for start in range(0, len(code), 50):
            result = subprocess.run([tool, "--dry-run", "--style=file"] + code[start:start + 50],
                                    cwd=self.root, capture_output=True, text=True, check=False)
            seen = set()
            for name, line in re.findall(r"^(\S+?):(\d+):\d+: warning:", result.stderr, re.M):
                if name not in seen:
                    seen.add(name)
                    self.breach(name, line, "format", "clang-format-14 would change it")
            if result.returncode != 0:
                self.breach(".clang-format", 1, "format", result.stderr.strip()[:200])

    def run(self):
        self.check_includes()
        self.check_words()
        self.check_heads()
        self.check_built()
        self.check_documents()
        self.check_figures()
        self.check_checklist()
        self.check_format()
        return self.breaches


def main():
    root = os.path.realpath(
        sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../.."))
    tidy = Tidy(root)
    if not tidy.code():
        sys.exit(f"tidy: no source file below {root}")
    breaches = tidy.run()
    for line in breaches:
        print(line)
    print(f"tidy: {len(tidy.code())} sources, {len(breaches)} breaches")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
