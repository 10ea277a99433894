#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges what `nacre-papers` wrote without a device: which tables there are, that published figures
are the papers', that every contender, speed-up and crossover has its place, and that just the device's are
empty. Called by papers.sh with its folder."""
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
KERNELS, COPIES = "GPU kernels", "GPU with copies"
LIBRARY = ["library, one thread", "library, all threads"]
PLAIN = ["plain code, one thread"]
TABLES_OF_WORDS = ["plain code (tables), one thread", "plain code (tables), all threads"]
SARWATE = ["Sarwate, one thread", "Sarwate, all threads"]
BLOCKS = [f"messages of {blocks} blocks" for blocks in ("16", "128", "512", "2,048", "16,384")]
# Of a table: who of the processor has a column, beside the device's two; by whom the device's speed-ups are;
# the groups of which crossovers are told.
COMPARED = {
    "000_batches": (SARWATE + LIBRARY, [SARWATE[0], LIBRARY[1]],
                    [f"messages of {size}" for size in ("16 KiB", "64 KiB", "2 MiB")]),
    "001_figure_8": (TABLES_OF_WORDS + LIBRARY, TABLES_OF_WORDS + LIBRARY[1:], [""]),
    "002_figure_1": (TABLES_OF_WORDS + LIBRARY, TABLES_OF_WORDS[:1] + LIBRARY, [""]),
    "002_figure_4": (TABLES_OF_WORDS + LIBRARY, [TABLES_OF_WORDS[0], LIBRARY[1]], BLOCKS[:1] + BLOCKS[2:]),
    "002_figure_5": (TABLES_OF_WORDS + LIBRARY, TABLES_OF_WORDS + LIBRARY[1:], BLOCKS),
    "002_figure_7": (TABLES_OF_WORDS + LIBRARY, [TABLES_OF_WORDS[0], LIBRARY[1]], []),
    "002_authenticated": (LIBRARY, LIBRARY, BLOCKS[0::2]),
    "003_figure_11": (PLAIN + LIBRARY, PLAIN + LIBRARY, ["1,024 bits", "2,048 bits"]),
    **{name: (PLAIN + LIBRARY, PLAIN + LIBRARY[1:], [""] if "figure_10" in name or "rsa" in name else ["", "small files"])
       for name in TABLES["003"] if name != "003_figure_11"},
}
# Tables whose rows are the contenders.
CONTENDER_ROWS = {
    "000_section_5": SARWATE[:1] + LIBRARY + ["Nacre on the GPU"],
    "001_steps": TABLES_OF_WORDS + LIBRARY + ["Nacre on the GPU"],
    "002_table_2": TABLES_OF_WORDS + LIBRARY + ["Nacre on the GPU"],
}
SPEEDUPS = {
    "000_section_5": ["speed-up", "speed-up with copies"],
    "001_steps": [f"{way} with copies by {TABLES_OF_WORDS[1]}" for way in ("encryption", "decryption")],
    "002_table_2": [f"{way} copies by {other}" for way in ("without", "with")
                    for other in (TABLES_OF_WORDS[0], LIBRARY[1])],
}
# A codec's library may not be built in.
OPTIONAL_LIBRARY = tuple(f"003_figure_{number}_" for number in (13, 14, 15, 16))
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
    ("003_figure_11", [1024, 1], "GPU", 19.51 * 60),
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
    if table["name"] in CONTENDER_ROWS and row[0] not in SARWATE + TABLES_OF_WORDS + LIBRARY:
        check(all(value is None for column, value in zip(table["columns"][3:], row[3:]) if not column["published"]),
              f"{where}: measured without a device")
    sizes = [row[i] for title in ("size", "data", "in all", "input") for i in columns_of(table, title, False)]
    is_taken = not sizes or sizes[0] <= SIZE_MAX
    for title in COMPARED.get(table["name"], ([], [], []))[0]:
        if title in LIBRARY and table["name"].startswith(OPTIONAL_LIBRARY):
            continue
        for i in columns_of(table, title, False):
            check((row[i] is not None and row[i] > 0) == is_taken or table["name"] == "002_figure_7",
                  f"{where}: {title} {row[i]}")


def crossover(group, shown):
    others = "; ".join(f"{title}, not measured" for title in shown)
    return f"Crossover{' of ' if group else ''}{group}, the GPU with copies ahead of: {others}."


def check_comparison(table):
    """Every contender, speed-up and crossover has its place."""
    name = table["name"]
    titles = [column["title"] for column in table["columns"] if not column["published"]]
    shown, beaten, groups = COMPARED.get(name, ([], [], []))
    device = ["one key, kernels", "one key with copies"] if name == "002_figure_4" else [KERNELS, COPIES]
    wanted = SPEEDUPS.get(name, [])
    if name in COMPARED:
        wanted = shown + device + [f"{ours} by {other}" for other in beaten for ours in (KERNELS, COPIES)]
    notes = [crossover(group, shown) for group in groups]
    if name == "000_section_5":
        notes = [crossover("", SARWATE[:1] + LIBRARY)]
    check(not set(wanted) - set(titles), f"{name}: no column {set(wanted) - set(titles)}")
    check([note for note in table["notes"] if note.startswith("Crossover")] == notes, f"{name}: {table['notes']}")
    check(name not in COMPARED or sum(note.startswith("The library is ") for note in table["notes"]) == 1,
          f"{name} does not say which library")
    labels = [row[0] for row in table["rows"]]
    for label in CONTENDER_ROWS.get(name, []):
        check(labels.count(label) == (3 if name == "000_section_5" else 1), f"{name}: rows of {label}")


def check_figure(table):
    """A script, and whatever it shows is in the table's own file of data."""
    with open(os.path.join(WORK, "figures", table["name"] + ".gp"), encoding="utf-8") as script:
        text = script.read()
    check(f"set output '{table['name']}.svg'" in text and f"'{table['name']}.dat'" in text and "title" in text,
          f"{table['name']}.gp: {text}")
    # One image was there before.
    kinds = ("svg", "gp", "dat") if table["name"] == "002_figure_1" else ("gp", "dat")
    links = ", ".join(f"[{kind}](figures/{table['name']}.{kind})" for kind in kinds)
    check(f"* Figure: {links}\n" in TEXT, f"{table['name']}: the links to its figure")


