"""The public names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import larik_nb


def python(code: str) -> str:
    """Return what a fresh interpreter prints, warnings being errors."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_list_of_names_is_sorted_and_every_one_is_there() -> None:
    assert larik_nb.__all__ == sorted(larik_nb.__all__)
    assert [name for name in larik_nb.__all__ if not hasattr(larik_nb, name)] == []
    assert set(larik_nb.__all__) <= set(dir(larik_nb))


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    code = "import larik_nb\ntry: larik_nb.nothing\nexcept AttributeError as exc: print(exc)"

    assert python(code).strip() == "module 'larik_nb' has no attribute 'nothing'"


def test_importing_is_silent_and_loads_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import larik_nb\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - {'larik_nb'}))"
    )

    assert python(code) == "[]\n"


def test_importing_starts_nothing() -> None:
    code = (
        "import larik_nb.portal, larik_nb.http, larik_nb.types, larik_nb.errors, threading\n"
        "print(threading.active_count(), larik_nb.portal._running, larik_nb.http._clients)"
    )

    assert python(code) == "1 None {}\n"


def test_connecting_imports_no_vendor_library() -> None:
    code = (
        "import sys, larik_nb\n"
        "for spec in ('anthropic/claude-opus-5', 'openai/gpt-5', 'gemini/gemini-3.8-flash', 'ollama/llama3', 'groq/x'):\n"
        "    larik_nb.connect(spec, api_key='k')\n"
        "heavy = {'anthropic', 'openai', 'google', 'httpx', 'httpx2', 'httpcore2', 'aiohttp', 'pydantic', 'pandas'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )

    assert python(code) == "[]\n"
