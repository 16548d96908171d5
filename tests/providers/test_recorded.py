"""Recordings: the same events again, found by content, honest about what they do not have."""

from __future__ import annotations

import asyncio
import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from larik_nb import portal
from larik_nb.errors import APIError, ConfigError, RateLimited, ReplayMiss
from larik_nb.providers.recorded import Recorder, RecordingProvider, ReplayProvider, canonical
from larik_nb.providers.scripted import ScriptedProvider
from larik_nb.types import Block, Message, Request, StreamEvent, ToolSpec, Usage, assistant, tool_result, user


def request(*texts: str, **settings: object) -> Request:
    return Request(model="m", messages=tuple(user(text) for text in texts), **settings)


def events(provider: object, asked: Request) -> list[StreamEvent]:
    return list(portal.stream(provider, asked))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def test_replay_yields_the_same_events_for_free(path: Path):
    call = Block(type="tool_use", id="c1", name="add", input={"a": 1})
    reply = replace(assistant("words", call), usage=Usage(input=3, output=2))
    recorded = events(RecordingProvider(ScriptedProvider([reply]), path), request("hi"))

    replayed = events(ReplayProvider(path), request("hi"))

    assert replayed[:-1] == recorded[:-1]
    assert replayed[-1].message == replace(recorded[-1].message, cost_usd=0.0)


def test_equal_requests_are_told_apart_by_their_order(path: Path):
    recording = RecordingProvider(ScriptedProvider(["first", "second"]), path)
    for _ in range(2):
        events(recording, request("again"))

    replay = ReplayProvider(path)

    assert [events(replay, request("again"))[-1].message.text for _ in range(2)] == ["first", "second"]
    with pytest.raises(ReplayMiss, match="2×, and it was asked 3×"):
        events(replay, request("again"))


def test_recording_again_replaces(path: Path):
    for answer in ("old", "new"):
        events(RecordingProvider(ScriptedProvider([answer]), path), request("hi"))

    assert events(ReplayProvider(path), request("hi"))[-1].message.text == "new"


def test_several_providers_share_a_recorder(path: Path):
    recorder = Recorder(path)
    for answer in ("one", "two"):
        events(recorder.around(ScriptedProvider([answer])), request("hi"))

    assert [json.loads(line)["occurrence"] for line in path.read_text().splitlines()] == [1, 2]


def test_a_miss_shows_what_differs_from_the_nearest(path: Path):
    provider = RecordingProvider(ScriptedProvider(["a", "b"]), path)
    events(provider, request("something else"))
    events(provider, request("Why is\nthe sky blue?", system="Be brief.", max_tokens=100))

    with pytest.raises(ReplayMiss) as caught:
        events(ReplayProvider(path), request("Why is\nthe sky green?", system="Be brief.", max_tokens=100))

    lines = caught.value.diff.splitlines()
    assert "-user: the sky blue?" in lines
    assert "+user: the sky green?" in lines
    assert "something else" not in caught.value.diff
    assert "recording.jsonl" in str(caught.value)


def test_an_error_is_recorded_with_what_had_arrived(path: Path):
    error = RateLimited("slow down", status=429, retry_after=7.0, partial=assistant("half an"))
    with pytest.raises(RateLimited):
        events(RecordingProvider(ScriptedProvider([error]), path), request("hi"))

    replay = portal.stream(ReplayProvider(path), request("hi"))

    assert next(replay).text + next(replay).text == "half an"
    with pytest.raises(RateLimited) as caught:
        next(replay)
    assert (caught.value.status, caught.value.retry_after, caught.value.partial.text) == (429, 7.0, "half an")
    assert caught.value.message == error.message


def test_an_interrupted_exchange_is_not_recorded(path: Path):
    with portal.stream(RecordingProvider(ScriptedProvider(["a b c d"], delay_s=0.05), path), request("hi")) as stream:
        next(stream)

    assert not path.exists()


def test_a_torn_last_line_is_left_out_with_a_notice_and_written_over(path: Path):
    recording = RecordingProvider(ScriptedProvider(["one", "two"]), path)
    events(recording, request("1"))
    with path.open("a") as file:
        file.write('{"key": "abc", "occur')
    events(recording, request("2"))

    replay = ReplayProvider(path)
    first = events(replay, request("1"))

    assert first[0].type == "notice"
    assert "1 unreadable line left out" in first[0].text
    assert [e.type for e in events(replay, request("2"))] == ["text_delta", "done"]


def test_replay_is_instant_or_in_recorded_time(path: Path):
    times = iter([0.0, 1.0, 3.0, 3.5, 3.5])
    recorder = Recorder(path, clock=lambda: next(times))
    events(recorder.around(ScriptedProvider(["one two three"])), request("hi"))
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await asyncio.sleep(0)

    events(ReplayProvider(path, sleep=sleep), request("hi"))
    assert slept == []
    events(ReplayProvider(path, speed=2.0, sleep=sleep), request("hi"))
    assert slept == [0.5, 1.0, 0.25, 0.0]