WHOLE = load("seeds.json")
check(WHOLE["schema"] == "nacre-papers 1" and WHOLE["note"] == "a note", f"{WHOLE['schema']} {WHOLE['note']}")
BY_NAME = {table["name"]: table for table in WHOLE["tables"]}
check([table["name"] for table in WHOLE["tables"]] == sum(TABLES.values(), []),
      f"tables: {sorted(set(BY_NAME) ^ set(sum(TABLES.values(), [])))}")
for each in WHOLE["tables"]:
    check(each["rows"], f"{each['name']} has no row")
    check_comparison(each)
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
    check_figure(each)
with open(os.path.join(WORK, "figures", "003_figure_13_compression.dat"), encoding="utf-8") as data:
    # Not of the sizes' line, so an empty line goes before it.
    check('\n\n"16 files' in data.read(), "the batch's row is on the line of the figure")
check("a note" in TEXT and "no CUDA device" in TEXT, "the document does not say what ran where")
check([table["name"] for table in load("only.json")["tables"]] == TABLES["000"], "--only 000 --json -")
PAYLOADS = {table["name"]: table for table in load("payloads.json")["tables"]}
ORDERS = PAYLOADS["002_figure_7"]
check([row[0][:2] for row in ORDERS["rows"]] == [f"{number}:" for number in range(1, 8)], ORDERS["rows"])
for each_row in ORDERS["rows"]:
    for each, value in zip(ORDERS["columns"][1:], each_row[1:]):
        check((value is None) == ("GPU" in each["title"]), f"{each_row[0]}: {each['title']} is {value}")
check(PAYLOADS["002_authenticated"]["rows"][0][3], PAYLOADS["002_authenticated"])
for problem in PROBLEMS[:20]:
    print(problem)
sys.exit(1 if PROBLEMS else 0)
