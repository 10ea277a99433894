#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times Nacre and other encrypting file systems: the same work on each, in turns, in one run.
#
#   peerbench.sh [--bin DIR] [--rounds N] [--only "NAME…"] [--steps "big inc tree random"] [--as USER]
#                [--add NAME MAKE MOUNT UNMOUNT]… [--reference NAME] [--work DIR] [--json FILE]
#                [--big MB] [--inc MB] [--files N] [--random MB] [--seconds N] [--quick] [--keep-caches]
#
#   --bin       holds mkfs.nacre and its fellows (build/release/bin of this checkout)
#   --rounds    how often each does everything (3); the first one changes from round to round
#   --only      only these: native gocryptfs securefs encfs cryfs nacre (the default), and btrfs with
#               zstd, bindfs and fscrypt; what is not installed is left out with a word
#   --add       one more, by three command lines with {back} {mnt} {bin} {passphrase}; for example
#               --add nacre_device 'mkfs.nacre --passphrase-file {passphrase} {back}'
#                 'mount.nacre -o io_uring=off --passphrase-file {passphrase} {back} {mnt}' 'nacre umount {mnt}'
#   --as        the user who mounts and works: the caller of sudo, else nobody; root gets larger windows
#   --steps     the large compressible file, the incompressible one, the small files, random blocks (fio)
#   --reference the file system that costs are compared with (gocryptfs)
#   --work      a folder on the disk to measure (/var/tmp); a new folder in it is used, and removed
#   --json      the figures of every round as JSON too; - : to standard output, and no table
#   --big … --seconds   sizes (1024 MB, 256 MB, 8000 files, 4 × 96 MB, 5 s); --quick: tiny ones, which tell nothing
#   --keep-caches       does not drop the kernel's caches, so nothing is cold: for tests of this script
#
# Steps: big_write and inc_write copy a file in with fsync, big_read and inc_read read it cold (mounted
# anew, caches dropped); untar, list (ls -lR, cold), read_all (cold) and remove are of small files of
# this machine; random_read (cold, no block twice) and random_write (fsync every 32) are 4 KiB blocks by four
# jobs. untar ends with syncfs, which the kernel does not pass on to FUSE daemons, so only native pays for it.
# stored_* is what the backing folder grew by, after a sync, for each byte written.
# In the first round everything that was read back is compared.
#
# Needs root, to drop caches. It unmounts what it mounted, also when it fails or gets a signal.
# Exit status: 0 all good, 1 a step failed or bytes differed, 2 usage.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
say() { echo "peerbench.sh: $*" >&2; }
usage() { say "$*"; exit 2; }
defined=()
. "$here/peer_filesystems.sh"

bin='' rounds=3 names='' added='' steps='big inc tree random' reference=gocryptfs place=/var/tmp json=''
big_mb=1024 inc_mb=256 file_count=8000 random_mb=96 seconds=5 limit_s=1800 keeps_caches=''
user='' # --as
while [ $# -gt 0 ]; do
  case $1 in
    --quick) big_mb=24 inc_mb=8 file_count=200 random_mb=4 seconds=1; shift; continue ;;
    --keep-caches) keeps_caches=yes; shift; continue ;;
    --help) sed -n '3,/^set/s/^# \{0,1\}//p' "$0"; exit 0 ;;
  esac
  [ $# -ge 2 ] || usage "$1 needs a value, or is no option (--help tells)"
  case $1 in
    --bin) bin=$2 ;;
    --rounds) rounds=$2 ;;
    --only) names=$2 ;;
    --steps) steps=$2 ;;
    --as) user=$2 ;;
    --reference) reference=$2 ;;
    --work) place=$2 ;;
    --json) json=$2 ;;
    --big) big_mb=$2 ;;
    --inc) inc_mb=$2 ;;
    --files) file_count=$2 ;;
    --random) random_mb=$2 ;;
    --seconds) seconds=$2 ;;
    --add)
      [ $# -ge 5 ] || usage "--add needs NAME MAKE MOUNT UNMOUNT"
      define "$2" "$3" "$4" "$5"
      added+=" $2"
      shift 3
      ;;
    *) usage "there is no option $1 (--help tells)" ;;
  esac
  shift 2
done
for number in "$rounds" "$big_mb" "$inc_mb" "$file_count" "$random_mb" "$seconds"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || usage "'$number': a number of at least 1 is needed"
done
for name in ${names:=$default_names}; do
  declare -F "${name}_mount" >/dev/null ||
    usage "there is no file system $name; there are: $control_names $peer_names nacre"
done
for name in $steps; do
  case $name in big | inc | tree | random) ;; *) usage "there is no step $name; there are: big inc tree random" ;; esac
