#!/usr/bin/env bash
# install.sh [FOLDER [--foreground-scripts]]: installs the npm packages of the lock in this folder, or of the one beside
# this file, into a cache outside the repository; prints where. What packages want to run then is left out unless it is
# said: it builds what is no JavaScript.
set -euo pipefail
here=$(cd "${1:-$(dirname "$0")}" && pwd)
scripts=${2:---ignore-scripts}
[ ! -d /usr/include/node ] || export npm_config_nodedir=/usr # what is built asks nobody for the headers of Node.js
export CFLAGS="-O0 -g0" CXXFLAGS="-O0 -g0" # after those of the package: a store of a few rows is built in a third of the time
lock=$(cat "$here/package.json" "$here/package-lock.json" | sha256sum | cut -c1-16)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/bankdata-ci/npm-$lock"
if [ ! -d "$folder" ]; then
    # complete or absent: whoever is interrupted, or installs at the same time, leaves no half folder
    mkdir -p "$(dirname "$folder")"
    draft=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$draft"' EXIT
    cp "$here/package.json" "$here/package-lock.json" "$draft/"
    if ! log=$(cd "$draft" && npm ci "$scripts" --no-audit --no-fund --no-update-notifier 2>&1); then
        printf '%s\n' "$log" >&2
        exit 1
    fi
    mv -T "$draft" "$folder" 2>/dev/null || [ -d "$folder" ]
fi
printf '%s\n' "$folder"
