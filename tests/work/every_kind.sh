#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Work on volumes of every codec and of every cipher suite; each script ends with fsck.nacre --deep.
# With NACRE_LONG all of them and four scripts; else one codec and one suite, and one script.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
: "${NACRE_BIN:?NACRE_BIN must name the folder that holds mkfs.nacre}"

kinds=('--codec gdeflate --cipher aes-256-cbc')
scripts=(open_files)
if [ -n "${NACRE_LONG-}" ]; then
  scripts=(source_tree rsync sqlite open_files)
  kinds=()
  for codec in none rle lz77 huffman gdeflate lzw zstd auto; do kinds+=("--codec $codec"); done
  for suite in aes-256-gcm aes-192-gcm aes-128-gcm aes-256-ctr aes-192-ctr aes-128-ctr aes-256-cbc \
    aes-192-cbc aes-128-cbc; do
    kinds+=("--cipher $suite")
  done
  for suite in des-ede3-cbc des-cbc; do kinds+=("--allow-legacy-cipher --cipher $suite"); done
fi

unset NACRE_LONG # the scripts' own counts stay small
failed=0 ran=0
for kind in "${kinds[@]}"; do
  for script in "${scripts[@]}"; do
    status=0
    NACRE_MKFS_OPTIONS=$kind "$here/$script.sh" || status=$?
    case $status in
      0) ran=$((ran + 1)) ;;
      77) ;;
      *) echo "FAILED: $script.sh with mkfs.nacre $kind"; failed=$((failed + 1)) ;;
    esac
  done
done
echo "${#kinds[@]} kinds of volumes, $ran runs passed, $failed failed"
[ "$failed" = 0 ] || exit 1
[ "$ran" -gt 0 ] || exit 77
