"""`%effort`, `%model_settings` and the health in `%routing`, in a real kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fake_provider import FakeProvider
from tests.notebook._kernel import Kernel


@pytest.fixture(scope="module")
def file(fake: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "config.json"
    row = {"base_url": fake.url, "api_key": "k-0123456789abcdef"}
    settings = {"model": "openai/gpt-5", "providers": {"openai": row, "anthropic": row}, "max_retries": 0}
    path.write_text(json.dumps(settings))
    return path


@pytest.fixture(scope="module")
def kernel(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    running = Kernel(tmp_path_factory.mktemp("cwd"), {"LARIK_CONFIG": str(file)})
    running.run("%load_ext larik_nb")
    yield running
    running.close()


@pytest.fixture(autouse=True)
def _as_before(kernel: Kernel, file: Path) -> Iterator[None]:
    before = file.read_text()
    yield
    file.write_text(before)
    kernel.run("%effort auto")


def sent(fake: FakeProvider) -> dict[str, object]:
    body: dict[str, object] = fake.requests[-1][2]
    return body


def test_effort_is_this_notebooks_and_goes_out_at_once(kernel: Kernel, fake: FakeProvider, file: Path) -> None:
    before = file.read_text()
    assert kernel.run("%effort").plain.startswith("effort auto: the model's own")

    told = kernel.run("%effort max").plain
    kernel.run("%%larik\nhi")
    kernel.run("%%larik --session other\nhi")

    assert told == "effort max for this notebook · openai/gpt-5: reasoning.effort = high"
    assert [body["reasoning"]["effort"] for _, _, body in fake.requests[-2:]] == ["high", "high"]
    assert kernel.run("%larik effort").plain == told
    assert file.read_text() == before
    kernel.run("%effort auto")
    kernel.run("%%larik\nhi")
    assert "effort" not in sent(fake).get("reasoning", {})  # type: ignore[operator]


def test_an_effort_that_is_dropped_is_told_with_the_reason(kernel: Kernel) -> None:
    kernel.run("%model openai/gpt-4o")
    told = kernel.run("%effort low").plain
    kernel.run("%model openai/gpt-5")

    assert told == "effort low for this notebook · openai/gpt-4o: not sent: the model has no levels of effort"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%effort hihg", "there is no effort hihg. Did you mean high?"),
        ("%model_settings temprature=0.2", "there is no setting temprature. Did you mean temperature?"),
        ("%model_settings temperature=warm", "warm is no number"),
        ("%model_settings max_tokens=0.5", "max_tokens"),
        ("%model_settings openai/gpt-5 anthropic/x", "are several models"),
        ("%model_settings nobody/x", 'unknown model "nobody/x"'),
    ],
)
def test_a_slip_is_one_line_and_changes_nothing(kernel: Kernel, file: Path, line: str, says: str) -> None:
    before = file.read_text()

    ran = kernel.run(line)

    assert "LarikError" in ran.error
    assert says in ran.error
    assert file.read_text() == before


def test_settings_are_saved_told_and_sent(kernel: Kernel, fake: FakeProvider, file: Path) -> None:
    ran = kernel.run("%model_settings temperature=0.2 max_tokens=2000 reasoning_effort=low")

    assert json.loads(file.read_text())["model_settings"] == {
        "gpt-5": {"temperature": 0.2, "max_tokens": 2000, "reasoning_effort": "low"}
    }
    assert "model_settings.gpt-5.temperature: (none) → 0.2" in ran.plain
    assert "temperature is not sent to openai/gpt-5: the model takes no sampling settings" in ran.plain
    kernel.run("%%larik\nhi")
    body = sent(fake)
    assert (body["max_output_tokens"], body["reasoning"]["effort"]) == (2000, "low")  # type: ignore[index]
    assert "temperature" not in body


def test_the_table_tells_what_is_sent_what_is_not_and_why(kernel: Kernel) -> None:
    assert "nothing is set for openai/gpt-5" in kernel.run("%model_settings").plain
    kernel.run("%model_settings temperature=0.2 max_tokens=2000")
    kernel.run("%model_settings anthropic/claude-haiku-4-5 top_p=0.5")
    assert "top_p = 0.5" in kernel.run("%larik model_settings claude-haiku-4-5").plain
    kernel.run("%effort high")
    assert "not sent: reasoning_effort goes before it" in kernel.run("%model_settings claude-haiku-4-5").plain

    ran = kernel.run("%model_settings")
    lines = {line.split("  ")[0]: line for line in ran.plain.splitlines()}

    assert "not sent: the model takes no sampling settings" in lines["temperature"]
    assert "max_output_tokens = 2000" in lines["max_tokens"]
    assert "reasoning.effort = high" in lines["reasoning_effort"]
    assert lines["reasoning_effort"].endswith("%effort")
    assert "also set for claude-haiku-4-5: top_p=0.5" in ran.plain
    assert ran.saved[0]["data"]["text/markdown"].startswith("| setting | value | sent as | from |")


def test_a_value_is_unset_and_a_row_keeps_its_name(kernel: Kernel, file: Path) -> None:
    settings = json.loads(file.read_text())
    file.write_text(json.dumps(settings | {"model_settings": {"OpenAI/GPT-5": {"seed": 3, "top_p": 0.5}}}))

    kernel.run("%model_settings seed= max_tokens=100")
    assert json.loads(file.read_text())["model_settings"] == {"OpenAI/GPT-5": {"top_p": 0.5, "max_tokens": 100}}

    kernel.run("%model_settings top_p=auto max_tokens=")
    assert "model_settings" not in json.loads(file.read_text())


def test_a_question_that_begins_like_a_command_is_one(kernel: Kernel, fake: FakeProvider) -> None:
    begun = len(fake.requests)
    kernel.run("%larik effort matters in what way")

    assert len(fake.requests) == begun + 1


def test_words_are_completed(kernel: Kernel) -> None:
    def matches(code: str) -> list[str]:
        reply = kernel.client.complete(code, len(code), reply=True, timeout=30)
        return list(reply["content"]["matches"])

    assert matches("%effort hi") == ["high"]
    assert matches("%larik effort au") == ["auto"]
    assert matches("%model_settings temp") == ["temperature="]
    assert matches("%model_settings openai/gpt-5 reasoning_effort=me") == ["medium"]
    assert "openai/gpt-5" in matches("%model_settings openai/gpt-5")


def test_other_peoples_magics_stay(file: Path, tmp_path: Path) -> None:
    running = Kernel(tmp_path, {"LARIK_CONFIG": str(file)})
    try:
        running.run("from IPython.core.magic import register_line_magic")
        running.run("@register_line_magic\ndef effort(line): print('theirs')")
        running.run("%load_ext larik_nb")
        assert running.run("%effort").stdout == "theirs\n"
        assert "effort auto" in running.run("%larik effort").plain
    finally:
        running.close()


def test_routing_tells_who_cools_and_who_answered(kernel: Kernel, file: Path) -> None:
    settings = json.loads(file.read_text())
    roles = {"worker": "anthropic/fake:e=429:ra=50", "explore": "openai/fake:n=2"}
    settings |= {"roles": roles, "fallbacks": {"worker": ["openai/fake:n=2"]}}
    file.write_text(json.dumps(settings))

    kernel.run("%%larik -m worker\nhi")
    ran = kernel.run("%routing", watched=False)
    rows = {line.split("  ")[0]: line for line in ran.plain.splitlines()}

    assert "cooling " in rows["worker"]
    assert rows["worker"].endswith(" s (rate limited)")
    assert rows["explore"].endswith("answered")
