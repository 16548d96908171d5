"""Values in prompts: enough of each, never too much, whatever its own code does."""

from __future__ import annotations

import base64
import itertools
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import larik_nb
from larik_nb import estimate
from larik_nb.notebook import _bounded, _images, describe
from tests.notebook.test_redact import KEYS

pd = pytest.importorskip("pandas")
np = pytest.importorskip("numpy")


def words(value: Any, form: str = "") -> str:
    return describe.value(value, form).text


# -- plain values -------------------------------------------------------------------------------------------------
SIMPLE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4) | st.tuples(inner)
    ),
    max_leaves=12,
)


@given(SIMPLE)
def test_a_small_value_is_its_repr(value: Any):
    assert _bounded.written(value, 10_000) == (repr(value), True)


@given(SIMPLE, st.integers(1, 50))
def test_a_long_value_is_its_reprs_beginning(value: Any, limit: int):
    text, whole = _bounded.written(value, limit)

    assert len(text) <= limit or whole
    assert repr(value).startswith(text.rstrip("…'\"")[: limit - 1].rstrip("'\"b\\")) or whole


def test_a_value_that_holds_itself_ends():
    loop: list[Any] = [1]
    loop.append(loop)

    assert words(loop) == "[1, …]"


def test_a_number_too_long_to_be_written_is_told_by_its_size():
    assert words(10**10_000) == "<whole number of 33,220 bits>"


def test_nested_data_have_a_schema_without_values():
    assert words({"a": [{"b": 12345}], "c": "private"}, "schema") == "{'a': list of 1: {'b': int}, 'c': str}"


# -- hostile values -----------------------------------------------------------------------------------------------
class Huge:
    def __repr__(self) -> str:
        return "x" * 5_000_000


class Endless:
    def __repr__(self) -> str:
        while True:
            pass


class EndlessList(list[int]):
    def __iter__(self) -> Iterator[int]:
        return itertools.count()

    def __len__(self) -> int:
        return sys.maxsize


