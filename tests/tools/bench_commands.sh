#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre bench: every family runs on a small folder, says what it should, and its ratios are those that
# the libraries' own programs and the sizes of real streams give. No figure of speed is judged.
. "$(dirname "$0")/command_harness.sh"
export NACRE_READY_KEYS_REPEATED=1

# --- What it refuses.
expect 2 'frob cannot be measured; there are all, codecs, ciphers, checksum, rsa, seal[.]' nacre bench frob
expect 2 "threads 0: '0' is not a number from 1" nacre bench checksum --threads 0
expect 2 "threads 1,x: 'x' is not a number" nacre bench checksum --threads 1,x
expect 2 'chunk-size.*not a size' nacre bench checksum --chunk-size 64KB
expect 2 'chunk-size 2M: a chunk has' nacre bench seal --chunk-size 2M
expect 2 'chunk-size 2G: a chunk has' nacre bench checksum --chunk-size 2G
expect 2 'payload 100: a payload has' nacre bench checksum --payload 100
expect 2 'payload.*not a size' nacre bench checksum --payload 1M,x
expect 2 'chunk-size 100: a chunk has' nacre bench checksum --chunk-size 100
expect 2 'seconds: the time' nacre bench checksum --seconds 0
expect 2 'seconds: the time' nacre bench checksum --seconds nan
expect 2 'sample: more than 0' nacre bench checksum --sample 0
expect 2 'engine.*auto' nacre bench checksum --engine gpu
expect 8 'nowhere.*No such file' nacre bench checksum "$work/nowhere"
expect 8 'json .*/no/such/place: No such file' nacre bench checksum --json "$work/no/such/place"
expect 2 '/dev/null is neither a file nor a folder' nacre bench checksum /dev/null
mkdir "$work/empty"
expect 2 'there is no byte in it' nacre bench checksum "$work/empty"
printf 'short' >"$work/short"
expect 2 'not one whole block' nacre bench ciphers "$work/short" --seconds 0.001

# --- What it measures: files whose chunks are whole and cut off, compressible and not.
mkdir -p "$work/data/folder"
seq 1 30000 >"$work/data/numbers"
head -c 70001 "$(command -v bash)" >"$work/data/folder/program"
head -c 20000 /dev/urandom >"$work/data/folder/noise"
printf x >"$work/data/one"
ln -s numbers "$work/data/link"
for family in codecs ciphers checksum rsa seal; do
  threads=1,2
  [ $family != rsa ] || threads=1 # making keys takes its time
  expect 0 "$family +size +thr" nacre bench $family "$work/data" --seconds 0.002 --threads $threads \
    --engine cpu --chunk-size 4K,64K --json "$work/$family.json"
done
# Whole payloads, engines alone, of what is asked for.
expect 0 'crc32 of 256K +64K +2 +cpu' nacre bench all "$work/data" --payload 64K,256K --only crc32,lz77 --threads 2 \
  --seconds 0.002 --json "$work/payload.json"
check 'bench --payload --only measured something else' python3 - "$work/payload.json" <<'END'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert {row["payload_bytes"] for row in rows} == {65536, 262144}, rows
assert {row["operation"] for row in rows if row["by"] == "cpu"} == {
    "crc32", "lz77 encode", "lz77 decode", "seal lz77", "unseal lz77", "reseal lz77"}
assert all(row["kind"] == "backend" and row["per_second"] > 0 for row in rows)
END
expect 0 'crc32 of 4M +2M +1' nacre bench checksum --only crc32 --chunk-size 2M --payload 4M --threads 1 --seconds 0.001
expect 0 'generated text' nacre bench checksum --seconds 0.001 --sample 200K --threads 1
nacre bench checksum "$work/data" --seconds 0.001 --json - >"$work/only.json" 2>"$work/only.err" || failed "bench --json -"
nacre bench codecs "$work/data/numbers" --seconds 0.002 --threads 1 --engine cpu --json "$work/numbers.json" \
  >"$work/table" || failed "bench codecs"
[ "$(awk '{ if (length($0) > most) most = length($0) } END { print most }' "$work/table")" -le 100 ] ||
  failed "the table is wider than 100 columns"
python3 "$(dirname "$0")/bench_figures.py" "$work" || failed "bench_figures.py"
verdict
