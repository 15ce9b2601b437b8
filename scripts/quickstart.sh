#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and runs the demo. Root or sudo; offline once the packages are there.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
# shellcheck disable=SC2086
need_packages $BUILD_PACKAGES
build build-quickstart -Dbuildtype=release -Dtests=false
exec build-quickstart/src/program/holdfast demo "$@"