class Liar:
    """Claims to be everything."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        return "a liar"


@pytest.mark.parametrize(
    "value",
    [Huge(), [Huge()] * 3, {"k": Huge()}, "y" * 9 and [list(range(100_000))], {n: n for n in range(100_000)}, b"z" * 10**6,
     EndlessList([1, 2]), Liar(), itertools.count(), (n for n in itertools.count()), iter(EndlessList())],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_no_value_is_more_than_it_may_be(value: Any):
    for form in ("", "repr", "type"):
        assert len(words(value, form)) < describe.LONGEST + 100
    assert len(describe.brief(value)) <= 121


def test_a_generator_is_not_consumed():
    numbers = iter(range(3))

    words(numbers)
    describe.brief(numbers)

    assert list(numbers) == [0, 1, 2]


def test_code_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_bounded, "LIMIT_S", 0.05)
    import threading

    with pytest.raises(_bounded.TooSlowError):
        words(Endless())

    assert not [thread for thread in threading.enumerate() if thread.name == "larik-describe"]


def test_a_failing_repr_spoils_no_list_of_variables():
    class Broken:
        def __repr__(self) -> str:
            raise ZeroDivisionError

    assert describe.brief(Broken()).endswith("Broken: no repr (ZeroDivisionError)>")


@pytest.mark.parametrize("key", KEYS)
def test_no_key_in_a_value_comes_through(key: str):
    values = [
        [key],
        {"k": key},
        pd.DataFrame({"k": [key]}),
        pd.DataFrame({"k": ["x" * 190 + " " + key]}),
        pd.Series([key], name=key),
        np.array([key]),
        ValueError(key),
        {"pad": "x " * 4_980, "k": key},
        type("K", (), {"__repr__": lambda _: key})(),
    ]
    for value in values:
        assert key not in words(value)
        assert key[:20] not in words(value)
        assert key[:20] not in describe.brief(value)


# -- tables -------------------------------------------------------------------------------------------------------
def test_a_table_is_its_columns_and_a_few_rows():
    frame = pd.DataFrame({"month": [1, 2], "note": [None, "a|b"]}, index=["p", "q"])

    assert words(frame).splitlines() == [
        "DataFrame of 2 rows, 2 columns",
        "",
        "| column | type | missing |",
        "| --- | --- | --- |",
        "| month | int64 | 0 |",
        f"| note | {frame.note.dtype} | 1 |",
        "",
        "all 2 rows",
        "",
        "|  | month | note |",
        "| --- | --- | --- |",
        f"| p | 1 | {frame.note.iloc[0]} |",
        "| q | 2 | a\\|b |",
    ]


def test_forms_of_a_table():
    frame = pd.DataFrame({"n": range(50)})

    assert "12" not in words(frame, "schema")
    assert words(frame, "head").startswith("first 20 of 50 rows")
    assert words(frame, "csv").splitlines()[:3] == ["n", "0", "1"]
    assert "mean" in words(frame, "stats")
    assert describe.forms(frame) == ("schema", "head", "stats", "csv", "repr", "type")


def test_tables_of_other_libraries_are_told_alike():
    polars, arrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    columns = {"n": [1, None], "s": ["a", "b|c"]}

    for table in (polars.DataFrame(columns), arrow.table(columns)):
        text = words(table)
        assert "of 2 rows, 2 columns" in text
        assert "| n | int64 | 1 |" in text.lower()
        assert "| 1 | None | b\\|c |" in text
        assert words(table, "csv") == "n,s\n1,a\n,b|c"
    assert "stats" not in describe.forms(arrow.table(columns))
    assert words(polars.LazyFrame(columns)) == "polars LazyFrame, lazy and not computed; columns: n Int64, s String"


def test_a_wide_table_names_what_is_left_out():
    frame = pd.DataFrame([[1] * 500])

    assert "and 440 more columns" in words(frame)
    assert "440 columns left out" in words(frame)


def test_grouped_rows_are_no_table():
    assert "DataFrameGroupBy" in words(pd.DataFrame({"a": [1]}).groupby("a"))


def _foreign(module: str, name: str, **methods: Any) -> Any:
    return type(name, (), {"__module__": module, **methods})()


def _must_not(*_: Any) -> Any:
    pytest.fail("it was computed")


@pytest.mark.parametrize(
    ("module", "name"),
    [("polars.lazyframe.frame", "LazyFrame"), ("dask.dataframe", "DataFrame"), ("pyspark.sql", "DataFrame"),
     ("duckdb", "DuckDBPyRelation")],
)  # fmt: skip
def test_what_is_lazy_is_not_computed(module: str, name: str):
    lazy = _foreign(
        module, name, collect=_must_not, compute=_must_not, head=_must_not, __len__=_must_not, __repr__=_must_not,
        toPandas=_must_not, fetchall=_must_not, shape=property(_must_not), collect_schema=lambda _: {"a": "Int64"},
    )  # fmt: skip

    for form in ("", "schema", "head", "csv", "stats"):
        assert "lazy and not computed" in words(lazy, form)
    assert describe.brief(lazy) == f"<lazy {name}>"


def test_an_array_is_its_shape_its_range_and_its_corners():
    array = np.arange(1_000_000, dtype="float64").reshape(1000, 1000)
    array[0, 0] = np.nan

    text = words(array)

    assert text.startswith("array of shape (1000, 1000), float64, from 1 to 999999, 1 missing\n[[")
    assert len(text) < 1_000
    assert words(array, "schema") == "array of shape (1000, 1000), float64"
    with np.printoptions(threshold=sys.maxsize):
        assert len(words(array)) < 1_000


# -- errors and code ----------------------------------------------------------------------------------------------
def test_an_exception_is_its_traceback():
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        text = words(error)

    assert text.startswith("Traceback (most recent call last):")
    assert text.endswith("ZeroDivisionError: division by zero")
    assert "_ = 1 / 0" in text


def test_an_exception_whose_words_have_no_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_bounded, "LIMIT_S", 0.05)

    class Bad(Exception):
        __str__ = Endless.__repr__

    with pytest.raises(_bounded.TooSlowError):
        words(Bad())


def test_a_function_is_its_source():
    assert "def test_a_function_is_its_source" in words(test_a_function_is_its_source)


# -- pictures -----------------------------------------------------------------------------------------------------
def only_image(value: Any) -> tuple[int, int]:
    (image,) = describe.value(value).images
    size = estimate.image_size(base64.b64decode(image.data or ""))
    assert size is not None
    return size


@pytest.fixture
def figure() -> Iterator[Any]:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, axes = pyplot.subplots()
    axes.plot([1, 2])
    yield figure
    pyplot.close(figure)


def test_a_figure_and_its_parts_are_images(figure: Any):
    size = only_image(figure)

    assert only_image(figure.axes[0]) == size
    assert only_image(np.array([figure.axes[0]])) == size
    assert only_image(figure.axes[0].lines[0]) == size


def test_a_large_figure_is_drawn_as_large_as_models_look(figure: Any):
    figure.set_size_inches(40, 20)

    assert 1_000 < max(only_image(figure)) <= _images.LONGEST_SIDE


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "1", "P", "CMYK", "F", "I"])
def test_an_image_is_made_as_large_as_models_look(mode: str):
    image = pytest.importorskip("PIL.Image").new(mode, (4_000, 1_000))

    assert only_image(image) == (1_568, 392)
    assert image.size == (4_000, 1_000)


def test_bytes_of_an_image_are_one_and_other_bytes_are_not():
    png = base64.b64decode(describe.value(pytest.importorskip("PIL.Image").new("L", (3, 2))).images[0].data or "")
    display = pytest.importorskip("IPython.display")

    assert only_image(png) == (3, 2)
    assert only_image(bytearray(png)) == (3, 2)
    assert only_image(display.Image(data=png)) == (3, 2)
    assert describe.value(b"GIF").images == ()


def test_a_picture_only_its_library_can_draw_says_how(monkeypatch: pytest.MonkeyPatch):
    said = describe.value(_foreign("plotly.graph_objs", "Figure", to_image=_must_not, _repr_mimebundle_=_must_not))

    assert said.images == ()
    assert said.notes == (
        'a plotly figure was sent as words only; for its picture: png = fig.to_image("png"), then {png}',
    )


# -- who says it --------------------------------------------------------------------------------------------------
def test_a_type_may_say_it_itself():
    class Patient:
        def _larik_describe_(self) -> str:
            return "patient 7"

    assert words(Patient()) == "patient 7"
    assert words(Patient, "").startswith("class Patient") or "Patient" in words(Patient)


def test_the_users_own_words_come_first_and_hold_for_what_is_derived(figure: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(describe, "_own", {})

    class Base:
        def _larik_describe_(self) -> str:
            return "not this"

    class Derived(Base): ...

    @larik_nb.describe(Base)
    def _(value: Base) -> list[Any]:
        return ["with a picture:", figure, {"n": 1}]

    said = describe.value(Derived())

    assert said.text == "with a picture:\n\n\n\n{'n': 1}"
    assert len(said.images) == 1


def test_own_words_are_bounded_and_redacted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(describe, "_own", {Huge: lambda _: KEYS[0] + "z" * 100_000})

    assert KEYS[0] not in words(Huge())
    assert len(words(Huge())) <= describe.LONGEST


def test_nothing_is_imported_to_look(monkeypatch: pytest.MonkeyPatch):
    names = ("pandas", "polars", "matplotlib", "PIL", "plotly", "pyarrow")
    before = {name for name in sys.modules if name.partition(".")[0] in names}

    for value in (1, [], Liar(), test_nothing_is_imported_to_look, types.SimpleNamespace(a=1), Path()):
        words(value)

    assert {name for name in sys.modules if name.partition(".")[0] in names} == before


@dataclass
class Point:
    x: int


def test_what_nobody_knows_is_its_repr():
    assert words(Point(1)) == "Point(x=1)"
    assert words(Point(1), "type").endswith("test_describe.Point")
    assert words(Path("a") / "b") == "a/b"
