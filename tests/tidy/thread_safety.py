#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The product's locks as clang's thread-safety analysis sees them: every breach is an error.

    thread_safety.py BUILD [NAME...]

Compiles each source of the product that includes gpu_engine/base/thread_annotations.h, by itself or
through other headers, with the options of BUILD/compile_commands.json. Writes no objects. Sources
of one library or program are compiled together, as by NACRE_UNITY_BUILD. With NAMEs, only libraries
and programs whose names contain one of them. A planted breach must be reported first.
Exit status: 0 no breach, 1 a breach, 2 usage, 77 skipped.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMS = ("fs/", "metadata/", "gpu_engine/", "tools/")
ANNOTATIONS = "gpu_engine/base/thread_annotations.h"
ALONE = "cmake/compiled_alone.txt"
BATCH_MAX = 24  # sources that are compiled together
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
TARGET = re.compile(r" -o \S*?CMakeFiles/([^/]+)\.dir/")
CHECK = ["-fsyntax-only", "-Wno-everything", "-Wthread-safety", "-Werror=thread-safety", "-x", "c++"]
# What a command keeps: language, macros and folders. The rest is for another compiler, or makes files.
KEPT = re.compile(r"-(std=|D|I|isystem|m|pthread)")

PLANTED = """
#include "gpu_engine/base/mutex.h"
class Planted {
 public:
  void add() { ++count_; }
 private:
  nacre::Mutex mutex_;
  int count_ NACRE_GUARDED_BY(mutex_) = 0;
};
"""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def includes_of(path, known):
    """The project's headers that a source includes, directly and through others."""
    if path not in known:
        known[path] = set()
        if os.path.isfile(os.path.join(ROOT, path)):
            for header in INCLUDE.findall(read(path)):
                known[path] |= {header} | includes_of(header, known)
    return known[path]


def options_of(command):
    words = shlex.split(command)
    options = []
    for position, word in enumerate(words):
        if KEPT.match(word):
            options.append(word)
            if word in ("-I", "-D", "-isystem"):
                options.append(words[position + 1])
    return tuple(options)


def batches_of(build):
    """(name, folder, options, sources) of what is compiled together."""
    known, alone, groups, taken = {}, read(ALONE).splitlines(), {}, set()
    for entry in json.loads(read(os.path.join(build, "compile_commands.json"))):
        file = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        target = TARGET.search(entry["command"])
        if target is None or not file.endswith(".cpp"):
            continue
        is_unity = os.path.basename(os.path.dirname(os.path.dirname(file))) == "unity"
        for source in INCLUDE.findall(read(file)) if is_unity else [file]:
            if (source in taken or not source.startswith(ROOMS)
                    or ANNOTATIONS not in includes_of(source, known)):
                continue
            taken.add(source)  # of two targets that have it, the first
            group = (target[1], entry["directory"], options_of(entry["command"]),
                     file if is_unity or source in alone else "")
            groups.setdefault(group, []).append(source)
    batches = []
    for (target, folder, options, _), sources in groups.items():
        for begin in range(0, len(sources), BATCH_MAX):
            batches.append((target, folder, options, sources[begin:begin + BATCH_MAX]))
    return sorted(batches, key=lambda batch: -len(batch[3]))


def check(clang, batch):
    """The errors of a batch. Where its sources do not go together, of each by itself."""
    target, folder, options, sources = batch
    text = "".join(f'#include "{source}"\n' for source in sources)
    done = subprocess.run([clang, *CHECK, *options, f"-I{ROOT}", "-"], cwd=folder, input=text,
                          capture_output=True, text=True, errors="replace", check=False)
    if done.returncode == 0:
        return ""
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    if len(sources) == 1 or (errors and all("-Wthread-safety" in error for error in errors)):
        return done.stderr or f"{target}: clang++ ended with status {done.returncode}\n"
    return "".join(check(clang, (target, folder, options, [source])) for source in sources)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    clang = shutil.which("clang++")
    if clang is None:
        print("skipped: thread-safety analysis: clang++ is not installed")
        return 77
    planted = subprocess.run([clang, *CHECK, "-std=c++20", f"-I{ROOT}", "-"], input=PLANTED,
                             capture_output=True, text=True, check=False)
    if planted.returncode == 0 or "requires holding mutex 'mutex_'" not in planted.stderr:
        print(f"{clang} does not report a planted breach:\n{planted.stderr}")
        return 1
    batches = [batch for batch in batches_of(os.path.abspath(sys.argv[1]))
               if len(sys.argv) == 2 or any(name in batch[0] for name in sys.argv[2:])]
    if not batches:
        print("no source to check")
        return 1
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for errors in pool.map(lambda batch: check(clang, batch), batches):
            if errors:
                failed += 1
                print(errors)
    count = sum(len(batch[3]) for batch in batches)
    print(f"{count} sources in {len(batches)} batches, {failed} with a breach")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
