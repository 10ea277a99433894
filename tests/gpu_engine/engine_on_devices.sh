#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The engine's tests of payloads, on the CUDA devices of this machine.
#
#   engine_on_devices.sh PROGRAM   engine_tests
set -u
# The second is what WSL has.
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
  echo "skipped: the engine's tests on devices: there is no CUDA device"
  [ "${NACRE_REQUIRE_GPU-}" = 1 ] && exit 1
  exit 77
fi
export NACRE_TEST_ENGINE=cuda
exec "$1" --gtest_brief=1 --gtest_filter='Engine*:*Payload*:*eseal*:*SealSuites*'
