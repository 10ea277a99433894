#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of tidy.py must see its breach: a small tree, clean, then with one defect at a time."""
import os
import subprocess
import sys
import tempfile

TIDY = os.path.join(os.path.dirname(os.path.realpath(__file__)), "tidy.py")
HEAD = "// SPDX-License-Identifier: Apache-2.0\n// What it is for.\n"
CLEAN = {
    "gpu_engine/CMakeLists.txt": "add_library(e base/a.cpp)\n",
    "gpu_engine/base/a.h": HEAD + "#pragma once\n",
    "gpu_engine/base/a.cpp": HEAD + '#include "gpu_engine/base/a.h"\n',
    "fs/store/store.h": HEAD + '#pragma once\n\n#include "gpu_engine/base/a.h"\n',
    "fs/fuse/fuse.h": HEAD + '#pragma once\n\n#include "fs/store/store.h"\n',
    "tests/a_test.h": HEAD + "#pragma once\nTEST(Unit, says_so)\n",
    "docs/SECURITY.md": "| attack | shown by |\n|---|---|\n| a bit | `Unit.says_so` |\n",
    "README.md": "See `fs/store/store.h` and `Unit.says_so`, and do not work/ elsewhere: tests/work/ will do.\n",
    "docs/PERFORMANCE.md": "# It\n\n## One\n\nMade\nby `nacre bench`:\n\n| | s |\n|---|---|\n| x | 1 |\n",
}
# rule, file, content
DEFECTS = [
    ("chain", "gpu_engine/base/a.h", CLEAN["gpu_engine/base/a.h"] + '#include "metadata/b.h"\n'),
    ("chain", "fs/store/store.h", HEAD + '#pragma once\n#include "fs/fuse/fuse.h"\n'),
    ("chain", "fs/fuse/fuse.h", HEAD + '#pragma once\n#include "tests/a_test.h"\n'),
    ("chain", "gpu_engine/base/a.h", HEAD + '#pragma once\n#include "gpu_engine/engine.h"\n'),
    ("chain", "gpu_engine/engine.h", HEAD + '#pragma once\n#include "gpu_engine/engine.cpp"\n'),
    ("chain", "metadata/keys/keys.h", HEAD + '#pragma once\n#include "metadata/format/a.h"\n'),
    ("chain", "metadata/new_room/a.h", HEAD + '#pragma once\n#include "metadata/keys/keys.h"\n'),
    ("home", "fs/fuse/fuse.h", HEAD + "#pragma once\n#include <rocksdb/db.h>\n"),
    ("home", "fs/store/store.h", HEAD + "#pragma once\n#include <fuse3/fuse_lowlevel.h>\n"),
    ("home", "gpu_engine/base/a.h", HEAD + "#pragma once\n#include <cuda_runtime.h>\n"),
    ("leftover", "gpu_engine/base/a.h", HEAD + "#pragma once\n// TODO: all of it\n"),
    ("leftover", "tests/a_test.h", HEAD + "#pragma once\nTEST(Unit, DISABLED_says_so)\n"),
    ("width", "gpu_engine/base/a.h", HEAD + "#pragma once\n// " + "x" * 98 + "\n"),
    ("terminal", "gpu_engine/base/a.cpp", HEAD + 'void f() { printf("x"); }\n'),
    ("lock", "gpu_engine/base/a.h", HEAD + "#pragma once\nstd::shared_mutex mutex;\n"),
    ("lock", "fs/store/store.h", HEAD + "#pragma once\nconst std::lock_guard lock(mutex);\n"),
    ("machine", "gpu_engine/base/a.h", HEAD + "#pragma once\n// see /home/me/notes\n"),
    ("head", "gpu_engine/base/a.h", "#pragma once\n"),
    ("head", "gpu_engine/base/a.h", HEAD),
    ("head", "gpu_engine/base/a.h", HEAD.splitlines()[0] + "\n#pragma once\n"),
    ("head", "gpu_engine/base/alone.cpp", HEAD.splitlines()[0] + "\nint alone();\n"),
    ("head", "tools/x.sh", "#!/bin/sh\n"),
    ("size", "gpu_engine/base/a.h", HEAD + "#pragma once\n" + "\n" * 500),
    ("built", "gpu_engine/base/b.cpp", HEAD),
    ("document", "README.md", "See `fs/store/gone.h`.\n"),
    ("document", "README.md", "See `Unit.says_something_else`.\n"),
    ("document", "README.md", "See [it](docs/gone.md).\n"),
    ("document", "README.md", "See `gone.sh`.\n"),
    ("figures", "docs/PERFORMANCE.md", "# It\n\n## One\n\nMade by hand.\n\n| | s |\n|---|---|\n| x | **1** |\n"),
    ("figures", "docs/PERFORMANCE.md",
     "# It\n\n## One\n\nMade by `nacre bench`.\n\n## Two\n\n| | s |\n|---|---|\n| x | 1 |\n"),
    ("checklist", "docs/SECURITY.md", "| attack | shown by |\n|---|---|\n| a bit | words |\n"),
    ("checklist", "docs/SECURITY.md",
     "| attack | shown by |\n|---|---|\n| a bit | `Gone.says_so` |\n"),
    ("checklist", "docs/SECURITY.md", "Nothing is tested.\n"),
]


def breaches(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        result = subprocess.run([sys.executable, TIDY, root], capture_output=True, text=True,
                                check=False)
    lines = [line for line in result.stdout.splitlines() if not line.startswith("tidy:")]
    return result.returncode, [line for line in lines if not line.startswith("skipped:")]


def main():
    failed = 0
    status, lines = breaches(CLEAN)
    if status != 0:
        failed += 1
        print(f"the clean tree is blamed: {lines}")
    for rule, name, text in DEFECTS:
        status, lines = breaches({**CLEAN, name: text})
        if status != 1 or not any(
                line.startswith(name + ":") and f": {rule}: " in line for line in lines):
            failed += 1
            print(f"not seen: {rule} in {name}: {lines}")
    print(f"{len(DEFECTS) + 1} trees, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