done
if [ "$(id -u)" != 0 ]; then
  [ -n "$keeps_caches" ] || usage "only root may drop the kernel's caches (--keep-caches does without)"
  user=$(id -un)
fi
asked_user=$user user=${user:-${SUDO_USER:-nobody}}
group=$(id -g "$user" 2>/dev/null) || usage "there is no user $user"
bin=${bin:-$root/build/release/bin}
[ ! -d "$bin" ] || PATH=$(cd "$bin" && pwd):$PATH
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C.UTF-8
as_user() {
  if [ "$(id -un)" = "$user" ]; then "$@"
  else setpriv --reuid "$user" --regid "$group" --init-groups "$@"; fi
}
if ! as_user test -r /dev/fuse -a -w /dev/fuse; then
  [ -z "$asked_user" ] || usage "$user may not open /dev/fuse"
  say "$user may not open /dev/fuse: root does all the work, for whom windows of the kernel are larger"
  user=root group=root
fi

# --- What is left out here.
list=''
for name in $names $added; do
  program=${name}_program
  case $name in btrfs | fscrypt) needs_root=yes ;; *) needs_root='' ;; esac
  if ! command -v "${!program}" >/dev/null; then say "${!program} is not installed: $name is left out"
  elif [ -n "$needs_root" ] && [ "$(id -u)" != 0 ]; then say "only root can mount $name: it is left out"
  else list+=" $name"; fi
done
[ -n "$list" ] || usage "nothing is left to measure"
if [[ " $steps " == *' random '* ]] && ! command -v fio >/dev/null; then
  say "fio is not installed: random blocks are left out"
  steps=${steps//random/}
fi
wants() { [[ " $steps " == *" $1 "* ]]; }

# --- A folder of its own, and its end.
work=$(mktemp -d "$(realpath "$place")/peerbench.XXXXXX") || exit 1
child=''
# Daemons of ours name their backing folder as a word of their command line.
daemons_of() {
  local process words word
  for process in /proc/[0-9]*; do
    [ "${process#/proc/}" != $$ ] || continue
    mapfile -d '' words 2>/dev/null <"$process/cmdline" || continue
    for word in "${words[@]}"; do
      if [ "$word" = "$1" ]; then echo "${process#/proc/}"; break; fi
    done
  done
}
is_mounted() { grep -aqF " ${1// /\\040} " /proc/self/mountinfo; } # root may not look at a user's mount
await_end_of() { # BACK: until its daemon has written everything
  local pid
  for pid in $(daemons_of "$1"); do
    timeout 600 tail --pid="$pid" -s 0.2 -f /dev/null || return 1
  done
}
detach() { if [ "$(id -u)" = 0 ]; then umount "$@"; else fusermount3 -u "${@/-l/-z}"; fi; }
clean_up() {
  local point pid
  trap '' INT TERM
  [ -z "$child" ] || kill -KILL -- "-$child" 2>/dev/null
  cd /
  while read -r point; do
    point=$(printf %b "$point")
    case $point in "$work"/*) detach "$point" 2>/dev/null || detach -l "$point" ;; esac
  done < <(findmnt -rn -o TARGET | sort -r)
  for point in "$work"/*/back; do
    await_end_of "$point" || {
      say "the daemon of $point has not ended within ten minutes: killed"
      for pid in $(daemons_of "$point"); do kill -KILL "$pid"; done
    }
  done
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
chmod 755 "$work"
data=$work/data passphrase=$work/passphrase values=$work/values about=$work/about
export HOME=$work/home XDG_RUNTIME_DIR=$work/run
unset XDG_CONFIG_HOME XDG_STATE_HOME XDG_DATA_HOME XDG_CACHE_HOME
mkdir "$data" "$HOME"
mkdir -m 700 "$XDG_RUNTIME_DIR"
echo 'a password of the benchmark' >"$passphrase"
: >"$values"
chown "$user:" "$HOME" "$XDG_RUNTIME_DIR" "$passphrase"
needed_mb=$((3 * (big_mb + inc_mb) + 8 * random_mb + file_count / 20 + 256))
free_mb=$(($(df --output=avail -k "$work" | tail -n 1) / 1024))
[ "$free_mb" -ge "$needed_mb" ] || usage "$place has $free_mb MiB free, and $needed_mb are needed"

# --- The bytes: files of this machine, spread over all that there are, and noise.
if wants big; then
  tar -c -C / --sort=name usr/include usr/share usr/lib 2>/dev/null | head -c "${big_mb}M" >"$data/big"
fi
if wants inc; then head -c "${inc_mb}M" /dev/urandom >"$data/inc"; fi
if wants tree; then
  find /usr/include /usr/share /usr/lib -xdev -type f -size -64k -readable 2>/dev/null | LC_ALL=C sort >"$work/all"
  awk -v want="$file_count" -v all="$(wc -l <"$work/all")" \
    'want > all {want = all} int(NR * want / all) > int((NR - 1) * want / all) {print substr($0, 2)}' \
    "$work/all" >"$work/chosen"
  tar -c -C / --no-recursion --verbatim-files-from -T "$work/chosen" >"$data/tree.tar"
  mkdir "$data/tree"
  tar -x --no-same-owner -f "$data/tree.tar" -C "$data/tree"
fi
chmod -R a+rX "$data"
size_of() { if wants "$1"; then stat -c %s "$data/$1"; else echo 0; fi; }
file_count=$(find "$data" -path '*/tree/*' -type f | wc -l)
tree_bytes=$(find "$data" -path '*/tree/*' -type f -printf '%s\n' | awk '{sum += $1} END {print sum + 0}')

# --- The conditions.
note() { printf '%s\t%s\n' "$1" "$2" >>"$about"; }
version_of() {
  case $1 in
    native) uname -r ;;
    nacre) nacre --version | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1 ;;
    btrfs) dpkg-query -W -f='${Version}' btrfs-progs ;;
    *) dpkg-query -W -f='${Version}' "$1" ;;
  esac 2>/dev/null
}
note date "$(date -u +%F)"
note checkout "$(git -C "$root" -c safe.directory='*' rev-parse --short HEAD 2>/dev/null || echo unknown)"
note processor "$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
note kernel "$(uname -r)"
note load "$(cut -d' ' -f1 /proc/loadavg)"
note disk "$(findmnt -n -o FSTYPE -T "$work")"
note io_uring "$(cat /sys/module/fuse/parameters/enable_uring 2>/dev/null || echo N)"
note user "$user"
note rounds "$rounds"
note cold "$([ -n "$keeps_caches" ] && echo no || echo yes)"
note big_bytes "$(size_of big)"
note inc_bytes "$(size_of inc)"
note file_count "$file_count"
note tree_bytes "$tree_bytes"
note peers "$peer_names"
note controls "$control_names"
note reference "$reference"
for name in $list; do note "version $name" "$(version_of "$name")"; done

