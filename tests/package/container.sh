#!/usr/bin/env bash
# Build the image of docs/deploy/Containerfile and let it serve: with a container engine where one works, else the same file,
# built by Buildah on a fresh Debian and run in a chroot.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
container="" server=""
store=(buildah --storage-driver vfs --root "$place/images" --runroot "$place/run")
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$container" ] || docker rm -f "$container" >/dev/null 2>&1 || true
    wait 2>/dev/null || true
    rm -rf "$place"
}
trap cleanup EXIT
port="$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"

if docker info >/dev/null 2>&1; then
    echo "with the container engine of this machine"
    docker build -q -t bankdata-tried -f "$root/docs/deploy/Containerfile" "$root"
    container="$(docker run -d --read-only --tmpfs /tmp --cap-drop ALL -p "127.0.0.1:$port:8000" bankdata-tried demo --host 0.0.0.0)"
    stop() { docker stop -t 15 "$container" >/dev/null; test "$(docker inspect -f '{{.State.ExitCode}}' "$container")" = 0; }
else
    echo "no container engine works here: the same file, built and run in a chroot"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$place/base" >/dev/null
    # The chroot has no way out. Its Python may be older than this one: what only an older one needs is fetched too
    sed "s/ ; python_full_version < '3.11.3'//" "$root/.ci/company.lock" >"$place/company.lock"
    python -m pip download -q --require-hashes -r "$root/.ci/runtime.lock" -r "$place/company.lock" -d "$place/wheels"
    base="$("${store[@]}" from scratch)"
    "${store[@]}" add -q "$base" "$place/base" / >/dev/null
    "${store[@]}" commit -q "$base" debian-with-python >/dev/null
    rm -rf "$place/base"
    "${store[@]}" build -q --layers=false --isolation chroot --volume "$place/wheels:/wheels:ro" --build-arg PIP_NO_INDEX=1 \
        --build-arg PIP_FIND_LINKS=/wheels --build-arg BASE=localhost/debian-with-python -t bankdata-tried \
        -f "$root/docs/deploy/Containerfile" "$root" >/dev/null
    built="$("${store[@]}" from bankdata-tried)"
    "${store[@]}" run --isolation chroot "$built" -- bankdata demo --port "$port" >"$place/out" 2>&1 &
    server=$!
    stop() { pkill -TERM -f "^/opt/bankdata/bin/python.* demo --port $port"; wait "$server"; server=""; }
fi

for _ in $(seq 150); do
    curl -sf "http://127.0.0.1:$port/readyz" >/dev/null && break
    sleep 0.4
done
curl -sf "http://127.0.0.1:$port/readyz" || { cat "$place/out"; exit 1; }
curl -sf "http://127.0.0.1:$port/api/openapi.json" | cmp - "$root/openapi.json"
stop
printf '\nthe image serves and stops cleanly\n'
