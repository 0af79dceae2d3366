#!/bin/sh
# Run a command as the user of the server, with its settings: sudo bankdata users list
#
# Copy it to /usr/local/bin/bankdata. SETTINGS and PROGRAM name others for once: sudo SETTINGS=... PROGRAM=... bankdata ...
set -eu
set -a
. "${SETTINGS:-/etc/bankdata/settings}"
exec setpriv --reuid=bankdata --regid=bankdata --init-groups -- "${PROGRAM:-/opt/bankdata/.venv/bin/bankdata}" "$@"