# --- The steps.
put() { printf '%s\t%s\t%s\t%s\n' "$round" "$name" "$1" "$2" >>"$values"; }
went_wrong() { put "$1" failed; say "$name, $1: $2"; }
# Runs a command that a signal to this script ends at once: bash would else wait for it.
await() {
  local status
  set -m
  timeout -k 10 "$limit_s" "$@" </dev/null >"$work/output" 2>"$work/errors" &
  child=$!
  set +m
  wait "$child"
  status=$?
  child=''
  return $status
}
timed() {
  local step=$1 begin status
  shift
  begin=$EPOCHREALTIME
  await "${runs[@]}" "$@"
  status=$?
  local end=$EPOCHREALTIME
  if [ $status = 0 ]; then put "$step" "$(awk -v a="$begin" -v b="$end" 'BEGIN {printf "%.4f", b - a}')"
  else went_wrong "$step" "exit $status: $(head -c 300 "$work/errors")"; fi
}
settle() { # until all that was written is in the store
  if declare -F "${name}_settle" >/dev/null; then "${name}_settle" "$mnt" >/dev/null || return 1; fi
  as_user sync -f "$mnt" && sync -f "$back"
}
stored() { # STEP BYTES
  local now
  settle || { went_wrong "$1" "it cannot be synced"; return; }
  now=$(du -s -x -B1 "$back" | cut -f1)
  put "$1" "$(awk -v a="$store_bytes" -v b="$now" -v n="$2" 'BEGIN {printf "%.4f", (b - a) / n}')"
  store_bytes=$now
}
blocks() { # STEP OPTION…: operations a second
  local step=$1
  shift
  if await "${runs[@]}" fio --name=blocks --directory="$mnt/blocks" --filename_format='f.$jobnum' --numjobs=4 \
    --size="${random_mb}M" --bs=4k --ioengine=psync --group_reporting --buffer_compress_percentage=50 \
    --output-format=json "$@"; then
    [ "$step" = layout ] || put "$step" "$(python3 "$here/peer_table.py" --rate-of "$work/output")"
  else
    went_wrong "$step" "$(head -c 300 "$work/errors")"
  fi
}
same() {
  [ "$round" = 1 ] || return 0
  if await "${runs[@]}" "$@"; then put compared 0; else put compared 1; say "$name: what is read back differs: $*"; fi
}

