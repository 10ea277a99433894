#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A volume that is mounted over an empty home, or over a folder in which Nacre keeps its own files:
# nothing of these is made there, neither at the mount nor by a command before it, and another volume
# in the place of the known one is noticed all the same.
. "$(dirname "$0")/command_harness.sh"
needs_mounts
v=$work/vault
spare=/var/tmp/nacre-$(id -u)
had_spare=$([ -e "$spare" ] && echo yes)
forget() { # what this test noted in the list that outlives it
  [ ! -e "$spare/known_volumes" ] || sed -i "\\,^$work,d" "$spare/known_volumes"
  [ -n "$had_spare" ] || [ -s "$spare/known_volumes" ] || rm -rf "$spare"
}
trap 'forget; clean_up' EXIT
export HOME=$work/empty
mkdir "$HOME"
is_empty() { [ -z "$(ls -A "$HOME")" ] || failed "$1 left in the home: $(ls -A "$HOME")"; }

expect 0 '' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$v"
is_empty mkfs.nacre
expect 0 '' nacre key add "$v" --recovery "${secret[@]}"
is_empty "nacre key add"
expect 0 '' fsck.nacre "${secret[@]}" "$v"
is_empty fsck.nacre
mkdir "$work/elsewhere"
expect 0 '^$' mount.nacre "${secret[@]}" "$v" "$work/elsewhere"
expect 0 '^$' nacre umount "$work/elsewhere"
is_empty "a mount elsewhere"
for round in first second; do
  expect 0 '^$' mount.nacre "${secret[@]}" "$v" "$HOME"
  echo x >"$HOME/.profile" && mkdir -p "$HOME/.config" || failed "the mounted home takes no files"
  expect 0 '' nacre stats "$HOME"
  expect 0 '' nacre key list "$v"
  expect 0 '^$' nacre umount "$HOME"
  is_empty "the $round mount"
done

# The fingerprint is remembered: another volume there is refused, with the line to remove.
mv "$v" "$work/mine"
cp "$spare/known_volumes" "$work/list"
HOME=$work/home make_volume "$v"
cp "$work/list" "$spare/known_volumes" # somebody else made it
rm -rf "$work/home/.config"
expect 8 "holds another volume than when it was used last.*line [0-9]+ of $spare/known_volumes" \
  mount.nacre "${secret[@]}" "$v" "$HOME"
# Also once the home has something in it.
touch "$HOME/.profile"
expect 8 "holds another volume than when it was used last" fsck.nacre "${secret[@]}" "$v"
rm -rf "$v"
# What is made anew is known from now on, in all lists.
expect 0 '' mkfs.nacre "${secret[@]}" "${cheap[@]}" "$v"
expect 0 '' fsck.nacre "${secret[@]}" "$v"
rm -rf "$HOME/.profile" "$HOME/.config"
expect 0 '' fsck.nacre "${secret[@]}" "$v"
is_empty fsck.nacre

# Folders of its own files.
export HOME=$work/home
for place in .config .cache; do
  rm -rf "${HOME:?}/$place"
  mkdir "$HOME/$place"
  expect 0 '' mount.nacre "${secret[@]}" "$v" "$HOME/$place"
  expect 0 '' nacre umount "$HOME/$place"
  [ -z "$(ls -A "$HOME/$place")" ] || failed "$place is no longer empty: $(ls -A "$HOME/$place")"
done
mkdir -m 700 "$work/base"
for variable in XDG_CONFIG_HOME XDG_CACHE_HOME XDG_RUNTIME_DIR; do
  expect 0 '' env $variable="$work/base" mount.nacre "${secret[@]}" "$v" "$work/base"
  expect 0 '' env $variable="$work/base" nacre umount "$work/base"
  [ -z "$(ls -A "$work/base")" ] || failed "$variable is no longer empty: $(ls -A "$work/base")"
done
# What the user names there is refused: the mount would hide it.
mkdir "$work/m"
expect 2 'log file .* would lie below the mount point' mount.nacre "${secret[@]}" --log-file "$work/m/log" "$v" "$work/m"
expect 2 'socket .* would lie below the mount point|without libmicrohttpd' \
  mount.nacre "${secret[@]}" -o "metrics=unix:$work/m/s" "$v" "$work/m"
[ -z "$(ls -A "$work/m")" ] || failed "something was made in the mount point"
# A home that is covered with what it holds has its list below.
forget
expect 0 '' mount.nacre "${secret[@]}" -o nonempty "$v" "$HOME"
expect 0 '' nacre umount "$HOME"
grep -q "^$v " "$known" || failed "the list of a home that holds files is not used"
verdict
