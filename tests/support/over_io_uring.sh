#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test that switches FUSE over io_uring on, if NACRE_IO_URING_TESTS is set; else the test is skipped.
# The switch is the machine's, and a kernel may never end a request over io_uring whose daemon was
# killed (docs/TESTS.md): then each later look at that mount hangs until the machine is restarted.
#
#   over_io_uring.sh NAME COMMAND…
set -euo pipefail
name=$1
shift
if [ -z "${NACRE_IO_URING_TESTS-}" ]; then
  echo "skipped: $name: it switches FUSE over io_uring on for the whole machine; tools/test.sh --io-uring runs it"
  exit 77
fi
exec "$@"
