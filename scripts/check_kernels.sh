#!/usr/bin/env bash
# Run the tests of interrupts, Stop and async cells on ipykernels that hear clicks in other ways, each in an environment
# of its own that is thrown away: scripts/check_kernels.sh [VERSION…]
set -euo pipefail
cd "$(dirname "$0")/.."

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
[ $# -gt 0 ] || set -- "6.31.*" "7.1.*"
for version; do
    printf '\033[1m· ipykernel %s\033[0m\n' "$version"
    python=$place/$version/bin/python
    uv venv --quiet --python .venv/bin/python "$place/$version"
    LARIK_SKIP_LABEXTENSION=1 uv pip install --quiet --python "$python" \
        -e '.[widgets]' "ipykernel==$version" jupyter_client pytest hypothesis
    # Ours, not one that the user has installed by the same name.
    JUPYTER_PREFER_ENV_PATH=1 "$python" -m pytest -q -p no:cacheprovider \
        -W 'ignore::DeprecationWarning' tests/notebook/test_stop.py tests/notebook/test_async_cells.py
done
