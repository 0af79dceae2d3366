#!/usr/bin/env bash
# The README's first command, letter by letter, in a fresh clone on a bare Python; only the port is another. What it has
# installed, a wheel made on the way, then serves from a folder that knows nothing of the sources.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
server=""
cleanup() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$place"; }
trap cleanup EXIT

serve() {  # serve WHERE COMMAND...: starts it, and waits until it answers; what it prints is in WHERE
    "${@:2}" >"$1" 2>"$1.err" &
    server=$!
    for _ in $(seq 600); do
        grep -q 'Stop with' "$1.err" && return
        kill -0 "$server" || break
        sleep 0.1
    done
    cat "$1.err"
    return 1
}
stop() { kill -TERM "$server"; wait "$server"; server=""; }
a_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

git clone -q "$root" "$place/clone"
cd "$place/clone"
export HOME="$place/home" PATH=/usr/local/bin:/usr/bin:/bin PIP_DISABLE_PIP_VERSION_CHECK=1
mkdir -p "$HOME"
unset "${!BANKDATA_@}"
command="$(sed -n '/^```sh$/,/^```$/p' README.md | sed -n 2p)"
case "$command" in *"bankdata demo") ;; *) echo "the README begins with another command: $command" >&2; exit 1 ;; esac

echo "${command%&&*}"
bash -c "${command%&&*}"
echo "${command##*&& }"
serve "$place/typed" ${command##*&& } --port "$(a_port)"
pasted="$(grep -o 'curl .*' "$place/typed")"
bash -c "$pasted" | grep -q '"accounts":\[{"id":"acc_' && echo "the printed curl line answers"
stop && echo "the demo stops cleanly"

rm -rf handlers connectors auth storage analytics openapi.json  # what was installed has to be whole without them
PATH="$place/clone/.venv/bin:$PATH"
cd "$HOME"
bankdata --version
bankdata users add eva --random --data "$place/checked" >/dev/null
bankdata check --data "$place/checked"
port="$(a_port)"
serve "$place/installed" bankdata demo --port "$port" --data "$place/demo"
python - "$port" "$place/installed" "$root/openapi.json" <<'PY'
import json, re, sys, urllib.request
port, out, contract = sys.argv[1:]
def get(path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)) as answer:
        return answer.read()
assert get("/api/openapi.json") == open(contract, "rb").read(), "the served contract differs from the file"
token = re.search(r"Bearer (\S+?)\"", open(out).read())[1]
assert len(json.loads(get("/api/v1/accounts", token))["accounts"]) == 4
assert b"swagger" in get("/docs").lower()
page = get("/").decode()
modules = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)
assert modules and all(get(module) for module in modules), "files of the page are missing"
PY
stop && echo "what was installed serves without the sources, and stops cleanly"
