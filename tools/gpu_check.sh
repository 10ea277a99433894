#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All that needs a CUDA device, in one run: tests, sanitizers, bench, and a mount whose files go in
# and out through the device. Its log is the evidence; its last lines are a short table.
#
#   tools/gpu_check.sh --bin DIR --corpus DIR [--lib DIR] [--gib N] [--repeat N] [--engines LIST]
#                      [PART…]
#
# DIR of --bin holds the built programs (cuda_tests, engine_tests, nacre, mkfs.nacre, mount.nacre, fsck.nacre), of
# --lib the shared libraries that this machine lacks. PART: tests sanitize bench mount (default all).
# --gib: how much is copied into each mount; --repeat: how often bench takes the corpus over;
# --engines: of the mounts.
# Volumes lie in a RAM disk (/dev/shm). Exit status: 0 when all that ran was good, else 1.
set -u
bin='' corpus='' gib=8 repeat=16 engines='cpu auto'
parts=()
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$(realpath "$2"); shift 2 ;;
    --corpus) corpus=$(realpath "$2"); shift 2 ;;
    --lib) LD_LIBRARY_PATH=$(realpath "$2")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}; export LD_LIBRARY_PATH; shift 2 ;;
    --gib) gib=$2; shift 2 ;;
    --repeat) repeat=$2; shift 2 ;;
    --engines) engines=$2; shift 2 ;;
    -*) echo "gpu_check.sh: unknown option $1" >&2; exit 2 ;;
    *) parts+=("$1"); shift ;;
  esac
