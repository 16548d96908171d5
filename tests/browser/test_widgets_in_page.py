"""The routing wizard, the model picker and the cost meter in a real page: by keyboard alone, light and dark."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest

from tests.browser._axe import serious_faults
from tests.browser.conftest import ARTIFACTS, OUTPUTS, wait

if TYPE_CHECKING:
    from tests.browser.conftest import Lab

pytestmark = pytest.mark.browser

KEY = "sk-browser-0123456789abcdef"
VIEW = "application/vnd.jupyter.widget-view+json"
MODELS = 600
OPENS_MS, TYPES_MS = 1_000, 50

CARD = ".larik-wizard"
PICKER = ".larik-picker"
METER = ".larik-meter"


class _Lists(BaseHTTPRequestHandler):
    """Answers a provider's list of models: many, some of them hostile."""

    def do_GET(self) -> None:
        rows = [_listed(number) for number in range(MODELS - 1)]
        rows.append({"id": "<img src=x onerror=window.hacked=1>"})
        body = json.dumps({"data": rows}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _listed(number: int) -> dict[str, Any]:
    size = ("mini", "medium", "large")[number % 3]
    per_token = (number % 97 + 1) / 20_000_000
    return {
        "id": f"model-{size}-{number:03}",
        "context_length": 128_000 * (number % 8 + 1),
        "pricing": {"prompt": str(per_token), "completion": str(per_token * 4)},
        "supported_parameters": ["tools"] if number % 10 else [],
    }


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lists)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def config(lab: Lab, host: str, request: pytest.FixtureRequest) -> Path:
    path = lab.folder / f"{request.node.name.partition('[')[0]}.json"
    provider = {"type": "openai-compatible", "base_url": host, "api_key": KEY}
    prices = {"scripted/demo": {"input": 3, "output": 15}}
    path.write_text(json.dumps({"model": "scripted/demo", "providers": {"house": provider}, "pricing": prices}))
    return path


def setup(config: Path) -> str:
    return f"import os\nos.environ['LARIK_CONFIG'] = {str(config)!r}\n%load_ext larik_nb"


def show(lab: Lab, page: Any, index: int, node: str) -> None:
    lab.run(page, index)
    page.wait_for_selector(node, timeout=20_000)


