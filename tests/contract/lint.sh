#!/usr/bin/env bash
# Both descriptions under the linters of others: openapi-spec-validator, Spectral (with OWASP's rules too), Redocly. Silent
# when nothing is found.
set -uo pipefail
cd "$(dirname "$0")/../.."
python=python
[ -x .venv/bin/python ] && python=.venv/bin/python
packages=$(bash tests/clients/npm/install.sh) || exit 1
tools=$packages/node_modules/.bin

# CI=1 and the others: neither telemetry nor a look for newer versions
export CI=1 NO_COLOR=1 REDOCLY_TELEMETRY=off REDOCLY_SUPPRESS_NOTIFICATIONS=true REDOCLY_SUPPRESS_UPDATE_NOTICE=true

failed=0
quietly() { # quietly WHAT COMMAND...: its output only where it fails
    local log
    if ! log=$("${@:2}" 2>&1); then
        printf '\n-- %s\n%s\n' "$1" "$log" >&2
        failed=1
    fi
}

for description in openapi.json handlers/oauth/oauth-api.json handlers/mcp/mcp-api.json handlers/simplefin/simplefin-api.json handlers/calendar/calendar-api.json; do
    # the OAuth documents are public and take nothing, so no 4xx is theirs; their scheme tells readers where tokens are;
    # what leads to a page answers with a redirect alone
    exceptions=()
    [ "$description" = openapi.json ] ||
        exceptions=(--skip-rule operation-4xx-response --skip-rule no-unused-components --skip-rule operation-2xx-response)
    quietly "openapi-spec-validator $description" "$python" -m openapi_spec_validator "$description"
    quietly "spectral $description" \
        "$tools/spectral" lint --fail-severity=hint --ruleset tests/contract/spectral.yaml "$description"
    quietly "redocly $description" "$tools/redocly" lint --extends recommended-strict "${exceptions[@]}" "$description"
done

# OWASP's rules are a package that Spectral looks for above the ruleset, whose exceptions name the file beside it
beside=$(mktemp -d "$packages/lint.XXXXXX")
trap 'rm -rf "$beside"' EXIT
cp openapi.json handlers/oauth/oauth-api.json tests/contract/spectral-owasp.yaml "$beside/"
for description in openapi.json oauth-api.json; do
    quietly "spectral owasp $description" \
        "$tools/spectral" lint --fail-severity=hint --ruleset "$beside/spectral-owasp.yaml" "$beside/$description"
done
exit "$failed"
