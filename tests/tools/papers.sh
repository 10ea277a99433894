#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nacre-papers: every table of every paper is there, with what the paper says, on small inputs;
# what is wrong is refused; a document and figures come out. No figure of speed is judged.
. "$(dirname "$0")/command_harness.sh"
export NACRE_READY_KEYS_REPEATED=1

expect 2 'only 004: the papers are 000' nacre-papers --only 004
expect 2 'size-max' nacre-papers --size-max 12KB
expect 8 'no/such/place.*No such file' nacre-papers --markdown "$work/no/such/place" --only 000

seq 1 30000 >"$work/numbers"
mkdir "$work/figures" && : >"$work/figures/002_figure_1.svg" # as gnuplot left it
expect 0 '000: Section V' nacre-papers "$work/numbers" --seconds 0.001 --size-max 100K --threads 1,2 --engine cpu \
  --json "$work/seeds.json" --markdown "$work/SEEDS.md" --figures "$work/figures" --note 'a note'
# Even where nothing at all is small enough.
expect 0 '001: Figures 8' nacre-papers --seconds 0.001 --size-max 1 --only 001 --threads 1 --engine cpu
# The seven payloads are longer.
expect 0 '002: Figure 7' nacre-papers --seconds 0.001 --size-max 17M --only 002 --threads 2 --engine cpu \
  --json "$work/payloads.json"
nacre-papers --seconds 0.001 --size-max 64K --only 000 --threads 1 --json - >"$work/only.json" 2>"$work/only.err" ||
  failed "nacre-papers --json -"
check 'nacre-papers' python3 "$(dirname "$0")/papers.py" "$work"
verdict
