#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of peerbench.sh: medians, ratios and spreads of what it noted, as Markdown or JSON.

    peer_table.py VALUES ABOUT [--json FILE]    FILE is "-": JSON to standard output, and no table
    peer_table.py --rate-of FILE                operations a second from fio's JSON

VALUES has lines of round, file system, step and value, ABOUT of name and text, with tabs between.
A value is "failed" where a step failed. Exit status: 0 all good, 1 a step failed or bytes differed.
"""
import json
import re
import statistics
import sys

SECONDS, RATE, SHARE = "s", "1/s", "stored bytes a byte"
STEPS = {
    "big_write": SECONDS, "big_read": SECONDS, "inc_write": SECONDS, "inc_read": SECONDS,
    "untar": SECONDS, "list": SECONDS, "read_all": SECONDS, "remove": SECONDS,
    "random_read": RATE, "random_write": RATE,
    "stored_big": SHARE, "stored_inc": SHARE, "stored_tree": SHARE,
}


def read_values(path):
    """({step: {file system: {round: value}}}, comparisons made, that differed, [(file system, step)] failed)."""
    steps, compared, differed, failed = {}, 0, 0, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            round_number, name, step, value = line.rstrip("\n").split("\t")
            if step == "compared":
                compared += 1
                differed += int(value)
            elif value == "failed":
                failed.append((name, step))
            else:
                steps.setdefault(step, {}).setdefault(name, {})[int(round_number)] = float(value)
    return {step: steps[step] for step in STEPS if step in steps}, compared, differed, failed


def read_about(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("\t", 1) for line in file)


def median(values):
    return statistics.median(values.values())


def spread(values):
    """(largest - smallest) / median; None where the median is 0."""
    middle = median(values)
    return (max(values.values()) - min(values.values())) / middle if middle else None


def cost(step, mine, theirs):
    """How dear mine is, theirs being 1: below 1 is better. None where it would be a division by 0."""
    upper, lower = (theirs, mine) if STEPS[step] == RATE else (mine, theirs)
    return upper / lower if lower else None


def median_cost(step, mine, theirs):
    """The median of the costs of the rounds that both have."""
    costs = [cost(step, mine[number], theirs[number]) for number in mine.keys() & theirs.keys()]
    costs = [value for value in costs if value is not None]
    return statistics.median(costs) if costs else None


def best_peer(step, of_step, peers):
    there = [name for name in peers if name in of_step]
    if not there:
        return None
    choose = max if STEPS[step] == RATE else min
    return choose(there, key=lambda name: median(of_step[name]))


def summarise(steps, about):
    """What the tables and the JSON show of each step and file system."""
    peers, reference = about["peers"].split(), about["reference"]
    rows = []
    for step, of_step in steps.items():
        best = best_peer(step, of_step, peers)
        row = {"step": step, "unit": STEPS[step], "best_peer": best, "systems": {}}
        for name, values in of_step.items():
            times = cost(step, median(of_step[best]), median(values)) if best else None
            row["systems"][name] = {
                "rounds": [values[number] for number in sorted(values)],
                "median": median(values),
                "spread": spread(values),
                "times_as_good_as_best_peer": times,
                "cost_beside_reference": median_cost(step, values, of_step[reference])
                if reference in of_step else None,
            }
        rows.append(row)
    return rows


def number(value, digits=3):
    if value is None:
        return "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 1:
        return f"{value:.{digits}f}"
    return f"{value:.{max(0, digits - len(str(int(abs(value)))))}f}"


def print_table(head, rows):
    widths = [max(len(line[i]) for line in [head] + rows) for i in range(len(head))]
    for line in [head, ["-" * width for width in widths]] + rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
    print()


def print_text(rows, about, names):
    peers, controls = about["peers"].split(), about["controls"].split()
    ours = [name for name in names if name not in peers + controls]
    reference = about["reference"]
    versions = {name: re.sub(r"[-+~].*", "", about.get("version " + name, "")) for name in names}
    titles = [about["disk"] if name == "native" else f"{name} {versions[name]}".strip() for name in names]
    print(f"{about['date']}, checkout {about['checkout']}: {about['processor']}, kernel {about['kernel']}, "
          f"{about['disk']}, FUSE over io_uring {'allowed' if about['io_uring'] == 'Y' else 'off'}, "
          f"load {about['load']} at the start, as {about['user']}.")
    print(f"big: {int(about['big_bytes']):,} bytes; inc: {int(about['inc_bytes']):,}; "
          f"{int(about['file_count']):,} small files of {int(about['tree_bytes']):,} bytes in all.")
    if about["cold"] != "yes":
        print("The kernel's caches were kept: nothing here was read cold.")
    print(f"\nMedians; rounds in turns: {about['rounds']}. Units: seconds, operations a second of random_*, "
          "stored bytes for each written of stored_*.\n")

    def cell(row, name, key, show=number):
        return show(row["systems"][name][key]) if name in row["systems"] else "–"

    def percent(value):
        return "–" if value is None else f"{100 * value:.0f} %"

    print_table(["step"] + titles, [[row["step"]] + [cell(row, name, "median") for name in names] for row in rows])
    if ours and any(row["best_peer"] for row in rows):
        print(f"× as good as the best peer's median; cost against {reference}, the median of the rounds' ratios "
              "(below 1 is cheaper). Trust none that is closer to 1 than the spreads.\n")
        head = ["step", "best peer"]
        for name in ours:
            head += [f"{name}: × as good", f"cost against {reference}"]
        print_table(head, [[row["step"], row["best_peer"] or "–"] + [
            cell(row, name, key) for name in ours
            for key in ("times_as_good_as_best_peer", "cost_beside_reference")] for row in rows])
    print("Spread, (largest − smallest) / median.\n")
    print_table(["step"] + titles,
                [[row["step"]] + [cell(row, name, "spread", percent) for name in names] for row in rows])


def rate_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    job = json.loads(text[text.index("{"):])["jobs"][0]
    return job["read"]["iops"] + job["write"]["iops"]


def main():
    if sys.argv[1] == "--rate-of":
        print(f"{rate_of(sys.argv[2]):.1f}")
        return
    steps, compared, differed, failed = read_values(sys.argv[1])
    about = read_about(sys.argv[2])
    rows = summarise(steps, about)
    target = sys.argv[4] if len(sys.argv) > 4 else None
    if target != "-":
        names = list(dict.fromkeys(name for of_step in steps.values() for name in of_step))
        print_text(rows, about, sorted(names, key=lambda name: name != "native"))
        print(f"Read back and compared: {compared} times, {differed} differed.")
        for name, step in failed:
            print(f"FAILED: {name}, {step}")
    if target:
        document = {"schema": "nacre peerbench 1", "about": about, "rows": rows, "compared": compared,
                    "differed": differed, "failed": [list(pair) for pair in failed]}
        text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
        if target == "-":
            sys.stdout.write(text)
        else:
            with open(target, "w", encoding="utf-8") as file:
                file.write(text)
    sys.exit(1 if differed or failed else 0)


if __name__ == "__main__":
    main()