done
[ -n "$bin" ] && [ -n "$corpus" ] || { echo "gpu_check.sh: --bin and --corpus are needed" >&2; exit 2; }
[ ${#parts[@]} -gt 0 ] || parts=(tests sanitize bench mount)
command -v nvidia-smi >/dev/null || { echo "gpu_check.sh: no CUDA device here" >&2; exit 1; }
export NACRE_REQUIRE_GPU=1 PATH=$bin:$PATH
work=$(mktemp -d /dev/shm/nacre-gpu.XXXXXX)
export XDG_CACHE_HOME=$work/cache XDG_CONFIG_HOME=$work/config
table=()
status=0
note() { table+=("$(printf '%-34s %s' "$1" "$2")"); }
verdict() {  # NAME STATUS
  if [ "$2" = 0 ]; then note "$1" good; else note "$1" "FAILED ($2)"; status=1; fi
}
clean_up() {
  mountpoint -q "$work/mnt" && { nacre umount "$work/mnt" || umount -l "$work/mnt"; }
  rm -rf "$work"
}
trap clean_up EXIT
wants() { [[ " ${parts[*]} " == *" $1 "* ]]; }

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
if wants tests; then
  cuda_tests --gtest_brief=1 >"$work/tests.log" 2>&1
  code=$?
  grep -v NACRE_TEST_SEED "$work/tests.log" | tail -40
  verdict 'gpu tests' $code
  if command -v engine_tests >/dev/null; then
    NACRE_TEST_ENGINE=cuda engine_tests --gtest_brief=1 \
      --gtest_filter='Engine*:*Payload*:*eseal*:SealSuites*:RsaOp*' >"$work/tests.log" 2>&1
    code=$?
    grep -v NACRE_TEST_SEED "$work/tests.log" | tail -20
    verdict "the cpu's tests on devices" $code
  fi
fi
if wants sanitize; then
  for tool in memcheck racecheck; do
    timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 --print-limit 5 cuda_tests \
      --gtest_brief=1 --gtest_filter='-*many_batches*:*nearly_as_small*:CudaEngineFaults*' \
      >"$work/$tool.log" 2>&1
    code=$?
    grep -v NACRE_TEST_SEED "$work/$tool.log" | tail -30 | cut -c1-160
    verdict "compute-sanitizer $tool" $code
  done
fi
if wants bench; then
  # One thread takes long for much: the processor's column for one comes from a sample.
  nacre bench seal "$corpus" --engine cpu --threads 1 --seconds 0.2
  verdict 'bench seal, one thread' $?
  for what in seal codecs checksum ciphers; do
    # Ciphers have many rows, and DES is slow: some take a second for each 100 MiB.
    times=$repeat
    [ $what != ciphers ] || times=1
    nacre bench $what "$corpus" --sample 80M --repeat "$times" --threads "$(nproc)" --seconds 0.3 \
      --json "$work/$what.json"
    verdict "bench $what" $?
  done
fi

# Copies the corpus into a mount and out of it, and prints bytes a second of wall time and the
# daemon's and copiers' processor seconds.
seconds_of() { awk '{print $14 + $15}' "/proc/$1/stat"; }
if wants mount; then
  echo 'a passphrase of the check' >"$work/pw"
  mkdir "$work/in" "$work/mnt"
  size=$(du -sb "$corpus" | cut -f1)
  copies=$((gib * 1073741824 / size))
  [ "$copies" -gt 0 ] || copies=1
  for i in $(seq "$copies"); do cp -r "$corpus" "$work/in/$i"; done
  total=$((copies * size))
  for engine in $engines; do
    volume=$work/volume-$engine
    mkfs.nacre --passphrase-file "$work/pw" --kdf-memory 8192 --kdf-time 1 "$volume" >/dev/null &&
      mount.nacre --passphrase-file "$work/pw" --engine $engine "$volume" "$work/mnt"
    code=$?
    verdict "mount, $engine" $code
    [ $code = 0 ] || continue
    pid=$(pgrep -f "mount.nacre.*$volume" | head -1)
    for jobs in 1 8; do
      before=$(seconds_of "$pid") begin=$(date +%s.%N)
      mkdir "$work/mnt/$jobs"
      ls "$work/in" | xargs -P $jobs -I{} cp -r "$work/in/{}" "$work/mnt/$jobs/{}" && nacre sync "$work/mnt"
      code=$?
      end=$(date +%s.%N) after=$(seconds_of "$pid")
      note "write $jobs jobs, $engine" "$(awk -v b=$begin -v e=$end -v t=$total -v c0=$before -v c1=$after \
        'BEGIN{printf "%.2f GB/s, daemon %.1f cpu s", t/(e-b)/1e9, (c1-c0)/100}')"
      [ $code = 0 ] || verdict "write $jobs jobs, $engine" $code
    done
    nacre stats "$work/mnt" | grep -E 'engine|stored|live'
    nacre umount "$work/mnt" && mount.nacre --passphrase-file "$work/pw" --engine $engine "$volume" "$work/mnt"
    verdict "mounted again, $engine" $?
    pid=$(pgrep -f "mount.nacre.*$volume" | head -1)
    for jobs in 1 8; do
      before=$(seconds_of "$pid") begin=$(date +%s.%N)
      ls "$work/mnt/$jobs" | xargs -P $jobs -I{} sh -c "cat $work/mnt/$jobs/{}/* >/dev/null"
      end=$(date +%s.%N) after=$(seconds_of "$pid")
      note "cold read $jobs jobs, $engine" "$(awk -v b=$begin -v e=$end -v t=$total -v c0=$before -v c1=$after \
        'BEGIN{printf "%.2f GB/s, daemon %.1f cpu s", t/(e-b)/1e9, (c1-c0)/100}')"
      diff -r "$work/in" "$work/mnt/$jobs"
      verdict "same bytes $jobs jobs, $engine" $?
    done
    nacre umount "$work/mnt"
    for checker in cpu cuda; do
      begin=$(date +%s.%N)
      fsck.nacre --deep --engine $checker --passphrase-file "$work/pw" "$volume" >"$work/fsck.log" 2>&1
      code=$?
      [ $code = 0 ] || tail -5 "$work/fsck.log"
      note "fsck --deep --engine $checker" "$(awk -v b=$begin -v e="$(date +%s.%N)" -v t=$total \
        'BEGIN{printf "%.2f GB/s", 2*t/(e-b)/1e9}')"
      verdict "volume of $engine, fsck $checker" $code
    done
    rm -rf "$volume"
  done
fi
printf '\n'
printf '%s\n' "${table[@]}"
exit $status
