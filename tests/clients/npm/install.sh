#!/usr/bin/env bash
# Installs the npm packages of the lock beside this file into a cache outside the repository; prints the folder.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
lock=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum | cut -c1-16)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/bankdata-ci/npm-$lock"
if [ ! -d "$folder" ]; then
    # complete or absent: whoever is interrupted, or installs at the same time, leaves no half folder
    mkdir -p "$(dirname "$folder")"
    draft=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$draft"' EXIT
    cp "$here/package.json" "$here/package-lock.json" "$draft/"
    if ! log=$(cd "$draft" && npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier 2>&1); then
        printf '%s\n' "$log" >&2
        exit 1
    fi
    mv -T "$draft" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
printf '%s\n' "$folder"
