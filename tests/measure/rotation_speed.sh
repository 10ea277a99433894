#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How fast the keys of a volume that is not mounted are rotated, and a plain copy of its segments
# to the same file system, both with sync, in turns; then whether everything is right.
#
#   tests/measure/rotation_speed.sh --bin DIR --corpus DIR [--folder DIR] [--gib N] [--rounds N] [--engines LIST]
#
# --bin: mkfs.nacre, mount.nacre, nacre, fsck.nacre. The corpus is copied into a volume in --folder
# (/dev/shm) until that holds N GiB (8). Each round, for each engine of the list ("cpu auto"): copy,
# rotate. In the end: nacre key status --verify, and fsck.nacre --deep. GB/s are of stored bytes.
# Exit status: 0 when nothing failed.
set -u
bin='' corpus='' folder=/dev/shm gib=8 rounds=3 engines='cpu auto'
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$(realpath "$2") ;;
    --corpus) corpus=$(realpath "$2") ;;
    --folder) folder=$(realpath "$2") ;;
    --gib) gib=$2 ;;
    --rounds) rounds=$2 ;;
    --engines) engines=$2 ;;
    *) echo "rotation_speed.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ -n "$bin" ] && [ -n "$corpus" ] || { echo "rotation_speed.sh: --bin and --corpus are needed" >&2; exit 2; }
PATH=$bin:$PATH
work=$(mktemp -d "$folder/nacre-rotation.XXXXXX")
export XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
volume=$work/volume status=0
secret=(--passphrase-file "$work/pw")
clean_up() {
  mountpoint -q "$work/mnt" && { nacre umount "$work/mnt" || umount -l "$work/mnt"; }
  rm -rf "$work"
}
trap clean_up EXIT
now() { date +%s.%N; }
rate() { awk -v t="$1" -v b="$2" -v e="$3" 'BEGIN{printf "%.2f", t/(e-b)/1e9}'; }
median() { printf '%s\n' "$@" | sort -g | awk '{v[NR]=$1} END{print v[int((NR+1)/2)]}'; }
processor_s() { awk '{printf "%.2f", ($1+$2)}' "$work/times"; }
fail() { echo "FAILED: $*"; status=1; }

echo 'a passphrase of the measurement' >"$work/pw"
mkdir "$work/mnt"
mkfs.nacre "${secret[@]}" --kdf-memory 8192 --kdf-time 1 "$volume" >/dev/null || exit 1
mount.nacre "${secret[@]}" "$volume" "$work/mnt" || exit 1
size=$(du -sb "$corpus" | cut -f1)
copies=$((gib * 1073741824 / size))
[ "$copies" -gt 0 ] || copies=1
seq "$copies" | xargs -P 4 -I{} cp -r "$corpus" "$work/mnt/{}" || fail 'filling the volume'
# On a busy machine the daemon may take longer to close the volume than the command waits.
nacre umount "$work/mnt" || for _ in $(seq 600); do
  pgrep -f "mount.nacre.*$volume" >/dev/null || break
  sleep 1
done
stored() { du -sb "$volume/segments" | cut -f1; }
echo "$(nproc) cores, $folder ($(stat -f -c %T "$folder"))"
echo "$((copies * size / 1000000)) MB of files in $(($(stored) / 1000000)) MB of segments"
# A virtual machine's memory is slow when it is used for the first time: the copy must not pay for it.
cp -r "$volume/segments" "$work/copy" && rm -rf "$work/copy"
printf '%-7s %-6s %10s %10s %8s %14s\n' round engine copy rotate ratio 'cpu-s per GB'
declare -A ratios rotated
for round in $(seq "$rounds"); do
  for engine in $engines; do
    sync -f "$work"
    bytes=$(stored)
    begin=$(now)
    cp -r "$volume/segments" "$work/copy" && sync -f "$work/copy"
    copy=$(rate "$bytes" "$begin" "$(now)")
    rm -rf "$work/copy"
    sync -f "$work"
    TIMEFORMAT='%U %S'
    begin=$(now)
    { time nacre key rotate --engine "$engine" "${secret[@]}" "$volume" >"$work/log" 2>&1; } 2>"$work/times" ||
      fail "rotate, $engine: $(tail -2 "$work/log")"
    sync -f "$work"
    rotate=$(rate "$bytes" "$begin" "$(now)")
    ratio=$(awk -v r="$rotate" -v c="$copy" 'BEGIN{printf "%.2f", r/c}')
    printf '%-7s %-6s %10s %10s %8s %14s\n' "$round" "$engine" "$copy" "$rotate" "$ratio" \
      "$(awk -v p="$(processor_s)" -v b="$bytes" 'BEGIN{printf "%.2f", p/b*1e9}')"
    ratios[$engine]+=" $ratio" rotated[$engine]+=" $rotate"
  done
done
for engine in $engines; do
  # shellcheck disable=SC2086
  echo "median, $engine: $(median ${rotated[$engine]}) GB/s, $(median ${ratios[$engine]}) of the copy"
done
begin=$(now)
nacre key status --verify "$volume" || fail 'something is left under an older epoch'
echo "key status --verify: $(rate "$(stored)" "$begin" "$(now)") GB/s"
fsck.nacre --deep "${secret[@]}" "$volume" >"$work/log" 2>&1 && echo 'fsck --deep: clean' ||
  fail "fsck --deep: $(tail -3 "$work/log")"
exit $status
