#!/bin/sh
# Build cext with AddressSanitizer beside the main build, and run its tests and fuzz targets there: asan.sh [SECONDS of fuzz]
# [arguments of pytest]. The same as `tox -e asan`, with more time.
set -eu
cd "$(dirname "$0")/.."
export KAFKA_SHIM_FUZZ_SECONDS="${1:-30}"
[ $# -eq 0 ] || shift
scripts/bootstrap test
exec .venv/bin/python scripts/suite.py asan -- "$@"
