#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what `nacre bench seeds` wrote without a device: which tables there are, that published figures
are the papers', and that just the device's columns are empty. Called by bench_seeds.sh with its folder."""
import json
import os
import sys

WORK = sys.argv[1]
PROBLEMS = []
SIZE_MAX = 100 << 10
TABLES = {
    "000": ["000_section_5", "000_figures_4_5", "000_batches"],
    "001": ["001_figure_8", "001_steps"],
    "002": ["002_table_1", "002_table_2", "002_figure_1", "002_figure_4", "002_figure_5", "002_figure_6",
            "002_figure_7", "002_authenticated"],
    "003": [f"003_{name}_{way}" for name in ("figure_8", "figure_9", "aes-192", "aes-256", "figure_10", "rsa_2048")
            for way in ("encryption", "decryption")] + ["003_figure_11"]
    + [f"003_figure_{number}_{way}" for number in (13, 14, 15, 16) for way in ("compression", "decompression")],
}
# A table, its first cells in a row, a published column, what the paper prints there (base units).
PUBLISHED = [
    ("000_section_5", ["Parallel 3: half-block reduction", 2097152], "overall", 0.8e-3),
    ("000_section_5", ["Parallel 2: reduction", 65536], "speed-up with transfer", 4.9),
    ("000_figures_4_5", ["crc32kernel"], "first reduction", 674.5e-6),
    ("002_table_2", ["quad table, shared memory"], "highest with transfer", 6914e6),
    ("002_figure_4", [16], "overhead of the payload", 45),
    ("003_figure_8_encryption", ["primeV7.in"], "CPU", 3.73 * 60),
    ("003_figure_9_decryption", ["stillife.exr"], "GPU by CPU", 7.43),
    ("003_figure_10_decryption", ["primeV7.in"], "CPU", 1.48 * 86400),
    ("003_figure_11", [1024], "GPU", 19.51 * 60),
    ("003_figure_13_compression", ["test5.txt"], "GPU", 55e-3),
    ("003_figure_16_compression", ["test2.txt"], "GPU", 1.13),
]


def check(holds, what):
    if not holds:
        PROBLEMS.append(what)


def load(name):
    with open(os.path.join(WORK, name), encoding="utf-8") as f:
        return json.load(f)


def columns_of(table, title, published):
    return [i for i, column in enumerate(table["columns"])
            if column["title"] == title and column["published"] == published]


def check_row(table, row):
    """Without a device its columns are empty; what is small enough is measured otherwise."""
    where = f"{table['name']}: {row[:3]}"
    check(len(row) == len(table["columns"]), f"{where}: {len(row)} cells")
    for column, value in zip(table["columns"], row):
        title = column["title"]
        if "GPU" in title and not column["published"]:
            check(value is None, f"{where}: {title} without a device")
        if column["unit"] not in ("text",) and value is not None:
            check(isinstance(value, (int, float)) and value >= 0, f"{where}: {title} is {value}")
    sizes = [row[i] for title in ("size", "data", "in all") for i in columns_of(table, title, False)]
    if not sizes:
        return
    for title in ("plain code", "plain code (tables), one thread", "library, one thread", "Sarwate"):
        for i in columns_of(table, title, False):
            # An authenticated mode or a codec may lack one of them in this build.
            if title.startswith(("plain", "Sarwate")) or "cipher" in table["title"]:
                check((row[i] is not None and row[i] > 0) == (sizes[0] <= SIZE_MAX), f"{where}: {title} {row[i]}")


WHOLE = load("seeds.json")
check(WHOLE["schema"] == "nacre bench seeds 1" and WHOLE["note"] == "a note", f"{WHOLE['schema']} {WHOLE['note']}")
BY_NAME = {table["name"]: table for table in WHOLE["tables"]}
check([table["name"] for table in WHOLE["tables"]] == sum(TABLES.values(), []),
      f"tables: {sorted(set(BY_NAME) ^ set(sum(TABLES.values(), [])))}")
for each in WHOLE["tables"]:
    check(each["rows"], f"{each['name']} has no row")
    for each_row in each["rows"]:
        check_row(each, each_row)
for name, first, title, number in PUBLISHED:
    found = [row for row in BY_NAME[name]["rows"] if row[:len(first)] == first]
    check(found, f"{name}: no row {first}")
    for row in found:
        value = row[columns_of(BY_NAME[name], title, True)[0]]
        check(value is not None and abs(value - number) <= 1e-9 * number, f"{name} {first}: {title} is {value}")
measured = [row for row in BY_NAME["000_section_5"]["rows"] if row[0].startswith("Sarwate")]
check([row[7] is not None for row in measured] == [True, True, False], f"Sarwate: {measured}")
with open(os.path.join(WORK, "SEEDS.md"), encoding="utf-8") as document:
    TEXT = document.read()
for each in WHOLE["tables"]:
    check(f"### {each['title']}\n" in TEXT, f"{each['title']} is not in the document")
    check(os.path.exists(os.path.join(WORK, "figures", each["name"] + ".dat")), f"{each['name']}.dat")
check("(figures/003_figure_8_encryption.gp)" in TEXT, "no link to a figure")
with open(os.path.join(WORK, "figures", "003_figure_13_compression.dat"), encoding="utf-8") as data:
    # Not of the sizes' line, so an empty line goes before it.
    check('\n\n"4,096 files' in data.read(), "the batch's row is on the line of the figure")
check("a note" in TEXT and "no CUDA device" in TEXT, "the document does not say what ran where")
check([table["name"] for table in load("only.json")["tables"]] == TABLES["000"], "--only 000 --json -")
PAYLOADS = {table["name"]: table["rows"] for table in load("payloads.json")["tables"]}
check([row[0][:2] for row in PAYLOADS["002_figure_7"]] == [f"{number}:" for number in range(1, 8)]
      and all(row[1] and row[2] and row[3] is None for row in PAYLOADS["002_figure_7"]), PAYLOADS["002_figure_7"])
check(PAYLOADS["002_authenticated"][0][3], PAYLOADS["002_authenticated"])
for problem in PROBLEMS[:20]:
    print(problem)
sys.exit(1 if PROBLEMS else 0)
