"""What looks like a secret does not leave: wherever it stands, however it is cut, and it is said."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from larik_nb import errors
from larik_nb.notebook import redact

KEYS = [
    "sk-ant-api03-Ab1Cd2Ef3Gh4Ij5Kl6Mn7",
    "sk-proj-abcdefghij0123456789",
    "sk-test-0123456789abcdefXYZ",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "AKIAABCDEFGHIJKLMNOP",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "gsk_0123456789abcdefghijABCDEF",
    "hf_abcdefghijklmnopqrstuv012345",
    "xoxb-0123456789-abcdefghijkl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\\nMIIEow\\n-----END PRIVATE KEY-----",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("around", ["{}", "a {} b", '{{"k": "{}"}}', "x={}\n", "['{}']", "| 0 | {} |"])
def test_a_key_goes_wherever_it_stands(key: str, around: str):
    text = around.format(key)

    assert key not in redact.literal(text)
    assert key not in redact.hidden(text)
    assert list(redact.told(redact.hidden(text), "x"))


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn-and-friends-2024 and hf_hub_download_file",
        "max_tokens=1000, MAX_TOKENS=128000, TOKEN_LIMIT = 4096",
        "tokens = tokenizer.encode(text)  # key insight",
        "api_key = os.environ['SERVICE_KEY']",
        "PASSWORD = os.environ['X']",
        "SECRET_KEY=${SECRET_KEY}",
        "primary key: id; foreign key: user_id",
        "f3b0c44298fc1c149afbf4c8996fb92427ae41e4 (a commit)",
        "someone@example.com 550e8400-e29b-41d4-a716-446655440000",
        "https://example.com/a?b=c#d",
        "the password is short",
        "{'month': 3, 'token': 'the'}",
    ],
)
def test_what_is_no_secret_stays(text: str):
    assert redact.hidden(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("export DB_PASSWORD=hunter2abc # x", "export DB_PASSWORD=[redacted: setting] # x"),
        ("postgres://ada:s3cr3t@db/x", "postgres://ada:[redacted: password]@db/x"),
        ('{"api_key": "abcd1234efgh"}', '{"api_key": "[redacted: secret]"}'),
        ("Authorization: Bearer abcdef123456789", "Authorization: Bearer [redacted: token]"),
    ],
)
def test_values_behind_telling_names_go_from_data(text: str, left: str):
    assert redact.hidden(text) == left


def test_of_a_settings_file_only_the_names_are_left():
    assert redact.dotenv("A=1\n# c\nexport B_x = 'two words'\n\nC=\n") == (
        "A=[redacted: setting]\n# c\nexport B_x = [redacted: setting]\n\nC=\n"
    )


def test_keys_in_use_and_secrets_of_the_environment_are_known(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OUR_DB_PASSWORD", "correct horse battery")
    monkeypatch.setenv("LONG_TOKEN_FILE", "/run/secrets/token")
    errors.keep_secret("plainlookingkey42")

    assert redact.literal("a correct horse battery, plainlookingkey42, /run/secrets/token") == (
        "a [redacted: known key], [redacted: known key], /run/secrets/token"
    )


@given(before=st.integers(0, 60), key=st.sampled_from(KEYS), limit=st.integers(1, 80))
def test_no_half_of_a_key_is_left_at_a_cut(before: int, key: str, limit: int):
    kept = redact.cut("x " * before + key + " y" * 4_000, limit)

    assert len(kept) <= limit
    assert not any(key[:size] in kept for size in range(12, len(key) + 1))


@given(st.text(), st.sampled_from(KEYS), st.text())
def test_a_planted_key_never_comes_through(before: str, key: str, after: str):
    glued = before[-1:].isascii() and before[-1:].isalnum()

    assert glued or key not in redact.hidden(before + key + after)


@given(st.text())
def test_redacting_twice_changes_nothing_more(text: str):
    once = redact.hidden(text)

    assert redact.hidden(once) == once


def test_where_it_was_is_told_by_line_and_many_are_counted():
    text = redact.hidden("\n".join(f"row {KEYS[0]}" for _ in range(9)))

    assert list(redact.told(text, "data.csv")) == [
        "⚠ redacted in data.csv: API key (line 1), API key (line 2), API key (line 3), API key (line 4), "
        "API key (line 5) and 4 more"
    ]
    assert list(redact.told("nothing", "x")) == []


@pytest.mark.parametrize(
    "unit", ["KEY", "eyJ-", "sk-", "sk-a ", "-----BEGIN PRIVATE KEY-----", "token", "token:'", "a://b:", "bearer ", "="]
)
def test_no_text_takes_long_to_look_through(unit: str):
    """Measured against the same size of plain words, so that a slow machine is no failure."""
    count = 200_000 // len(unit)

    def took(text: str) -> float:
        started = time.process_time()
        redact.hidden(text)
        return time.process_time() - started

    assert took(unit * count) < 40 * took("words " * (200_000 // 6)) + 1.0
