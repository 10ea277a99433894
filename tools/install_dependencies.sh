#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that Nacre is built with, and with --tests those that its tests need too.
# If nothing is missing, it does not call apt. known_systems lists the systems that it knows;
# docs/MOVING.md says what was tried on each.
#
#   install_dependencies.sh [--tests] [--any-system]
#
#   --any-system  continue on an unknown system; NACRE_ANY_SYSTEM=1 does the same, also through
#                 quickstart.sh and test.sh
#
# Exit status: 0 everything is installed, 2 usage, 8 not installed: the system is unknown, or this user
# may not install packages (the message has the command for root).
set -euo pipefail

known_systems='Debian 12, Debian 13, Ubuntu 24.04, Ubuntu 26.04'
build_packages=(
  g++ cmake ninja-build ccache pkg-config
  libfuse3-dev fuse3 liburing-dev librocksdb-dev libssl-dev libipsec-mb-dev libisal-dev liblz4-dev libzstd-dev
  libexpected-dev libfmt-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libargon2-dev
  libmicrohttpd-dev # metrics=; Nacre builds without it
  libtiff-dev libdeflate-dev zlib1g-dev # what nacre bench compares with; not needed without them
)
test_packages=(
  libgtest-dev libgmock-dev clang libclang-rt-dev lld
  python3 attr acl rsync sqlite3 git openssl unzip tar make e2fsprogs btrfs-progs util-linux mount procps psmisc
  softhsm2 libengine-pkcs11-openssl # a PKCS#11 token for the tests of --identity
  desktop-file-utils # desktop-file-validate, for packaging/desktop
  python3-cryptography # tests/golden/read_volume.py, the format's other reader; with libargon2 and libzstd, as above
)
browser_packages=(chromium chromium-driver) # tests/web opens the page of nacre web in it
formatter=clang-format-14 # the version that the sources are formatted with

optional=() with_tests=no any_system=${NACRE_ANY_SYSTEM:+yes}
for argument; do
  case $argument in
    --tests) with_tests=yes ;;
    --any-system) any_system=yes ;;
    *) echo "usage: $0 [--tests] [--any-system]" >&2; exit 2 ;;
  esac
done

# SYSTEM is what known_systems has: an id and a version of os-release(5). Tests give another file.
release=${NACRE_OS_RELEASE:-/etc/os-release}
field() { (unset ID VERSION_ID PRETTY_NAME && . "$release" 2>/dev/null && printf %s "${!1-}") || true; }
system="$(field ID) $(field VERSION_ID)"
case $system in
  'debian 12' | 'debian 13' | 'ubuntu 24.04' | 'ubuntu 26.04') ;;
  *)
    name=$(field PRETTY_NAME)
    if [ "$any_system" != yes ]; then
      echo "$0: this system, ${name:-whose name $release does not tell}, is none of those that Nacre is known to build on:" >&2
      echo "  $known_systems. Nothing was installed. To try all the same:" >&2
      echo "  NACRE_ANY_SYSTEM=1 tools/quickstart.sh …, or $0 --any-system" >&2
      exit 8
    fi
    echo "This system, ${name:-whose name $release does not tell}, is not one that Nacre is known to build on; going on anyway." ;;
esac

wanted=("${build_packages[@]}")
if [ $with_tests = yes ]; then
  wanted+=("${test_packages[@]}")
  # Newer systems have no such old one; tests/tidy says that it leaves formatting out.
  case $system in
    'debian 12' | 'ubuntu 24.04') wanted+=("$formatter") ;;
    *) echo "$formatter is no package of this system: formatting is not checked." ;;
  esac
  # For the tests of the page of nacre web, which --long runs. Ubuntu has Chromium as a snap only.
  [ -z "${NACRE_LONG-}" ] || case $system in
    debian*) optional=("${browser_packages[@]}") ;;
    *) echo "${browser_packages[*]} are no packages of this system: the page of nacre web is not tested in a browser." ;;
  esac
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This system has no apt: what it calls these is taken to be there:"
  echo "  ${wanted[*]}"
  exit 0
fi

missing=() missing_optional=()
installed=" $(dpkg-query -W -f='${db:Status-Abbrev}${Package} ' 2>/dev/null || true)"
for package in "${wanted[@]}"; do
  [[ $installed == *"ii $package "* ]] || missing+=("$package")
done
for package in "${optional[@]}"; do
  [[ $installed == *"ii $package "* ]] || missing_optional+=("$package")
done
[ ${#missing[@]} -gt 0 ] || [ ${#missing_optional[@]} -gt 0 ] || exit 0

echo "Packages to install: ${missing[*]} ${missing_optional[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  # A terminal may be asked for a password, here and not in the middle of the work; without one sudo
  # must not need any.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }; then
    as_root=(sudo)
  else
    [ ${#missing[@]} -gt 0 ] || { echo "Without ${missing_optional[*]}, some tests are skipped."; exit 0; }
    echo "$0: packages are missing and this user may not install them. As root, run" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 8
  fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
    "$@" >"$log" 2>&1
}
# What the lists on this machine already know needs no update.
if [ ${#missing[@]} -gt 0 ] && ! apt install --no-install-recommends "${missing[@]}"; then
  apt update || { tail -n 20 "$log" >&2; echo "$0: apt-get update failed, see above" >&2; exit 8; }
  apt install --no-install-recommends "${missing[@]}" || {
    tail -n 20 "$log" >&2
    echo "$0: apt-get could not install ${missing[*]}, see above" >&2
    exit 8
  }
fi
if [ ${#missing_optional[@]} -gt 0 ]; then
  apt install --no-install-recommends "${missing_optional[@]}" ||
    { apt update && apt install --no-install-recommends "${missing_optional[@]}"; } ||
    echo "${missing_optional[*]} cannot be installed: some tests are skipped."
fi
