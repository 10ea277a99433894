#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a Python test of this folder, for as_user.sh, which runs scripts of bash.
#
#   run_python.sh TEST.py
set -euo pipefail
exec python3 "$(dirname "$0")/$1"
