#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The mount tests on real volumes of every cipher suite, and over them of every codec. With
# NACRE_LONG all eleven pairs; else one, another one in each run.
#
#   fuse_on_every_kind.sh FUSE_TESTS
set -euo pipefail
program=$1
export NACRE_FUSE_VOLUME=nacre
pairs=(aes-256-cbc:gdeflate des-ede3-cbc:auto aes-128-gcm:zstd aes-256-gcm:none aes-192-gcm:rle
  aes-256-ctr:huffman aes-192-ctr:lzw aes-128-ctr:lz77 aes-192-cbc:zstd aes-128-cbc:lz77
  des-cbc:gdeflate)
[ -n "${NACRE_LONG-}" ] || pairs=("${pairs[$((RANDOM % ${#pairs[@]}))]}")
for pair in "${pairs[@]}"; do
  echo "$pair"
  status=0
  NACRE_TEST_SUITE=${pair%:*} NACRE_TEST_CODEC=${pair#*:} \
    "$program" --gtest_filter='Fuse*:-FuseEnvironment.*' --gtest_brief=1 || status=$?
  [ "$status" = 0 ] || { echo "FAILED: $pair"; exit 1; }
done
