#!/usr/bin/env bash
# Refuses sources that clang-format would write otherwise. Version 14 (Debian 12): others format
# otherwise. Usage: formatting.sh ROOT [--fix]
set -euo pipefail
cd -- "$1"
mode=(--dry-run -Werror)
if [[ ${2-} == --fix ]]; then mode=(-i); fi
command -v clang-format-14 > /dev/null || {
  echo "clang-format-14 is missing: apt-get install -y clang-format-14" >&2
  exit 1
}
git ls-files -co --exclude-standard -z -- '*.cpp' '*.hpp' '*.c' '*.h' '*.cu' '*.cuh' |
  while IFS= read -r -d '' file; do [[ ! -e $file ]] || printf '%s\0' "$file"; done |
  xargs -0 -r clang-format-14 "${mode[@]}"
