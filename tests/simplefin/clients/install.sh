#!/usr/bin/env bash
# Installs the apps of the lock beside this file into a cache outside the repository; prints the Python that has them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lock=$(sha256sum "$here/requirements.lock" | cut -c1-16)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/bankdata-ci/simplefin-$lock"
if [ ! -f "$folder/complete" ]; then
    mkdir -p "$folder"
    exec 9>"$folder/lock"
    flock 9 # whoever installs at the same time waits
    if [ ! -f "$folder/complete" ]; then
        "${1:-python3}" -m venv --clear "$folder/python"
        "$folder/python/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "$here/requirements.lock" >&2
        touch "$folder/complete"
    fi
fi
printf '%s\n' "$folder/python/bin/python"
