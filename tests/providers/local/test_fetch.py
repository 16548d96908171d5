"""Fetching from an address: every way a download can go wrong ends in the right file or a clear line."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from larik_nb.errors import ConfigError, Unreachable
from larik_nb.providers.local import cache, table
from larik_nb.providers.local.fetch import SPARE_BYTES, choose, fetch_model
from larik_nb.providers.local.table import IndexSource, Model, UrlSource

if TYPE_CHECKING:
    from tests.providers.local.conftest import Origin

MakeModel = Callable[..., Model]

IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from larik_nb.providers.local.fetch import fetch_model
from larik_nb.providers.local.table import Model, UrlSource

row = json.loads(sys.argv[1])
row["sources"] = tuple(UrlSource(**source) for source in row["sources"])
print(fetch_model(Model(**row), cache_dir=Path(sys.argv[2])))
"""


def _process(model: Model, root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS, json.dumps(asdict(model)), str(root)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def _part(model: Model, root: Path) -> Path:
    path = cache.path_of(model, root)
    return path.with_name(path.name + ".part")


def _wait_for(is_so: Callable[[], bool], limit_s: float = 15.0) -> None:
    until = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def test_the_file_is_whole_readable_and_alone(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """A fetch leaves the file, readable by all, its lock, and nothing else."""
    path = fetch_model(make_model(body, UrlSource(url=origin.url)))
    assert path.read_bytes() == body
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert sorted(entry.name for entry in path.parent.iterdir()) == [path.name, path.name + ".lock"]
    assert path.parent == root / "models"


def test_what_is_here_is_not_asked_for(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """The second fetch touches no network."""
    model = make_model(body, UrlSource(url=origin.url))
    assert fetch_model(model) == fetch_model(model)
    assert len(origin.asked) == 1


def test_progress_counts_up_to_the_whole(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """Progress grows, ends at the size, and names the source."""
    seen: list[tuple[int, int, str]] = []
    model = make_model(body, UrlSource(url=origin.url))
    fetch_model(model, progress=lambda done_bytes, total_bytes, source: seen.append((done_bytes, total_bytes, source)))
    counts = [done for done, _, _ in seen]
    assert counts == sorted(counts)
    assert seen[-1] == (len(body), len(body), origin.url.split("/")[2])


def test_a_cut_connection_goes_on_where_it_stopped(
    origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """Two cuts within one fetch cost no byte twice."""
    origin.cuts = [200_000, 400_000]
    assert fetch_model(make_model(body, UrlSource(url=origin.url))).read_bytes() == body
    assert [ask.get("range") for ask in origin.asked] == [None, "bytes=200000-", "bytes=400000-"]
    assert origin.asked[1]["if-range"] == origin.etag
    assert origin.sent == len(body)


def test_a_failed_fetch_goes_on_in_the_next(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """What came before the source went away is kept for the next fetch."""
    model = make_model(body, UrlSource(url=origin.url))
    origin.cuts = [100_000, 100_000]
    with pytest.raises(Unreachable, match=r"could not fetch local/tiny: 127.0.0.1.*larik local fetch tiny") as caught:
        fetch_model(model)
    other = "larik local fetch smollm2-135m"
    assert caught.value.message.endswith(f"Where that host cannot be reached, pip's can: {other}")
    assert fetch_model(model).read_bytes() == body
    assert origin.asked[-1]["range"] == "bytes=100000-"


def test_a_source_that_cuts_for_ever_is_given_up(
    origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """Tries are bounded even when each brings something."""
    origin.cuts = [(i + 1) * 50_000 for i in range(9)]
    with pytest.raises(Unreachable, match=r"cut 5 times, 0.2 of 0.6 MB are here"):
        fetch_model(make_model(body, UrlSource(url=origin.url)))


def test_a_server_without_ranges_is_asked_for_all(
    origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """Where the rest cannot be had alone the file begins anew."""
    origin.takes_ranges, origin.cuts = False, [200_000]
    assert fetch_model(make_model(body, UrlSource(url=origin.url))).read_bytes() == body
    assert origin.sent == 200_000 + len(body)


def test_a_file_that_changed_meanwhile_begins_anew(
    origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """A part of an older file is not continued with the new one."""
    model = make_model(body, UrlSource(url=origin.url))
    origin.body, origin.cuts = b"x" * len(body), [200_000, 200_000]
    with pytest.raises(Unreachable):
        fetch_model(model)
    origin.body, origin.etag = body, '"two"'
    assert fetch_model(model).read_bytes() == body


def test_a_part_of_something_else_is_found_out(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """A part that continues to the wrong hash is fetched once more, whole."""
    model = make_model(body, UrlSource(url=origin.url))
    part = _part(model, root)
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    assert fetch_model(model).read_bytes() == body
    assert [ask.get("range") for ask in origin.asked] == ["bytes=1000-", None]


def test_a_wrong_hash_deletes_and_says_so(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """Bytes that are not the model's never get its name."""
    model = make_model(body, UrlSource(url=origin.url), sha256="0" * 64)
    with pytest.raises(Unreachable, match=r"its sha256 is [0-9a-f]{12}…, not 000000000000…, so it was deleted"):
        fetch_model(model)
    assert not cache.path_of(model).exists()
    assert not _part(model, root).exists()
    assert len(origin.asked) == 1


def test_the_next_source_is_tried(
    make_origin: Callable[[bytes], Origin], origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """A source with wrong bytes, one that refuses, one that is right."""
    wrong = make_origin(bytes(len(body)))
    sources = [UrlSource(url=url) for url in (wrong.url, "http://127.0.0.1:9/x", origin.url)]
    assert fetch_model(make_model(body, *sources)).read_bytes() == body


def test_every_failing_source_is_named(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """The error has each source with its reason."""
    origin.status = 404
    sources = [UrlSource(url="http://127.0.0.1:9/x"), UrlSource(url=origin.url)]
    with pytest.raises(Unreachable) as caught:
        fetch_model(make_model(body, *sources))
    host = origin.url.split("/")[2]
    assert "127.0.0.1:9: " in caught.value.message
    assert f"{host}: HTTP 404" in caught.value.message
    assert "\n" not in caught.value.message


def test_another_file_is_refused_before_it_is_taken(
    origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """A log-in page of 20 bytes costs no hash and leaves no part."""
    origin.body = b"<html>log in</html>!"
    model = make_model(body, UrlSource(url=origin.url))
    with pytest.raises(Unreachable, match=r"it has 20 bytes there, not the 640,000 of this model"):
        fetch_model(model)
    assert not _part(model, root).exists()


def test_a_body_without_end_is_stopped(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """A server that tells no length cannot fill the disk."""
    origin.body, origin.says_length = body * 4, False
    with pytest.raises(Unreachable, match=r"it sends more than the 640,000 bytes"):
        fetch_model(make_model(body, UrlSource(url=origin.url)))
    assert origin.sent <= len(origin.body)


def test_a_redirect_is_followed(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """Hubs send on to their storage, by a relative address too."""
    moved = origin.url.replace("/model.gguf", "/moved")
    assert fetch_model(make_model(body, UrlSource(url=moved))).read_bytes() == body


def test_a_full_disk_is_said_before_anything_is_asked(
    origin: Origin, body: bytes, make_model: MakeModel, root: Path
) -> None:
    """The message has what is free, what is needed and where to move the cache."""
    model = make_model(body, UrlSource(url=origin.url))
    with pytest.raises(ConfigError, match=r"has 2 MB free, 65 MB are needed. Set LARIK_CACHE_DIR"):
        fetch_model(model, free_bytes=lambda folder: 2_000_000)
    assert origin.asked == []
    assert fetch_model(model, free_bytes=lambda folder: len(body) + SPARE_BYTES).read_bytes() == body


def test_a_cache_that_cannot_be_made_is_said(body: bytes, make_model: MakeModel, tmp_path: Path) -> None:
    """A file in the folder's place: one line with the remedy."""
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match=r"cannot make the folder .*LARIK_CACHE_DIR"):
        fetch_model(make_model(body, UrlSource(url="http://127.0.0.1:9/x")), cache_dir=tmp_path / "taken")


def test_two_processes_fetch_once(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """The second waits for the first and takes its file."""
    origin.gate_at = 100_000
    model = make_model(body, UrlSource(url=origin.url))
    both = [_process(model, root), _process(model, root)]
    _wait_for(lambda: origin.sent >= 100_000)
    origin.gate.set()
    paths = {process.communicate(timeout=20)[0].strip() for process in both}
    assert paths == {str(cache.path_of(model, root))}
    assert len(origin.asked) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
def test_a_killed_fetch_goes_on_in_the_next(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """Kill -9 in the middle leaves no lock and keeps what had come."""
    origin.gate_at = 300_000
    model = make_model(body, UrlSource(url=origin.url))
    process = _process(model, root)
    _wait_for(lambda: _part(model, root).exists() and _part(model, root).stat().st_size >= 200_000)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = _part(model, root).stat().st_size
    origin.gate.set()
    assert fetch_model(model).read_bytes() == body
    assert origin.asked[-1]["range"] == f"bytes={kept}-"


def test_choose_takes_what_is_here_best_first(make_model: MakeModel, root: Path) -> None:
    """A model on the disk wins over a better one elsewhere, and no source is asked."""
    best, last = (make_model(text, UrlSource(url="http://127.0.0.1:9/x")) for text in (b"best", b"last"))
    cache.folder("models")
    cache.path_of(last).write_bytes(b"last")
    asked: list[table.Source] = []
    assert choose([best, last], reachable=lambda source: bool(asked.append(source))) == last
    assert asked == []
    cache.path_of(best).write_bytes(b"best")
    assert choose([best, last]) == best


def test_choose_takes_the_best_that_answers(origin: Origin, body: bytes, make_model: MakeModel, root: Path) -> None:
    """Nothing here: the first with a source that answers, else the last."""
    dead = make_model(b"dead", UrlSource(url="http://127.0.0.1:9/x"))
    index = make_model(b"index", IndexSource(package="x", version="1", member="x", wheel_bytes=1))
    assert choose([dead, index]) == index
    assert choose([index, dead]) == index


def test_the_table_ends_with_what_can_be_had_everywhere() -> None:
    """The last resort needs a package index only; every row can be checked."""
    known = table.models()
    assert any(isinstance(source, IndexSource) for source in known[-1].sources)
    assert [len(bytes.fromhex(model.sha256)) for model in known] == [32] * len(known)
    assert sorted(known, key=lambda model: -model.parameters) == list(known)


def test_an_unknown_name_answers_with_the_nearest() -> None:
    """The message has the nearest name and all of them."""
    with pytest.raises(ConfigError, match=r"no local model is named 'smollm'. did you mean local/smollm2-135m?"):
        table.find("smollm")
    assert table.find("local/SmolLM2-135M") == table.models()[-1]
