#!/usr/bin/env bash
# The README's first command, letter by letter, in a fresh clone on a bare Python; only the port is another.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
server=""
cleanup() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$place"; }
trap cleanup EXIT

git clone -q "$root" "$place/clone"
cd "$place/clone"
export HOME="$place/home" PATH=/usr/local/bin:/usr/bin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir -p "$HOME"
unset "${!BANKDATA_@}"
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
command="$(sed -n '/^```sh$/,/^```$/p' README.md | sed -n 2p)"
case "$command" in *"bankdata demo") ;; *) echo "the README begins with another command: $command" >&2; exit 1 ;; esac
install="${command%&&*}"
start="${command##*&& }"

echo "$install"
bash -c "$install"
echo "$start"
$start --port "$port" >"$place/out" 2>"$place/err" &
server=$!
for _ in $(seq 600); do
    grep -q 'Stop with' "$place/err" && break
    kill -0 "$server" || { cat "$place/err"; exit 1; }
    sleep 0.1
done
pasted="$(grep -o 'curl .*' "$place/out")"
bash -c "$pasted" | grep -q '"accounts":\[{"id":"acc_' && echo "the printed curl line answers"
kill -TERM "$server"
wait "$server" && echo "the demo stops cleanly"
server=""
