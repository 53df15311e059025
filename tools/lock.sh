#!/bin/sh
# Writes a new requirements.lock: the newest versions that fit pyproject.toml, for every supported Python (`make lock`).
# The file holds versions only: no registry, no path, no build of this machine.
set -eu
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv

"$work/venv/bin/uv" pip compile pyproject.toml \
    --group dev --extra java --extra pandas \
    --universal --python-version 3.11 --no-header --no-emit-index-url --no-emit-find-links --quiet \
    --output-file "$work/lock"

{
    echo "# Every version that the clone's environment has: what Rekindle needs, its java and pandas extras, and the tools."
    echo "# Written by tools/lock.sh (make lock); do not edit by hand."
    cat "$work/lock"
} >"$work/requirements.lock"

if grep -nE '://|^-|file:|rekindle @' "$work/requirements.lock"; then
    echo "lock: the lines above name an address or a path; requirements.lock was left as it was." >&2
    exit 1
fi
mv "$work/requirements.lock" requirements.lock
