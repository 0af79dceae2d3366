#!/usr/bin/env bash
# The modules of the page under TypeScript's checks, by what they are and what their JSDoc says; libraries are left out.
set -uo pipefail
cd "$(dirname "$0")/../.."
packages=$(bash tests/clients/npm/install.sh) || exit 1
found=$("$packages/node_modules/.bin/tsc" -p tests/page | grep -v -e '^handlers/page/static/vendor/' -e '^ ')
[ -z "$found" ] || { printf '%s\n' "$found"; exit 1; }
