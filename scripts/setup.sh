#!/usr/bin/env bash
# Make .venv and install the package into it with one set of extras: scripts/setup.sh demo|dev
# A second run with nothing changed only compares a stamp.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/quietly.sh

extra=$1
stamp() { cat pyproject.toml larik_nb/_version.py constraints/*.txt scripts/setup.sh scripts/quietly.sh 2>/dev/null | cksum; }

say() { printf '\033[1m· %s\033[0m\n' "$*"; }
stop() { printf 'larik-nb: %s\n' "$*" >&2; exit 1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
        if new_enough "$candidate"; then echo "$candidate"; return; fi
    done
    if uv python find '>=3.11' 2>/dev/null; then return; fi
    stop "Python 3.11 or newer was not found. Install it, or name one: PYTHON=/path/to/python3.11 make $extra"
}

# The first that works of: the machine's uv, one from an earlier run, one put into .venv now.
find_uv() {
    local candidate
    for candidate in uv .venv/bin/uv; do
        if "$candidate" --version >/dev/null 2>&1; then echo "$candidate"; return; fi
    done
    .venv/bin/python -m pip install --quiet uv >&2 || stop "uv could not be installed with pip; see the lines above"
    echo .venv/bin/uv
}

make_venv() {
    local python; python=$(find_python)
    say "making .venv with $("$python" --version)"
    rm -rf .venv
    # --seed: a notebook in it can use %pip.
    if uv --version >/dev/null 2>&1; then
        uv venv --quiet --seed --python "$python" .venv
    else
        "$python" -m venv .venv \
            || stop "this Python cannot make virtual environments; on Debian: apt-get install python3-venv"
    fi
}

# What `dev` installs holds all that `demo` does.
for installed in "$extra" dev; do
    if [ -x .venv/bin/python ] && [ "$(cat ".venv/larik-$installed" 2>/dev/null)" = "$(stamp)" ]; then
        exit 0
    fi
done
if ! new_enough .venv/bin/python; then make_venv; fi

uv=$(find_uv)
say "installing larik-nb[$extra] into .venv (a minute or two the first time)"
constrain=()
if [ -f constraints/dev.txt ]; then constrain=(-c constraints/dev.txt); fi
# The extension has its own step, which shows its progress.
export LARIK_SKIP_LABEXTENSION=1
quietly .venv/larik-setup.log "$uv" pip install --python .venv/bin/python "${constrain[@]}" -e ".[$extra]"
stamp > ".venv/larik-$extra"
