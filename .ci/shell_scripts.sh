#!/usr/bin/env bash
# Shellcheck over every shell script of the tree. Usage: shell_scripts.sh ROOT
set -euo pipefail
cd -- "$1"
shellcheck -x attest optimized/bundle/run .ci/run .ci/*.sh
