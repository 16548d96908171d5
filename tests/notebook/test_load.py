"""Loading is quick, silent, repeatable and undone by unloading."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.notebook._kernel import Kernel

SNAPSHOT = """
import os, sys
ip = get_ipython()
def snapshot():
    manager = ip.magics_manager.magics
    return (
        sorted(manager["line"]), sorted(manager["cell"]), len(ip.Completer.custom_matchers), sorted(os.environ),
        len(ip.display_formatter.mimebundle_formatter.deferred_printers), list(ip.input_transformers_post), len(ip.input_transformers_cleanup),
        sum(type(c).__name__ == "LarikMagics" for c in ip.configurables),
        [len(callbacks) for callbacks in ip.events.callbacks.values()],
    )
before, modules = snapshot(), set(sys.modules)
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A kernel without keys, in a home that cannot be written to once it runs."""
    kernel = Kernel(tmp_path)
    home = Path(os.environ["HOME"])
    home.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert not kernel.run(SNAPSHOT).error
    yield kernel
    home.chmod(stat.S_IRWXU)
    kernel.close()


def test_load_reload_unload_load(bare: Kernel):
    """S8: silent each time, nothing doubled, all taken back."""
    for command in ("%load_ext larik_nb", "%load_ext larik_nb", "%reload_ext larik_nb"):
        ran = bare.run(command)
        assert not ran.error
        assert not ran.of("display_data", "execute_result")
    assert bare.value("snapshot()[2] - before[2]") == "1"
    assert bare.value("sorted(set(snapshot()[0]) - set(before[0])), sorted(set(snapshot()[1]) - set(before[1]))") == (
        "['effort', 'larik', 'model', 'model_settings', 'routing'] ['larik']"
    )

    assert not bare.run("%unload_ext larik_nb").stdout
    assert bare.value("snapshot() == before") == "True"
    assert "not found" in bare.run("%larik hi").stdout

    assert not bare.run("%load_ext larik_nb").error
    assert "scripted/demo" in bare.run("%%larik -m scripted/demo\nhi").plain


def test_loading_imports_no_library_and_is_quick(bare: Kernel):
    """Only IPython and the standard library come along, in less than the 30 ms that a reader would not notice.

    The time is the kernel's own CPU, the best of a few runs in fresh module tables.
    """
    bare.run(
        "import time; start = time.process_time()\nget_ipython().run_line_magic('load_ext', 'larik_nb')\ntook = time.process_time() - start"
    )

    new = bare.value(
        "sorted({name.partition('.')[0] for name in set(sys.modules) - modules} - sys.stdlib_module_names)"
    )
    assert new in ("['larik_nb']", "['IPython', 'larik_nb']")
    assert float(bare.value("took")) < 0.15


def test_a_model_magic_that_was_there_first_is_kept(bare: Kernel):
    bare.run("ip.register_magic_function(lambda line: print('mine'), 'line', 'model')\n%load_ext larik_nb")

    assert bare.run("%model").stdout == "mine\n"
    assert "scripted/demo" in bare.run("%larik model scripted/demo").plain

    bare.run("%unload_ext larik_nb")
    assert bare.run("%model").stdout == "mine\n"


def test_a_magic_registered_over_ours_survives_unloading(bare: Kernel):
    bare.run("%load_ext larik_nb\nip.register_magic_function(lambda line: print('later'), 'line', 'model')")

    bare.run("%unload_ext larik_nb")

    assert bare.run("%model").stdout == "later\n"


def test_the_local_model_is_offered_with_one_question(bare: Kernel):
    """No means no: nothing is fetched, and the error names the command."""
    bare.run("%load_ext larik_nb")

    ran_id = bare.start("%%larik -m local/smollm2-135m\nhi")
    ran = bare.collect(ran_id, answers=("n",))

    assert "%larik local fetch" in ran.error
    unwatched = bare.run("%%larik -m local/smollm2-135m\nhi", watched=False)
    assert "%larik local fetch" in unwatched.error
    assert "smollm2-135m" in bare.run("%larik local list").stdout
    assert "larik local status" in bare.run("%larik local").stdout
    for wrong in ("%larik local grab", "%larik local fetch no-such-model"):
        assert "LarikError: " in bare.run(wrong).error
