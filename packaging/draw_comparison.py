#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the table "What it costs" of docs/COMPARISON.md: the cost of each step against gocryptfs, as SVG.

    draw_comparison.py COMPARISON.md >comparison.svg
    draw_comparison.py COMPARISON.md comparison.svg     fails if the drawing is not of the table
"""
import math
import re
import sys

BARS = [("securefs", "#9aa7b4"), ("Nacre", "#1f6f8b")]
LEFT, UNIT, BAR, GAP, TOP = 250, 90, 11, 12, 46
LOWEST, HIGHEST = -4, 1  # of the axis, as powers of two


def read_costs(path):
    """[(step, {name: cost})], 1 being gocryptfs'."""
    rows, columns = [], None
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip(" *\n") for cell in line.split("|")[1:-1]]
            if "gocryptfs 2.3" in cells:
                columns = cells
            elif columns and not cells:
                break
            elif columns and not re.match(r"-+$", cells[0]) and not cells[0].startswith("stored"):
                value = {name: float(cell.replace(",", "")) for name, cell in zip(columns[1:-1], cells[1:-1])}
                # Operations a second, unlike seconds, are better when they are more.
                is_rate = "random" in cells[0]
                base = value["gocryptfs 2.3"]
                costs = {name: base / value[name] if is_rate else value[name] / base for name, _ in BARS}
                costs["Nacre"] = float(cells[-1])  # the median of the rounds' ratios
                rows.append((cells[0], costs))
    return rows


def text(x, y, words, anchor="start", size=12):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{words}</text>'


def draw(rows):
    def place(cost):
        return LEFT + (max(LOWEST, min(HIGHEST, math.log2(cost))) - LOWEST) * UNIT

    bottom = TOP + len(rows) * (len(BARS) * BAR + GAP)
    width, height = LEFT + (HIGHEST - LOWEST) * UNIT + 60, bottom + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
           '<title>Cost of each step, gocryptfs being 1</title>',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           text(LEFT, 16, "Cost of the same work, gocryptfs being 1: further left is cheaper")]
    x = LEFT
    for name, colour in BARS:
        out += [f'<rect x="{x}" y="24" width="11" height="11" fill="{colour}"/>', text(x + 16, 34, name)]
        x += 90
    for power in range(LOWEST, HIGHEST + 1):
        at = LEFT + (power - LOWEST) * UNIT
        out += [f'<line x1="{at}" y1="{TOP - 4}" x2="{at}" y2="{bottom}" stroke="{"#000000" if power == 0 else "#d0d0d0"}"/>',
                text(at, bottom + 14, f"{2.0 ** power:g}", "middle", 11)]
    y = TOP
    for step, costs in rows:
        out.append(text(LEFT - 8, y + BAR + 4, step, "end"))
        for name, colour in BARS:
            one, end = place(1), place(costs[name])
            out += [f'<rect x="{min(one, end):.1f}" y="{y}" width="{abs(end - one):.1f}" height="{BAR - 1}" '
                    f'fill="{colour}"/>',
                    text(end + (3 if end > one else -3), y + BAR - 2, f"{costs[name]:.2f}",
                         "start" if end > one else "end", 9)]
            y += BAR
        y += GAP
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    rows = read_costs(sys.argv[1])
    if not rows:
        sys.exit(f"{sys.argv[1]} has no table of costs")
    if len(sys.argv) == 2:
        sys.stdout.write(draw(rows))
        return
    with open(sys.argv[2], encoding="utf-8") as file:
        if file.read() != draw(rows):
            sys.exit(f"{sys.argv[2]} is not of the table in {sys.argv[1]}: draw it again")


if __name__ == "__main__":
    main()
