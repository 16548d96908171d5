#!/usr/bin/env bash
# Build the JupyterLab extension into larik_nb/labextension and let .venv's JupyterLab find it.
# Without Node it says so and leaves it out. With `check` it also runs the extension's own tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/quietly.sh
log=$PWD/.venv/larik-labextension.log

status=0
reason=$(.venv/bin/python scripts/build_labextension.py) || status=$?
if [ "$status" = 3 ]; then
    echo "SKIPPED the JupyterLab extension: $reason."
    exit 0
fi
[ "$status" = 0 ] || exit "$status"

PATH="$PWD/.venv/bin:$PATH"
sources() { (cd labextension && cat package.json yarn.lock tsconfig*.json && find src style schema test -type f | sort | xargs cat) | cksum; }
installed() { cat labextension/package.json labextension/yarn.lock | cksum; }

if [ "$(cat labextension/node_modules/.larik 2>/dev/null)" != "$(installed)" ]; then
    echo "· installing what the extension is built with (a minute the first time)"
    (cd labextension && quietly "$log" jlpm install --immutable)
    installed > labextension/node_modules/.larik
fi
if [ "${1:-}" = check ]; then
    (cd labextension && jlpm check && jlpm test)
fi
built=larik_nb/labextension/static/style.js
if [ ! -f "$built" ] || [ "$(cat labextension/lib/.larik 2>/dev/null)" != "$(sources)" ]; then
    echo "· building the extension"
    (cd labextension && quietly "$log" jlpm build:prod)
    sources > labextension/lib/.larik
fi

# A copy, for a link would let the next install of the package write and delete in what it ships.
place=.venv/share/jupyter/labextensions/larik-nb
if ! diff -rq larik_nb/labextension "$place" -x install.json >/dev/null 2>&1; then
    rm -rf "$place"
    mkdir -p "$(dirname "$place")"
    cp -R larik_nb/labextension "$place"
    cp labextension/install.json "$place"
fi
