# SPDX-License-Identifier: Apache-2.0
"""Markdown, as far as our documents use it, to mdoc(7) with tbl(7): headings, paragraphs, lists,
fenced blocks, tables; bold, italic, code and links within lines."""
import re


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def inline(text):
    """Code spans first: nothing within them counts."""
    parts = re.split(r"(`[^`]+`)", text)
    out = []
    for part in parts:
        if len(part) > 2 and part[0] == part[-1] == "`":
            out.append("\\fB" + escape(part[1:-1]).removeprefix("\\&") + "\\fR")
            continue
        part = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", part)
        part = escape(part).removeprefix("\\&") if out else escape(part)
        part = re.sub(r"\*\*([^*]+)\*\*", r"\\fB\1\\fR", part)
        part = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"\\fI\1\\fR", part)
        out.append(part)
    # roff wants sentences on lines of their own.
    whole = re.sub(r"(?<=[\w)\]´])([.?!]) (?=\S)", r"\1\n", "".join(out))
    return "\\&" + whole if whole[:1] in (".", "'") else whole


def cells(line):
    line = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]


def table(rows):
    header, body = cells(rows[0]), [cells(row) for row in rows[2:]]
    count = len(header)
    wide = [max((len(row[i]) for row in [header] + body if i < len(row)), default=0) > 16
            for i in range(count)]
    if not any(wide):
        wide[-1] = True
    out = [".TS", "allbox tab(@);", " ".join("lx" if one else "l" for one in wide) + "."]
    shown = [header] if any(header) else []
    for row in shown + body:
        row = (row + [""] * count)[:count]
        line = []
        for cell, is_wide in zip(row, wide):
            cell = inline(cell).replace("@", "\\(at")
            line.append(f"T{{\n{cell}\nT}}" if is_wide and cell else cell)
        out.append("@".join(line))
    return out + [".TE"]


def convert(text):
    """The lines of the page's body; the first heading, the title, is left out."""
    out, lines, index, at_start = [], text.splitlines(), 0, True

    def paragraph():
        if not at_start:
            out.append(".Pp")

    while index < len(lines):
        line = lines[index]
        heading = re.match(r"(#+) (.*)", line)
        if heading:
            if len(heading.group(1)) > 1:
                section = len(heading.group(1)) == 2
                title = inline(heading.group(2))
                out.append((".Sh " + title.upper()) if section else (".Ss " + title))
                at_start = True
            index += 1
        elif line.startswith("```"):
            end = next(i for i in range(index + 1, len(lines)) if lines[i].startswith("```"))
            paragraph()
            out += [".Bd -literal"] + [escape(one) for one in lines[index + 1:end]] + [".Ed"]
            index, at_start = end + 1, False
        elif line.startswith("|"):
            end = index
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            paragraph()
            out += table(lines[index:end])
            index, at_start = end, False
        elif re.match(r"\s*([*-]|\d+\.) ", line):
            out.append(".Bl -bullet -compact" if re.match(r"\s*[*-] ", line) else ".Bl -enum -compact")
            while index < len(lines) and lines[index].strip():
                item = re.match(r"\s*(?:[*-]|\d+\.) (.*)", lines[index])
                if item:
                    out.append(".It")
                out.append(inline(item.group(1) if item else lines[index].strip()))
                index += 1
            out.append(".El")
            at_start = False
        elif line.strip():
            paragraph()
            at_start = False
            words = []
            while index < len(lines) and lines[index].strip() and not re.match(
                    r"(#|```|\||\s*[*-] )", lines[index]):
                words.append(lines[index].strip())
                index += 1
            # Emphasis may go over the ends of lines.
            out += [one if one[:1] not in (".", "'") else "\\&" + one
                    for one in inline("\n".join(words)).splitlines()]
        else:
            index += 1
    return out