def dark(page: Any) -> None:
    wait(page, "async () => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
    page.wait_for_function("() => document.body.dataset.jpThemeLight === 'false'")


def text(page: Any, node: str) -> str:
    return str(page.locator(node).first.inner_text())


def until(page: Any, node: str, wanted: str) -> None:
    page.wait_for_function(
        "([node, wanted]) => document.querySelector(node)?.innerText.includes(wanted)",
        arg=[node, wanted],
        timeout=15_000,
    )


def picture(page: Any, node: str, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    page.locator(node).first.screenshot(path=ARTIFACTS / f"{name}.png")


def outputs(page: Any, index: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page.evaluate(OUTPUTS, index)
    return found


def saved(lab: Lab, page: Any, file: str) -> Any:
    wait(page, "async () => window.jupyterapp.shell.currentWidget.context.save()")
    return nbformat.read(lab.folder / file, as_version=4)


@pytest.fixture
def wizard(lab: Lab, page: Any, config: Path, request: pytest.FixtureRequest) -> Callable[..., str]:
    def opened(*more: str) -> str:
        file = lab.notebook(request.node.name.partition("[")[0], setup(config), "%routing", *more)
        lab.open(page, file)
        lab.run(page, 0)
        show(lab, page, 1, CARD)
        page.wait_for_selector(f'{CARD} button[tabindex="0"]')
        page.locator(f'{CARD} tbody button[tabindex="0"]').focus()
        return file

    return opened


def test_the_whole_wizard_by_keyboard(lab: Lab, page: Any, config: Path, wizard: Callable[..., str]) -> None:
    """Preset, model, fallbacks in order, leash, budget, save; the page loaded anew shows what stayed."""
    file = wizard("%routing")
    until(page, CARD, "600 models")
    press = page.keyboard.press
    picture(page, CARD, "wizard-opens")

    press("p")
    press("p")  # the second preset
    page.wait_for_selector(f"{CARD} input[value=cheapest]:checked")
    until(page, f"{CARD} tbody", "worktree · 40 turns · minimal")
    picture(page, CARD, "wizard-preset")

    press("ArrowDown")  # smart
    press("Enter")
    page.wait_for_selector(f"{CARD} [role=option]")
    page.keyboard.type("large 1m")
    until(page, f"{CARD} .larik-list-count", " of 600")
    picture(page, CARD, "wizard-list")
    press("ArrowDown")
    press("Enter")
    until(page, f"{CARD} tbody", "house/model-large-")
    for query in ("medium 001", "mini 003"):
        press("f")
        page.keyboard.type(query)
        page.wait_for_function("node => document.querySelectorAll(node).length === 1", arg=f"{CARD} [role=option]")
        press("Enter")
    until(page, f"{CARD} tbody", "house/model-mini-003")
    press("ArrowDown")
    press("Shift+ArrowDown")
    page.wait_for_function(
        "card => [...document.querySelectorAll(`${card} .larik-is-then button`)].slice(0, 2).map(b => b.textContent).join() === 'house/model-mini-003,house/model-medium-001'",
        arg=CARD,
    )
    for _ in range(2):
        press("ArrowUp")
    press("ArrowDown")
    press("w")
    press("c")
    press("-")
    until(page, f"{CARD} tbody", "worktree · 90 turns · minimal")
    press("$")
    page.keyboard.type("2.5")
    press("Enter")
    until(page, f"{CARD} .larik-wizard-diff:not([hidden])", "budget.session_usd: (none) → 2.5")
    press("?")
    until(page, f"{CARD} .larik-wizard-help", "the next preset")
    picture(page, CARD, "wizard-edited")
    press("?")
    press("s")
    page.wait_for_selector(CARD, state="detached", timeout=15_000)

    written = json.loads(config.read_text())
    assert written["roles"]["smart"].startswith("house/model-large-")
    assert written["fallbacks"]["smart"] == ["house/model-mini-003", "house/model-medium-001"]
    assert written["role_options"]["smart"] == {"isolation": "worktree", "context": "minimal", "max_turns": 90}
    assert written["budget"] == {"session_usd": 2.5}
    (left,) = outputs(page, 1)
    assert set(left["data"]) == {"text/plain", "text/markdown"}
    assert "budget.session_usd: (none) → 2.5" in left["data"]["text/plain"]
    assert "the same as text: %routing " in left["data"]["text/plain"]
    notebook = saved(lab, page, file)
    assert "widgets" not in notebook.metadata
    assert KEY not in nbformat.writes(notebook)

    lab.open(page, file)
    show(lab, page, 2, CARD)
    until(page, f"{CARD} tbody", "house/model-large-")
    assert page.locator(f"{CARD} input[aria-label='Budget, USD a session']").input_value() == "2.5"
    assert "nothing changed" in text(page, CARD)
    notebook = saved(lab, page, file)  # while it is open
    assert "widgets" not in notebook.metadata
    assert notebook.cells[2].outputs[0]["data"]["text/markdown"].startswith("| role | model |")
    assert KEY not in nbformat.writes(notebook)
    page.locator(f'{CARD} tbody button[tabindex="0"]').focus()
    press("Escape")
    page.wait_for_selector(CARD, state="detached", timeout=15_000)
    assert not page.evaluate("() => window.hacked")


def test_what_was_not_saved_is_dropped_on_the_second_escape(
    page: Any, config: Path, wizard: Callable[..., str]
) -> None:
    before = config.read_text()
    wizard()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("w")
    until(page, CARD, "what changes: 1 role")
    page.keyboard.press("Escape")
    until(page, CARD, "Esc again drops what you changed")
    page.keyboard.press("Escape")
    page.wait_for_selector(CARD, state="detached", timeout=15_000)
    assert config.read_text() == before
    assert "role_options" not in outputs(page, 1)[0]["data"]["text/plain"]


def test_two_wizards_and_another_kernel_s_save_agree(
    lab: Lab, page: Any, config: Path, wizard: Callable[..., str]
) -> None:
    """What one saves the other shows at once; what somebody else wrote is shown before it is written over."""
    wizard("%routing")
    show(lab, page, 2, f".jp-Cell:nth-child(3) {CARD}, {CARD} >> nth=1")
    page.locator(CARD).nth(0).locator("tbody button").nth(1).focus()
    page.keyboard.press("w")
    page.keyboard.press("s")
    page.wait_for_function("card => document.querySelectorAll(card).length === 1", arg=CARD)
    until(page, f"{CARD} tbody", "worktree")
    until(page, f"{CARD} .larik-wizard-theirs", 'role_options.smart.isolation: (none) → "worktree"')

    told = json.loads(config.read_text())
    config.write_text(json.dumps({**told, "budget": {"session_usd": 9}}))
    page.locator(f"{CARD} tbody button").nth(2).focus()
    page.keyboard.press("c")
    until(page, CARD, "what changes: 1 role")
    page.keyboard.press("s")
    until(page, CARD, "somebody else changed the settings meanwhile")
    assert json.loads(config.read_text())["budget"] == {"session_usd": 9}
    assert "worker" not in json.loads(config.read_text())["role_options"]
    picture(page, CARD, "wizard-conflict")
    page.keyboard.press("s")
    page.wait_for_selector(CARD, state="detached", timeout=15_000)
    written = json.loads(config.read_text())
    assert written["budget"] == {"session_usd": 9}
    assert written["role_options"] == {"smart": {"isolation": "worktree"}, "worker": {"context": "minimal"}}


def test_it_opens_and_filters_without_a_wait(lab: Lab, page: Any, config: Path) -> None:
    """With 600 models: open within a second, and each key pressed in the filter drawn within 50 ms."""
    lab.open(page, lab.notebook("quick", setup(config), "%routing", "%routing"))
    lab.run(page, 0)
    show(lab, page, 1, CARD)  # the first loads anywidget
    page.keyboard.press("Escape")
    took = wait(
        page,
        """async card => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = 2;
  const started = performance.now();
  void window.jupyterapp.commands.execute('notebook:run-cell');
  const cell = notebook.widgets[2].node;
  while (!cell.querySelector(card)) await new Promise(resolve => requestAnimationFrame(resolve));
  return performance.now() - started;
}""",
        CARD,
    )
    until(page, f".jp-Notebook .jp-Cell:nth-of-type(3) {CARD}, {CARD}", "600 models")
    lags = wait(
        page,
        """async card => {
  const root = [...document.querySelectorAll(card)].at(-1);
  root.querySelector('tbody button').click();
  while (!root.querySelector('[role=option]')) await new Promise(resolve => requestAnimationFrame(resolve));
  const field = root.querySelector('[role=combobox]');
  const lags = [];
  for (const typed of ['m', 'mo', 'mod', 'mode', 'model l', 'model la', 'model large 5', 'zzz', '']) {
    const started = performance.now();
    field.value = typed;
    field.dispatchEvent(new Event('input', {bubbles: true}));
    root.offsetHeight;
    lags.push(performance.now() - started);
    await new Promise(resolve => requestAnimationFrame(resolve));
  }
  return lags;
}""",
        CARD,
    )
    print(f"opened in {took:.0f} ms; filter {max(lags):.1f} ms at most")
    assert took < OPENS_MS
    assert max(lags) < TYPES_MS
    assert page.locator("[role=option]").count() < 40


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_serious_for_those_who_do_not_see_it(
    page: Any, wizard: Callable[..., str], theme: str, lab: Lab, config: Path
) -> None:
    wizard("%model", "%%larik\nhi", "%%larik\nhello", "%larik cost")
    if theme == "dark":
        dark(page)
    until(page, CARD, "600 models")
    page.keyboard.press("p")
    until(page, CARD, "what changes")
    assert serious_faults(page, CARD) == []
    picture(page, CARD, f"wizard-{theme}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{CARD} [role=option]")
    assert serious_faults(page, CARD) == []
    picture(page, CARD, f"wizard-list-{theme}")
    show(lab, page, 2, PICKER)
    until(page, PICKER, "models")
    assert serious_faults(page, PICKER) == []
    picture(page, PICKER, f"picker-{theme}")
    for index in (3, 4):
        lab.run(page, index)
    show(lab, page, 5, METER)
    assert serious_faults(page, METER) == []
    picture(page, METER, f"meter-{theme}")


def test_the_picker_goes_on_with_what_is_chosen(lab: Lab, page: Any, config: Path) -> None:
    file = lab.notebook("picks", setup(config), "%model", "%model")
    lab.open(page, file)
    lab.run(page, 0)
    show(lab, page, 1, PICKER)
    until(page, PICKER, "scripted/demo · from model in")
    page.wait_for_function(
        "node => document.querySelector(node).innerText.includes('house/')", arg=PICKER, timeout=15_000
    )
    page.locator(f"{PICKER} [role=combobox]").focus()
    page.keyboard.type("large 002")
    page.wait_for_function("node => document.querySelectorAll(node).length === 1", arg=f"{PICKER} [role=option]")
    assert "$0.15/$0.6 · tools" in text(page, f"{PICKER} [role=option]")
    page.keyboard.press("Enter")
    page.wait_for_selector(PICKER, state="detached", timeout=15_000)
    (left,) = outputs(page, 1)
    assert left["data"]["text/plain"].startswith("scripted/demo → house/model-large-002")
    assert set(left["data"]) == {"text/plain", "text/markdown"}

    show(lab, page, 2, PICKER)
    until(page, PICKER, "house/model-large-002 · from %model")
    assert "widgets" not in saved(lab, page, file).metadata


def test_the_meter_follows_the_turns(lab: Lab, page: Any, config: Path) -> None:
    config.write_text(json.dumps({**json.loads(config.read_text()), "budget": {"session_usd": 0.05, "warn_at": 0.15}}))
    ask = ["%%larik\nWhat is a median?", "%%larik\nAnd a mean?", "%%larik\nAnd a mode?", "%%larik\nAnd a range?"]
    file = lab.notebook("meters", setup(config), ask[0], "%larik cost", *ask[1:])
    lab.open(page, file)
    for index in (0, 1):
        lab.run(page, index)
    show(lab, page, 2, METER)
    until(page, METER, "in 1 turn")
    for index in (3, 4, 5):
        lab.run(page, index)
    until(page, METER, "in 4 turns")
    page.wait_for_selector(f"{METER} svg .larik-meter-flag")
    assert page.locator(f"{METER} [role=meter]").get_attribute("aria-valuetext").endswith("near the budget")
    picture(page, METER, "meter-four-turns")
    page.locator(f"{METER} button", has_text="Close").click()
    page.wait_for_selector(METER, state="detached", timeout=15_000)
    (left,) = outputs(page, 2)
    assert set(left["data"]) == {"text/plain", "text/markdown"}
    assert "scripted/demo" in left["data"]["text/plain"]
    assert "⚑ turn " in left["data"]["text/plain"]
    assert "widgets" not in saved(lab, page, file).metadata
