#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the JSON of `nacre bench`: which rows there are, that every figure is one, and the ratios
against sizes that are computed here. Called by bench_commands.sh with its folder."""
import json
import math
import os
import platform
import sys
import zlib

WORK = sys.argv[1]
PROBLEMS = []
FIELDS = {"family", "operation", "chunk_size_bytes", "thread_count", "by", "kind", "note", "built_in",
          "unit", "per_second", "per_second_lowest", "per_second_highest", "per_cpu_second", "ratio",
          "against_library"}
SUITES = [f"aes-{bits}-{mode}" for bits in (256, 192, 128) for mode in ("gcm", "ctr+hmac", "cbc+hmac")]
SUITES += ["des-ede3-cbc+hmac", "des-cbc+hmac"]
BLOCKS = [f"{cipher}-{mode}" for cipher in ("aes-128", "aes-192", "aes-256", "des", "des-ede3")
          for mode in ("ecb", "cbc", "ofb", "ctr")]
CODECS = ["lz77", "lz77-9", "zstd", "rle", "huffman", "gdeflate-1", "gdeflate-6", "gdeflate-9", "lzw"]
SEALED = ["none", "lz77", "zstd", "gdeflate-1", "rle", "huffman", "lzw", "auto-1", "auto"]
EXPECTED = {
    "codecs": [f"{codec} {way}" for codec in CODECS for way in ("encode", "decode")] + ["auto encode"],
    "ciphers": [f"{suite} {way}" for suite in SUITES for way in ("encrypt", "decrypt")]
    + [f"{block} encrypt" for block in BLOCKS]
    + [f"{block} decrypt" for block in BLOCKS if block.endswith(("ecb", "cbc"))],
    "checksum": ["crc32", "crc32c"],
    "rsa": [f"rsa-{bits} {what}" for bits in (1024, 2048, 3072, 4096)
            for what in ("public", "private", "wrap", "unwrap")]
    + [f"rsa-{bits} make a key" for bits in (1024, 2048, 3072)],
    "seal": [f"{way} {codec}" for codec in SEALED for way in ("seal", "unseal", "reseal")],
}
# An operation, and a library that its rows must name (built in or not).
LIBRARIES = [("codecs", "lz77 encode", "liblz4"), ("codecs", "zstd decode", "libzstd"),
             ("codecs", "rle encode", "libtiff"), ("codecs", "lzw decode", "libtiff"),
             ("codecs", "huffman encode", "zlib"), ("codecs", "gdeflate-6 encode", "libdeflate"),
             ("ciphers", "aes-256-gcm encrypt", "OpenSSL"), ("ciphers", "des-cbc decrypt", "OpenSSL"),
             ("checksum", "crc32", "ISA-L"), ("checksum", "crc32", "zlib"), ("checksum", "crc32", "memcpy"),
             ("rsa", "rsa-3072 unwrap", "OpenSSL"), ("seal", "unseal lz77", "its parts")]
with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
    if platform.machine() == "x86_64" and " aes " in cpuinfo.read():
        LIBRARIES.append(("ciphers", "aes-256-gcm encrypt", "libipsec-mb"))


def check(holds, what):
    if not holds:
        PROBLEMS.append(what)


def load(name):
    def refuse(constant):
        PROBLEMS.append(f"{name}: {constant} is no number")
    with open(os.path.join(WORK, name), encoding="utf-8") as f:
        return json.load(f, parse_constant=refuse)


def check_row(where, row):
    check(set(row) == FIELDS, f"{where}: its fields are {sorted(row)}")
    check(row["kind"] in ("backend", "library"), f"{where}: kind {row['kind']}")
    check(row["built_in"] or row["kind"] == "library", f"{where}: a backend that is not there")
    rates = [row[name] for name in ("per_second_lowest", "per_second", "per_second_highest", "per_cpu_second")]
    if row["built_in"]:
        check(all(isinstance(rate, float) and math.isfinite(rate) and rate > 0 for rate in rates),
              f"{where}: rates {rates}")
        check(rates[0] <= rates[1] <= rates[2], f"{where}: rates {rates}")
    else:
        check(rates == [None] * 4, f"{where}: rates of what is not built in")
    packs = row["family"] == "codecs" and row["operation"].endswith("encode") \
        or row["operation"].startswith("seal")
    check((row["ratio"] is not None) == (packs and row["built_in"]), f"{where}: ratio {row['ratio']}")


def check_family(name, sizes, threads):
    whole = load(f"{name}.json")
    check(whole["schema"] == "nacre bench 1", f"{name}: schema {whole.get('schema')}")
    check(whole["data"]["bytes"] == whole["data"]["total_bytes"] == DATA_BYTES, f"{name}: {whole['data']}")
    check(not whole["data"]["generated"], f"{name}: generated")
    rows = whole["rows"]
    seen = {}
    for row in rows:
        key = (row["operation"], row["chunk_size_bytes"], row["thread_count"])
        check(row["family"] == name, f"{name}: a row of {row['family']}")
        check_row(" ".join(map(str, key)) + " " + row["by"], row)
        seen.setdefault(key, []).append(row)
    if name == "rsa":
        wanted = {(op, int(op[4:8]) // 8, t) for op in EXPECTED[name] for t in threads}
    else:
        wanted = {(op, size, t) for op in EXPECTED[name] for size in sizes for t in threads}
    check(set(seen) == wanted, f"{name}: rows differ: {sorted(set(seen) ^ wanted)[:6]}")
    for key, group in seen.items():
        check([row["by"] for row in group if row["kind"] == "backend"] == ["cpu"], f"{key}: backends")
        libraries = [row for row in group if row["kind"] == "library" and row["built_in"]]
        for row in group:
            measured = bool(libraries) and row is not libraries[0] and row["built_in"]
            check((row["against_library"] is not None) == measured, f"{key} {row['by']}: against_library")
    for family, operation, library in LIBRARIES:
        if family == name:
            check(all(any(row["by"].startswith(library) for row in group)
                      for key, group in seen.items() if key[0] == operation), f"{operation}: no {library}")


def ratio_of(rows, operation, size, by):
    found = {row["ratio"] for row in rows if row["operation"] == operation and row["chunk_size_bytes"] == size
             and row["by"].startswith(by) and row["built_in"]}
    check(len(found) <= 1, f"{operation} {by}: {len(found)} ratios")
    return next(iter(found), None)


def packbits_size(data):
    """The fewest bytes that PackBits needs, by trying all ways."""
    best = [0] + [1 << 30] * len(data)
    run = 1
    for end in range(1, len(data) + 1):
        run = run + 1 if end > 1 and data[end - 1] == data[end - 2] else 1
        for length in range(2, min(run, 128) + 1):
            best[end] = min(best[end], best[end - length] + 2)
        for length in range(1, min(end, 128) + 1):
            best[end] = min(best[end], best[end - length] + 1 + length)
    return best[-1]


def check_ratios(contents):
    """What does not compress has a known size; zlib and PackBits are computed; the rest is bounded."""
    rows = load("codecs.json")["rows"] + load("seal.json")["rows"]
    total = sum(map(len, contents))
    size = 65536
    chunks = [c[at:at + size] for c in contents for at in range(0, len(c), size)]
    deflated = 0
    for chunk in chunks:
        packer = zlib.compressobj(-1, zlib.DEFLATED, -15, 9, zlib.Z_HUFFMAN_ONLY)
        deflated += len(packer.compress(chunk) + packer.flush())
    got = ratio_of(rows, "huffman encode", size, "zlib")
    check(got is None or abs(got - total / deflated) < 1e-9, f"zlib's ratio is {got}, not {total / deflated}")
    # A record's frame is 40 + 44 + 16 bytes where nothing is compressed.
    got = ratio_of(rows, "seal none", size, "cpu")
    check(abs(got - total / (total + 100 * len(chunks))) < 1e-9, f"seal none: {got}")
    # PackBits: a word, a table, and pieces of 4 KiB; raw where that is longer.
    packed = 0
    for chunk in chunks:
        pieces = [chunk[at:at + 4096] for at in range(0, len(chunk), 4096)]
        best = sum(packbits_size(piece) for piece in pieces) + 2 * len(pieces)
        packed += 4 + min(best, len(chunk))
    got = ratio_of(rows, "rle encode", size, "cpu")
    check(total / packed * 0.995 <= got <= total / packed + 1e-9, f"rle: {got}, the best is {total / packed}")
    ours, theirs = ratio_of(rows, "lz77 encode", size, "cpu"), ratio_of(rows, "lz77 encode", size, "liblz4")
    check(0.99 < ours / theirs < 1.1, f"lz77 {ours} against liblz4's {theirs}")


DATA = [os.path.join(root, name) for root, _, names in os.walk(os.path.join(WORK, "data")) for name in names
        if not os.path.islink(os.path.join(root, name))]
CONTENTS = []
for path in DATA:
    with open(path, "rb") as data_file:
        CONTENTS.append(data_file.read())
DATA_BYTES = sum(map(len, CONTENTS))

for family_name in EXPECTED:
    check_family(family_name, (4096, 65536), (1,) if family_name == "rsa" else (1, 2))
check_ratios(CONTENTS)
check(load("only.json")["rows"][0]["operation"] == "crc32", "--json -: not the rows")
check(load("numbers.json")["data"]["path"].endswith("/numbers"), "the data's path")
for problem in PROBLEMS[:20]:
    print(problem)
sys.exit(1 if PROBLEMS else 0)