def test_what_changes_from_run_to_run_does_not_change_the_key():
    """Usage, served model, signatures, thinking and a vendor's tool call ids are not the question."""

    def conversation(call_id: str, **facts: object) -> Request:
        blocks = (
            Block(type="thinking", text=f"hm {call_id}", signature=call_id),
            Block(type="tool_use", id=call_id, name="add", input={"a": 1}, provider=call_id),
        )
        answered = Message(role="assistant", blocks=blocks, **facts)
        return Request(model="m", messages=(user("hi"), answered, user(tool_result(call_id, "3"))))

    one = conversation("toolu_1", model="served-1", usage=Usage(input=1, output=1), cost_usd=0.1)

    assert canonical(one) == canonical(conversation("call_xyz"))
    assert canonical(one) != canonical(replace(one, effort="high"))
    assert canonical(one) != canonical(replace(one, tools=(ToolSpec(name="add"),)))


def test_images_are_kept_as_hashes():
    image = Block(type="image", media_type="image/png", data="QUJD" * 1000)
    asked = Request(model="m", messages=(user("see", image, tool_result("c", "x", images=[image])),))

    kept = json.dumps(canonical(asked))

    assert "QUJD" not in kept
    other = replace(image, data="QUJE")
    assert canonical(asked) != canonical(Request(model="m", messages=(user("see", other),)))


def test_a_recording_that_is_not_there_says_how_to_make_it(path: Path):
    with pytest.raises(ConfigError, match="--record"):
        ReplayProvider(path)


def test_an_empty_recording_says_so(path: Path):
    path.write_text("")

    with pytest.raises(ReplayMiss, match="holds no exchange"):
        events(ReplayProvider(path), request("hi"))


def test_the_file_is_for_its_owner_only(path: Path):
    events(RecordingProvider(ScriptedProvider(["x"]), path), request("hi"))

    assert path.stat().st_mode & 0o077 == 0


WHOLE = {"key": "k", "occurrence": 1, "provider": "p", "request": {"model": "m", "messages": []}}
DONE = [0.1, {"type": "done", "message": {"role": "assistant", "blocks": []}}]


@pytest.mark.parametrize(
    "line",
    [
        "7",
        "[]",
        "[" * 100_000,
        json.dumps({"key": "k", "occurrence": 1}),
        json.dumps({**WHOLE, "events": []}),
        json.dumps({**WHOLE, "events": [[0.1, {"type": "text_delta", "text": "a"}]]}),
        json.dumps({**WHOLE, "events": [7]}),
        json.dumps({**WHOLE, "events": [["soon", DONE[1]]]}),
        json.dumps({**WHOLE, "events": [[0.1, {"kind": "text_delta"}]]}),
        json.dumps({**WHOLE, "events": [], "error": {"class": "RateLimited"}}),
        json.dumps({**WHOLE, "events": [], "error": {"class": "ServerError", "message": "m", "exit": 1}}),
        json.dumps({**WHOLE, "events": [DONE], "provider": None}),
        json.dumps({**WHOLE, "events": [DONE], "request": []}),
        json.dumps({**WHOLE, "events": [DONE], "request": {"model": "m", "messages": [{"blocks": 7}]}}),
    ],
)
def test_a_line_that_cannot_be_played_is_left_out_whatever_was_done_to_it(path: Path, line: str):
    path.write_text(line + "\n")
    events(RecordingProvider(ScriptedProvider(["answer"]), path), request("hi"))

    played = events(ReplayProvider(path), request("hi"))

    assert "1 unreadable line left out" in played[0].text
    assert played[-1].message.text == "answer"


def test_a_recorded_error_is_one_of_ours_whatever_class_it_names(path: Path):
    events(RecordingProvider(ScriptedProvider(["answer"]), path), request("hi"))
    line = json.loads(path.read_text()) | {"events": [], "error": {"class": "classify", "message": "m"}}
    path.write_text(json.dumps(line))

    with pytest.raises(APIError, match="m"):
        events(ReplayProvider(path), request("hi"))


def test_a_recording_that_cannot_be_written_is_said_before_the_answer(tmp_path: Path):
    provider = ScriptedProvider(["answer"])

    with pytest.raises(ConfigError, match="cannot write the recording"):
        events(RecordingProvider(provider, tmp_path), request("hi"))

    assert provider.requests == []


class _FullDisk(Recorder):
    def write(self, line: dict[str, object]) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_is_full_by_then_costs_the_recording_and_not_the_answer(path: Path):
    played = events(RecordingProvider(ScriptedProvider(["answer"]), _FullDisk(path)), request("hi"))

    assert played[-2].text == "⚠ not recorded: recording.jsonl cannot be written (No space left on device)"
    assert played[-1].message.text == "answer"


def test_the_name_of_an_image_is_no_part_of_the_question():
    one = Block(type="image", media_type="image/png", data="QUJD", name="fig")

    requests = [Request(model="m", messages=(user("see", block),)) for block in (one, replace(one, name=None))]

    assert canonical(requests[0]) == canonical(requests[1])
