"""Setting up shows that it goes on, and what went wrong; the lists of packages only then."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BASH = shutil.which("bash")


def run(log: Path, command: str) -> subprocess.CompletedProcess[str]:
    if BASH is None:
        pytest.skip("bash was not found, which the scripts are written for")
    script = f"set -euo pipefail; . scripts/quietly.sh; quietly {log} sh -c '{command}'; echo next"
    return subprocess.run([BASH, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_what_goes_well_is_not_shown_but_kept(tmp_path: Path) -> None:
    log = tmp_path / "new" / "log"

    done = run(log, "echo + numpy 2.0; echo warning >&2; sleep 3.5")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [".", "next"]
    assert log.read_text() == "+ numpy 2.0\nwarning\n"


def test_what_fails_is_shown_whole_and_stops_the_script(tmp_path: Path) -> None:
    done = run(tmp_path / "log", "echo YN0000; echo no network >&2; exit 3")

    assert done.returncode == 3
    assert "YN0000\nno network\n" in done.stderr
    assert "status 3" in done.stderr
    assert "next" not in done.stdout


@pytest.mark.parametrize("script", ["setup.sh", "labextension.sh"])
def test_the_scripts_are_sound(script: str) -> None:
    if BASH is None:
        pytest.skip("bash was not found, which the scripts are written for")
    subprocess.run([BASH, "-n", ROOT / "scripts" / script], check=True)
