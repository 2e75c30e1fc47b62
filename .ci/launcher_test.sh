#!/usr/bin/env bash
# launcher_test.sh ROOT: what only tells something of the program neither builds nor waits, even
# when sources are newer and another build holds the lock.
set -euo pipefail
root=$1
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/.ci" "$tree/.build/release/bin"
cp "$root/attest" "$tree/"
cp "$root/.ci/install.sh" "$tree/.ci/"
printf '#!/bin/sh\necho "program: $*"\n' > "$tree/.build/release/bin/attest"
chmod +x "$tree/.build/release/bin/attest"
exec 8> "$tree/.build/lock"
flock 8

wrong() {
  echo "launcher_test: $*" >&2
  exit 1
}

for words in --help -h --version 'list precision' 'gate --help' 'judge some.file -h'; do
  # shellcheck disable=SC2086
  said=$(timeout 20 "$tree/attest" $words 2>&1 8>&-) || wrong "'$words' failed or waited: $said"
  [[ $said == "program: $words" ]] || wrong "'$words' said '$said'"
done
# Whatever does something waits for the lock: the program is stale.
if said=$(timeout 3 "$tree/attest" gate 2>&1 8>&-); then wrong "'gate' did not wait: $said"; fi
[[ $said == *'waiting for it'* ]] || wrong "'gate' said '$said'"
if said=$(timeout 3 "$tree/attest" run -- program --help 2>&1 8>&-); then
  wrong "--help of another program was taken for ours: $said"
fi
