#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/install_dependencies.sh on systems of other kinds, with an apt-get that only notes what it is
# asked for: nothing is installed here.
set -uo pipefail
script=$(cd "$(dirname "$0")/../.." && pwd)/tools/install_dependencies.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/nacre-install_dependencies.XXXXXX")
trap 'rm -rf "$work"' EXIT
failures=0
failed() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# Stand-ins: no package is there, whoever asks is root.
mkdir "$work/bin"
printf '#!/bin/sh\nexit 0\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\necho 0\n' >"$work/bin/id"
printf '#!/bin/sh\necho "$*" >>%s/asked\n' "$work" >"$work/bin/apt-get"
chmod +x "$work"/bin/*
# on RELEASE CODE WORDS ARGUMENT…: what the script says where os-release is RELEASE.
on() {
  local release=$1 code=$2 words=$3 got=0
  shift 3
  rm -f "$work/asked"
  printf '%b' "$release" >"$work/os-release"
  NACRE_OS_RELEASE=$work/os-release PATH=$work/bin:$PATH bash "$script" "$@" >"$work/said" 2>&1 || got=$?
  [ "$got" = "$code" ] || failed "$release: ends with $got: $(cat "$work/said")"
  tr '\n' ' ' <"$work/said" | grep -qE -- "$words" || failed "$release: says $(cat "$work/said")"
}
asked() { grep -qE -- "(^| )$1( |\$)" "$work/asked" 2>/dev/null; }

unset NACRE_ANY_SYSTEM
bookworm='PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n'
trixie='PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_ID="13"\nID=debian\n'
fedora='ID=fedora\nVERSION_ID=42\nPRETTY_NAME="Fedora Linux 42 (Server Edition)"\n'

# --- Known ones.
for release in "$bookworm" "$trixie" 'ID=ubuntu\nVERSION_ID="24.04"\n' 'ID=ubuntu\nVERSION_ID="26.04"\n'; do
  on "$release" 0 '^Packages to install: g\+\+ '
  asked librocksdb-dev || failed "$release: RocksDB is not asked for"
  ! asked libgtest-dev || failed "$release: packages of the tests, unasked"
done
on "$bookworm" 0 'Packages to install: .* libgtest-dev .* clang-format-14' --tests
asked clang-format-14 && asked clang || failed 'Debian 12 is not asked for clang and its formatter'
on "$trixie" 0 'clang-format-14 is no package .*Packages to install: .* libgtest-dev' --tests
! asked clang-format-14 || failed 'Debian 13 is asked for a formatter that it does not have'
asked clang || failed 'Debian 13 is not asked for clang'

# --- Others: a sentence, and nothing is installed.
known='Debian 12, Debian 13, Ubuntu 24\.04, Ubuntu 26\.04\. Nothing was installed'
on "$fedora" 8 "this system, Fedora Linux 42 \(Server Edition\), is none .*$known.*--any-system"
[ ! -e "$work/asked" ] || failed "apt-get was called: $(cat "$work/asked")"
on 'ID=debian\nVERSION_ID="11"\nPRETTY_NAME="Debian 11"\n' 8 "Debian 11, is none .*$known" --tests
on 'ID=debian\nPRETTY_NAME="Debian GNU/Linux forky/sid"\n' 8 "forky/sid, is none .*$known"
on '' 8 "whose name .*os-release does not tell, is none .*$known"
# What the environment holds is no word of os-release.
ID=debian VERSION_ID=12 on "$fedora" 8 'Fedora'
ID=debian VERSION_ID=12 on '' 8 'is none'

# --- All the same.
on "$fedora" 0 'Fedora Linux 42 .* going on anyway.*Packages to install: g\+\+ ' --any-system
asked librocksdb-dev || failed 'nothing is installed with --any-system'
NACRE_ANY_SYSTEM=1 on "$fedora" 0 'going on anyway.*Packages to install: .* libgtest-dev' --tests

on "$bookworm" 2 usage --nonsense
on "$bookworm" 2 usage --tests nonsense
[ ! -e "$work/asked" ] || failed 'a wrong call installs'

[ "$failures" = 0 ]
