"""Answers that attack the page that shows them: nothing of theirs runs or is fetched, and what follows reads as ever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.test_turn import START, finished, saved

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser
pytest.importorskip("anywidget", reason="the extra widgets is not installed")

ATTACKS = r"""
<script>window.larikPwned = 1</script>
<img src="http://evil.invalid/a.png?q=1" onerror="window.larikPwned = 2">
<svg onload="window.larikPwned = 3"></svg><details open ontoggle="window.larikPwned = 4"><summary>x
![a](http://evil.invalid/b.png?secret=1) ![b][ref] [click](javascript:window.larikPwned=5) [data](data:text/html,<script>1</script>)
[ref]: http://evil.invalid/c.png
[safe‮gpj.exe](http://example.invalid/) <http://example.invalid/ok> <iframe src="http://evil.invalid/d"></iframe>
<div><b><style>body { background: url(http://evil.invalid/e) }</style></script></div></p></pre>
<link rel="stylesheet" href="http://evil.invalid/f"><meta http-equiv="refresh" content="0;url=http://evil.invalid/g"><base href="http://evil.invalid/">

- ```
  <script>window.larikPwned = 6</script>
  ```

$$\href{javascript:window.larikPwned=7}{x} \require{html} \style{position:fixed;top:0}{y} \class{z}{w} \def\frac#1#2{STOLEN} \renewcommand{\sqrt}[1]{STOLEN}$$

$\gdef\alpha{STOLEN}\let\beta=\frac\newcommand{\sum}{STOLEN}\includegraphics{http://evil.invalid/h.png}$

| a <script>window.larikPwned = 8</script> | `|` <img src=x onerror=window.larikPwned=9> |
| --- | --- |
| $x | <!-- |

<!-- \begin{align} \[ unclosed

```html
<script>window.larikPwned = 10</script>
"""
SETUP = f"""\
%load_ext larik_nb
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Block, Message
attack = {ATTACKS!r}
magics = get_ipython().magics_manager.magics["cell"]["larik"].__self__
answer = Message(role="assistant", blocks=(Block(type="thinking", text=attack), Block(type="text", text=attack)), model=attack)
page = "```html\\n<p onclick=1>shown</p>" + attack.replace("```", "") + "\\n```"
magics.session(None).model = ScriptedProvider([answer, page, "a\\ud800b"], delay_s=0.002)
"""
FORMULA = "from IPython.display import Markdown\nMarkdown('$\\\\frac{1}{2}$ and $\\\\sqrt{3} \\\\alpha$ **bold**')"
CELLS = "index => window.jupyterapp.shell.currentWidget.content.widgets[index].outputArea.node"


def _is_stopped(request: Any) -> bool:
    return "csp" in (request.failure or "").lower()


def test_an_attack_stays_text(lab: Lab, page: Any) -> None:
    """In the stream, the thinking, the model's name and an HTML frame; judged by what the browser did."""
    wanted: list[Any] = []
    page.on("request", lambda request: wanted.append(request))
    file = lab.notebook("hostile", SETUP, "%%larik\nq", FORMULA, "%%larik --format html\nq", "%%larik\nq", FORMULA)
    lab.open(page, file)
    lab.run(page, 0)
    for index in range(1, 6):
        page.evaluate(START, index)
        finished(page, index)
    page.wait_for_selector("mjx-mfrac", state="attached", timeout=20_000)
    page.wait_for_timeout(1_500)

    assert page.evaluate("() => window.larikPwned") is None
    strangers = [request for request in wanted if not request.url.startswith((lab.url, "data:", "blob:"))]
    # Now and then the browser tells of a request that the frame's policy then stops, before anything has left.
    assert [(request.url, request.failure) for request in strangers if not _is_stopped(request)] == []
    output = f"({CELLS})(1)"
    assert (
        page.evaluate(f"() => {output}.querySelectorAll('script, iframe, img, link, meta, base, style, form').length")
        == 0
    )
    links = page.evaluate("() => [...document.querySelectorAll('.jp-OutputArea a')].map(link => link.href)")
    assert [link for link in links if not link.startswith(("http", "mailto"))] == []
    assert page.evaluate(f"() => {output}.querySelectorAll('small').length") >= 1
    for index in (2, 5):
        shown = page.evaluate(f"index => ({CELLS})(index).innerHTML", index)
        assert "STOLEN" not in page.evaluate(f"index => ({CELLS})(index).textContent", index)
        assert "<strong>bold</strong>" in shown
        assert "mjx-mfrac" in shown
        assert "mjx-msqrt" in shown
    assert "widgets" not in json.loads(saved(lab, page, file))["metadata"]
