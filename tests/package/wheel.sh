#!/usr/bin/env bash
# Build the wheel, install it into an empty environment, and start it from a folder that knows nothing of the sources.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
server=""
cleanup() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$place"; }
trap cleanup EXIT

python -m pip wheel -q --no-deps --no-build-isolation -w "$place/dist" "$root"
python3 -m venv "$place/venv"
sed -n 's/^\([A-Za-z0-9._-]*\)\(\[[a-z,]*\]\)\{0,1\}\(==[^\\]*\) \\$/\1\3/p' "$root"/.ci/*.lock >"$place/constraints"  # the tested versions
"$place/venv/bin/pip" install -q "$place"/dist/*.whl -c "$place/constraints"

cd "$place"
export HOME="$place/home" PATH="$place/venv/bin:/usr/bin:/bin"
mkdir -p "$HOME"
bankdata --version
bankdata users add eva --random --data "$place/checked" >/dev/null
bankdata check --data "$place/checked"
port="$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
bankdata demo --port "$port" --data "$place/demo" >"$place/out" 2>"$place/err" &
server=$!
for _ in $(seq 100); do
    grep -q 'Stop with' "$place/err" && break
    kill -0 "$server" || { cat "$place/err"; exit 1; }
    sleep 0.2
done
python - "$port" "$place/out" "$root/openapi.json" <<'PY'
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
kill -TERM "$server"
wait "$server" && echo "the installed wheel serves and stops cleanly"
server=""
