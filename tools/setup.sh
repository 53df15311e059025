#!/bin/sh
# Makes .venv in the clone, with the versions of requirements.lock and Rekindle itself (editable).
# The Makefile runs it when needed. It needs only a Python 3.11 to 3.14 and the package registry that pip is set up for.
# usage: setup.sh STAMP      PYTHON=/path/to/python chooses the interpreter
set -eu
cd "$(dirname "$0")/.."
stamp=$1
here=$(pwd)

say() { echo "setup: $*"; }
fail() {
    echo "setup: $*" >&2
    exit 1
}

# Prints the real path of $1 if it is a Python that Rekindle supports.
supported() {
    "$1" -c 'import sys; (3, 11) <= sys.version_info[:2] <= (3, 14) or sys.exit(1); print(sys.executable)' 2>/dev/null
}

candidates() {
    if [ -n "${PYTHON:-}" ]; then
        echo "$PYTHON"
        return
    fi
    names="python3 python3.11 python3.12 python3.13 python3.14 python"
    for name in $names; do
        command -v "$name" || true
    done
    home=${HOME:-$(cd ~ 2>/dev/null && pwd || true)}
    for folder in /usr/local/bin /usr/bin /opt/homebrew/bin "$home/.local/bin" "$home/.pyenv/shims" "$home"/.pyenv/versions/*/bin; do
        for name in $names; do
            if [ -x "$folder/$name" ]; then echo "$folder/$name"; fi
        done
    done
}

# Prefers a Python that can make a complete environment; falls back to one that only has pip (see make_environment).
find_python() {
    fallback=""
    while read -r candidate; do
        python=$(supported "$candidate") || continue
        if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            echo "$python"
            return
        fi
        if [ -z "$fallback" ] && "$python" -c 'import pip, venv' 2>/dev/null; then fallback=$python; fi
    done
    echo "$fallback"
}

make_environment() {
    # Debian without python3-venv has no ensurepip; the system's pip can then fill an environment made without one.
    "$1" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    "$1" -m venv --without-pip .venv && "$1" -m pip --python .venv/bin/python install --quiet --disable-pip-version-check pip
}

# A moved or copied environment still points at its old place, and one whose Python was removed does not start.
usable_environment() {
    [ -x .venv/bin/python ] && supported .venv/bin/python >/dev/null &&
        grep -qF "$here/.venv" .venv/bin/activate 2>/dev/null && .venv/bin/python -c 'import pip' 2>/dev/null
}

if ! usable_environment; then
    rm -rf .venv
    python=$(candidates | find_python)
    [ -n "$python" ] || fail "Rekindle needs Python 3.11 or newer with its venv module, and none was found${PYTHON:+ at $PYTHON};" \
        "install one (Debian and Ubuntu: apt-get install python3 python3-venv), or say where it is: make PYTHON=/path/to/python3."
    say "making .venv with $("$python" --version) ($python)"
    make_environment "$python" || fail "$python could not make an environment in $here/.venv; the lines above say why."
fi

rm -f .venv/.ready-*
say "installing the versions of requirements.lock"
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock ||
    fail "pip could not install requirements.lock; the lines above say why (is the package registry reachable?)."
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ||
    fail "pip could not install Rekindle from this clone; the lines above say why."
touch "$stamp"
say "done"
