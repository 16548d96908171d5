"""An answer on its way to the screen: few messages, few bytes, at once, one output that stays."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.fake_provider import FakeProvider, expected
from tests.notebook._kernel import DISPLAYS, Kernel, Ran


def sizes(ran: Ran) -> int:
    """Bytes of everything that was displayed."""
    return sum(len(json.dumps(content)) for content in ran.of(*DISPLAYS))


def busiest(ran: Ran) -> int:
    """The most displays in any one second."""
    times = ran.display_times
    return max(sum(at <= other < at + 1 for other in times) for at in times)


def test_a_long_answer_stays_within_its_bounds(kernel: Kernel):
    """S4, at a speed tests can wait for: messages a second, bytes, the exact text, one output, no stray fence."""
    ran = kernel.run("%%larik -m fake/fake:n=2000:d=2\nhi")

    text = expected("fake:n=2000:d=2")
    assert not ran.error
    assert busiest(ran) <= 10
    assert sizes(ran) <= 10 * len(text)
    assert len(ran.saved) == 1
    assert set(ran.saved[0]["data"]) == {"text/plain", "text/markdown"}
    assert ran.plain.startswith(text.rstrip() + "\n\nfake/fake:n=2000:d=2 · 12 in · 2k out")


MARKDOWN = """\
import asyncio
from larik_nb.providers.scripted import ScriptedProvider
words = "A paragraph of some words. " * 8
answer = "\\n\\n".join([words, "```python\\n" + "x = 1\\n" * 60 + "```", "- a\\n- b", "$$\\nx\\n$$", words] * 4)
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
magics.session("md").model = ScriptedProvider([answer] * 3, delay_s=0.0015)
"""


def test_finished_blocks_are_frozen_and_fences_closed_all_along(kernel: Kernel):
    assert not kernel.run(MARKDOWN).error
    answer = json.loads(kernel.value("__import__('json').dumps(answer)"))

    ran = kernel.run("%%larik --session md\nhi")

    drawn = [content["data"]["text/markdown"] for content in ran.of(*DISPLAYS)]
    assert len(drawn) > 10
    assert all(sum(line.startswith("```") for line in text.splitlines()) % 2 == 0 for text in drawn)
    assert all(text.count("$$") % 2 == 0 for text in drawn)
    assert max(map(len, drawn[:-1])) < len(answer) / 2
    assert sizes(ran) <= 10 * len(answer)
    assert busiest(ran) <= 10
    assert len(ran.saved) == 1
    assert ran.plain.startswith(answer.rstrip() + "\n\nscripted/script")


@pytest.mark.parametrize(
    "cell",
    [
        "for _ in [1]:\n    get_ipython().run_cell_magic('larik', '--session md', 'hi')",
        "%%time\n%larik --session md hi",
    ],
)
def test_nested_it_redraws_one_output_and_keeps_the_others(kernel: Kernel, cell: str):
    assert not kernel.run(MARKDOWN).error
    answer = json.loads(kernel.value("__import__('json').dumps(answer)"))

    ran = kernel.run(f"{cell}" if cell.startswith("%%") else f"print('before')\n{cell}\nprint('after')")

    assert not ran.of("clear_output")
    shown = [output for output in ran.saved if "data" in output]
    assert len(shown) == 1
    assert shown[0]["data"]["text/plain"].startswith(answer.rstrip())
    assert len(ran.of(*DISPLAYS)) > 3
    assert sizes(ran) <= 10 * len(answer)
    assert busiest(ran) <= 10


def test_captured_it_is_published_once(kernel: Kernel):
    ran = kernel.run("%%capture got\n%larik -m scripted/demo hi")

    assert not ran.of(*DISPLAYS)
    kernel.run("shown = [output.data['text/plain'] for output in got.outputs if output.data]")
    assert kernel.value("(len(shown), 'scripted/demo' in shown[0])") == "(1, True)"


def test_unwatched_it_is_published_once(kernel: Kernel):
    ran = kernel.run("%%larik -m scripted/demo\nhi", watched=False)

    assert len(ran.of(*DISPLAYS)) == 1
    assert not ran.of("clear_output")


def test_the_first_frame_is_there_at_once_and_the_last_at_the_end(kernel: Kernel):
    """The waiting line shows before the provider says anything."""
    kernel.run("%%larik -m scripted/demo\nwarm up")

    ran = kernel.run("%%larik -m fake/fake:n=100:d=5:f=700\nhi")

    first, text = ran.display_times[:2]
    assert first - ran.started < 0.25
    assert text - ran.started < 1.1
    waiting = ran.of(*DISPLAYS)[0]["data"]["text/markdown"]
    assert waiting == "<small>*fake/fake:n=100:d=5:f=700 · 0 s*</small>"


def test_an_interrupt_stops_a_stalled_stream_and_keeps_the_part(kernel: Kernel, fake: FakeProvider):
    """Within a second: the part stays and is billed, the server sees its socket close, the next turn works."""
    kernel.run("%%larik --new -m scripted/demo\nwarm up")
    kernel.run("%larik reset")
    request = kernel.start("%%larik -m fake/fake:n=20:d=1:stall=7\nhi")
    time.sleep(1.5)
    during = fake.open

    stopped = time.monotonic()
    kernel.interrupt()
    ran = kernel.collect(request)
    took = ran.messages[-1][0] - stopped

    assert took < 1.0
    assert fake.wait_until(lambda f: f.open < during, 1.0)
    assert ran.reply["status"] == "error"
    assert ran.of("error")[0]["ename"] == "Interrupted"
    assert ran.plain.startswith(expected("fake:n=7").rstrip())
    line = ran.plain.splitlines()[-1]
    assert re.match(r"fake/fake:n=20:d=1:stall=7 · ~\d+ in · ~\d+ out · cost unknown", line)
    assert line.partition("     ")[0].endswith(" s · interrupted")
    history = kernel.run("%larik history").plain.splitlines()
    assert history[-1].startswith("fake/fake:n=20:d=1:stall=7 (interrupted): ")
    again = kernel.run("%%larik -m fake/fake:n=3\nnext")
    assert not again.error
    assert len(fake.requests[-1][2]["messages"]) == 3


def test_an_interrupt_before_any_text_leaves_no_question_and_says_what_is_counted(kernel: Kernel):
    kernel.run("%larik reset")
    request = kernel.start("%%larik -m fake/fake:stall=0\nhi")
    time.sleep(0.7)
    kernel.interrupt()

    ran = kernel.collect(request)

    assert re.fullmatch(
        r"fake/fake:stall=0 · ~\d+ in · \d\.\d s · "
        r"interrupted before the answer, counted in case it was sent     session cost unknown",
        ran.plain,
    )
    assert re.search(r"fake/fake:stall=0 +1 +~\d+ +0 +0 +unknown", kernel.run("%larik cost").plain)
    assert kernel.run("%larik history").plain == "nothing was said yet"


def test_a_failure_before_any_text_leaves_only_the_error(kernel: Kernel):
    ran = kernel.run("%%larik -m fake/fake:e=529\nhi")

    assert [set(output) & {"data", "ename"} for output in ran.saved] == [{"ename"}]
