#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of words.py must see its breach, and nothing else: a small tree, clean, then with one
text at a time."""
import os
import subprocess
import sys
import tempfile

WORDS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "words.py")
CODE = "// SPDX-License-Identifier: Apache-2.0\n"
CLEAN = {
    "README.md": "Who can open it? Besides, there are many. It lies next to \"beside\" and `so many`.\n",
    "docs/SEEDS.md": "Written by `nacre-papers --markdown`.\n" + "x " * 80 + "\n",
    "tools/a.cpp": CODE + "// It says so, and many read it. At most this.\nint beside_it();\n",
    "tests/fs/a.cpp": CODE + "// Who reads so many comments beside the code? Whoever must.\n",
    "docs/PERFORMANCE.md": "| " + "x " * 80 + "|\n[a link](" + "x" * 100 + ")\nhttps://" + "x" * 100 + "\n",
}
# rule, file, content
BREACHES = [
    ("words", "README.md", "It lies beside the volume.\n"),
    ("words", "README.md", "Beside that it is short.\n"),
    ("words", "docs/man/nacre.1", "At the most three.\n"),
    ("words", "docs/KEYS.md", "There are so\nmany keys.\n"),
    ("words", "tools/a.cpp", CODE + "// It comes by the way\n// of the daemon.\n"),
    ("words", "tools/a.cpp", CODE + 'const char* text = "so "\n    "many";\n'),
    ("words", "tests/measure/a.py", "# So many rounds.\n"),
    ("words", "README.md", "Somebody may have changed it.\n"),
    ("words", "docs/man/nacre.1", "It is in use by somebody.\n"),
    ("sentence", "README.md", "Who waits for it runs it.\n"),
    ("sentence", "README.md", "It is there. Whoever asks gets it.\n"),
    ("sentence", "tools/a.h", CODE + "// Of what the model says, a part.\n"),
    ("sentence", "tools/a.cpp", CODE + 'const char* text = "Who can open a volume";\n'),
    ("width", "README.md", "x " * 51 + "\n"),
    ("width", "docs/man/nacre.1", "x " * 51 + "\n"),
    ("head", "tools/a.cpp", CODE + "// See a.h.\n"),
]


def breaches(tree):
    with tempfile.TemporaryDirectory() as root:
        for name, text in tree.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        result = subprocess.run([sys.executable, "-B", WORDS, root], capture_output=True, text=True,
                                check=False)
    return result.returncode, [line for line in result.stdout.splitlines()
                               if not line.startswith("words:")]


def main():
    failed = 0
    status, lines = breaches(CLEAN)
    if status != 0 or lines:
        failed += 1
        print(f"the clean tree is blamed ({status}): {lines}")
    for rule, name, text in BREACHES:
        status, lines = breaches({**CLEAN, name: text})
        if status != 1 or len(lines) != 1 or not (
                lines[0].startswith(name + ":") and f": {rule}: " in lines[0]):
            failed += 1
            print(f"not seen, or more than it: {rule} in {name}: {text!r}: {lines}")
    status, _ = breaches({"tests/fs/a.cpp": CODE})
    if status == 0:
        failed += 1
        print("a tree without any text to check is called clean")
    print(f"{len(BREACHES) + 2} trees, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