enter() { # mounts $name; fails where it is not there in ten minutes, or its daemon is gone
  "${name}_mount" "$back" "$mnt" >"$work/output" 2>&1 || {
    say "$name cannot be mounted: $(tail -n 3 "$work/output")"
    return 1
  }
  [ "$mnt" != "$back" ] || return 0
  local look
  for look in $(seq 3000); do
    is_mounted "$mnt" && return 0
    [ $((look % 50)) != 0 ] || [ -n "$(daemons_of "$back")" ] || break
    sleep 0.2
  done
  say "$name is not mounted, and nothing is at work on it: $(tail -n 3 "$work/output")"
  return 1
}
leave() { # NAME BACK MNT
  [ "$2" != "$3" ] || return 0
  if declare -F "$1_unmount" >/dev/null; then "$1_unmount" "$3" >/dev/null || say "$1: its own way to unmount failed"; fi
  for _ in $(seq 3000); do
    is_mounted "$3" || break
    detach "$3" 2>/dev/null && break
    sleep 0.2
  done
  is_mounted "$3" && { say "$1 cannot be unmounted"; return 1; }
  await_end_of "$2"
}
cold() {
  leave "$name" "$back" "$mnt" || return 1
  sync -f "$back"
  [ -n "$keeps_caches" ] || echo 3 >/proc/sys/vm/drop_caches
  enter
}

one() {
  local folder=$work/$round.$name
  back=$folder/back mnt=$folder/mnt
  mkdir "$folder" "$back" "$mnt"
  chown -R "$user:" "$folder"
  [ "$name" != native ] || mnt=$back
  "${name}_make" "$back" >"$work/output" 2>&1 && enter || {
    went_wrong make "$(tail -n 3 "$work/output")"
    return
  }
  sync -f "$back"
  store_bytes=$(du -s -x -B1 "$back" | cut -f1)
  find "$data" -maxdepth 1 -type f -exec cat {} + >/dev/null # into the kernel's cache
  if wants big; then
    timed big_write dd if="$data/big" of="$mnt/big" bs=1M conv=fsync
    stored stored_big "$(size_of big)"
  fi
  if wants inc; then
    timed inc_write dd if="$data/inc" of="$mnt/inc" bs=1M conv=fsync
    stored stored_inc "$(size_of inc)"
  fi
  if wants tree; then
    "${runs[@]}" mkdir "$mnt/tree"
    timed untar sh -c 'tar -x --no-same-owner -f "$1" -C "$2" && sync -f "$2"' - "$data/tree.tar" "$mnt/tree"
    stored stored_tree "$tree_bytes"
  fi
  if wants random; then
    "${runs[@]}" mkdir "$mnt/blocks"
    blocks layout --rw=write --bs=1M --end_fsync=1
  fi
  cold || { went_wrong remount "it cannot be mounted again"; return; }
  wants big && timed big_read dd if="$mnt/big" of=/dev/null bs=1M
  wants inc && timed inc_read dd if="$mnt/inc" of=/dev/null bs=1M
  wants tree && timed list ls -lR "$mnt/tree"
  wants big && same cmp "$data/big" "$mnt/big"
  wants inc && same cmp "$data/inc" "$mnt/inc"
  cold || { went_wrong remount "it cannot be mounted again"; return; }
  wants tree && timed read_all sh -c 'find "$1" -type f -print0 | xargs -0 cat' - "$mnt/tree"
  if wants random; then
    blocks random_read --rw=randread --runtime="$seconds"
    blocks random_write --rw=randwrite --fsync=32 --time_based --runtime="$seconds"
  fi
  if wants tree; then
    same diff -rq "$data/tree" "$mnt/tree"
    # Else the journal is busy with what fio wrote.
    if settle; then timed remove rm -rf "$mnt/tree"; else went_wrong remove "it cannot be synced"; fi
  fi
  leave "$name" "$back" "$mnt" && rm -rf --one-file-system "$folder"
}

runs=()
[ "$(id -un)" = "$user" ] || runs=(setpriv --reuid "$user" --regid "$group" --init-groups)
read -ra turn <<<"$list"
for round in $(seq "$rounds"); do
  for name in "${turn[@]}"; do
    begin=$SECONDS
    one
    say "round $round, $name: $((SECONDS - begin)) s"
  done
  turn=("${turn[@]:1}" "${turn[0]}")
done
case $json in
  -) python3 "$here/peer_table.py" "$values" "$about" --json - ;;
  '') python3 "$here/peer_table.py" "$values" "$about" ;;
  *) python3 "$here/peer_table.py" "$values" "$about" --json "$json" ;;
esac
