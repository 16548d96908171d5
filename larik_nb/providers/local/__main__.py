"""`python -m larik_nb.providers.local`: the commands of `larik local`."""

from __future__ import annotations

import sys

from larik_nb.providers.local.commands import cli

if __name__ == "__main__":
    sys.exit(cli(sys.argv[1:]))
