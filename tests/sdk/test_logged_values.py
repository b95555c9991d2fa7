"""Conversion of logged values: none of them may break the training."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from runvitals.base.json_codec import dumps, loads
from runvitals.journal import frames
from runvitals.model.limits import RECORD_BYTES, RECORD_VALUES, ROW_NAMES
from runvitals.model.records import EVENT, INFO, decode
from runvitals.readers.journals.run_handle import open_run
from runvitals.sdk.arrays import BINS, LISTED, SAMPLED
from runvitals.sdk.logged_values import Values, without_secrets
from runvitals.sdk.media.base import Media
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.recorded_dict import RecordedDict
from tests.sdk.runs import Journals, Start, succeeded


def values() -> tuple[Values, list[str]]:
    reported: list[str] = []
    return Values(reported.append), reported


def row(data: Any) -> dict[str, Any]:
    kept = values()[0].row(data)
    assert loads(dumps(kept)) == kept or "nan" in str(kept)
    return kept


def raising(error: Exception) -> Callable[..., Any]:
    def method(*args: object) -> Any:
        raise error

    return method


class Broken:
    """Raises on every access."""

    __str__ = __repr__ = raising(ValueError("no text"))
    __getattr__ = raising(LookupError("no attributes"))
    item = tolist = raising(ZeroDivisionError("no number"))


class NoClass:
    """Raises even when its class is inspected."""

    @property
    def __class__(self) -> Any:
        raise OSError("nothing")


class NoAttributes:
    """Raises at every access to an attribute, with an error that `getattr` does not expect."""

    __getattribute__ = raising(OSError("nothing"))


class NoName(type):
    """A metaclass whose classes do not even have a name."""

    def __getattribute__(cls, name: str) -> Any:
        raise OSError(name)


class Nameless(metaclass=NoName):
    """Of this type not even the name can be read in the usual way."""


class NoLength(list[int]):
    __len__ = __iter__ = raising(OSError("no length"))


class NoItems(dict[str, int]):
    items = raising(OSError("no items"))


class NoBits(int):
    bit_length = raising(OSError("no bits"))


class NoFigure:
    """Claims to be a figure, and raises when it is asked."""

    __module__ = "matplotlib.figure"
    __getattr__ = raising(OSError("nothing"))


UNREADABLE = {
    "NoClass": NoClass, "NoAttributes": NoAttributes, "Nameless": lambda: Nameless(), "NoLength": NoLength,
    "NoItems": NoItems, "NoBits": lambda: NoBits(5), "NoFigure": NoFigure,
}  # fmt: skip


class BrokenMapping(Mapping[str, int]):
    def __getitem__(self, name: str) -> int:
        if name == "bad":
            raise OSError("not here")
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(("good", "bad"))

    def __len__(self) -> int:
        return 2


def test_types_of_numbers() -> None:
    data = {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": "text",
        "f": numpy.float32(0.5),
        "g": numpy.int64(3),
        "h": numpy.bool_(True),
        "i": numpy.array([7.0]),
        "j": numpy.float64(2.5),
        "k": numpy.longdouble(1.5),
        "l": Decimal("0.5"),
        "m": Fraction(1, 4),
        "n": numpy.ma.masked,
        "o": {"p": numpy.ma.masked},
    }
    reported = values()
    kept = reported[0].row(data)
    assert kept == {
        "a": 1,
        "b": 0.5,
        "c": True,
        "d": None,
        "e": "text",
        "f": 0.5,
        "g": 3,
        "h": True,
        "i": 7.0,
        "j": 2.5,
        "k": 1.5,
        "l": 0.5,
        "m": 0.25,
        "n": None,
        "o.p": None,
    }
    assert not reported[1]


def test_nested_mappings_become_dotted_names() -> None:
    assert row({"a": {"b": {"c": 1}}, "d": OrderedDict(e=2), "f": [{"g": 1}]}) == {
        "a.b.c": 1,
        "d.e": 2,
        "f": [{"g": 1}],
    }


@pytest.mark.parametrize("data", [{"a": {"b": 1}, "a.b": 2}, {"a": {1: 1, "1": 2}}])
def test_values_that_get_the_same_name_are_reported(data: dict[str, Any]) -> None:
    kept, reported = values()
    ((name, value),) = kept.row(data).items()
    assert value == 2
    assert reported == [f"a second value for the name {name!r}"]


def test_rows_that_are_not_mappings_raise() -> None:
    for wrong in (5, "loss", None, [("loss", 1)], Broken()):
        with pytest.raises(TypeError, match="mapping of names to values, not"):
            row(wrong)


BAD: list[object] = [
    Broken(),
    NoClass(),
    {"a": Broken()},
    [Broken()],
    {Broken(): 1},
    BrokenMapping(),
    10**5000,
    "x" * 20_000_000,
    b"x" * 20_000_000,
    "\ud800",
    complex(1, 2),
    object(),
    float,
    {1, 2},
    range(10**9),
    (number for number in (1, 2)),
    numpy.array(["a"] * 100),
    numpy.array([object()], dtype=object),
    numpy.full(100, numpy.nan),
    numpy.array([-1.7e308, 1.7e308] * 50),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_rest_of_a_row_is_kept(number: int) -> None:
    bad = BAD[number]
    kept = row({"before": 1, "bad": bad, "after": 2})
    assert (kept["before"], kept["after"]) == (1, 2)
    assert any(name.startswith("bad") for name in kept)
    config = values()[0].facts({"before": 1, "bad": bad, "after": 2})
    assert (config["before"], config["after"]) == (1, 2)
    assert len(dumps(config)) < 2 * RECORD_BYTES


def test_bad_nested_value_does_not_affect_others() -> None:
    assert values()[0].facts({"optimizer": {"lr": 0.1, "bad": Broken()}})["optimizer"]["lr"] == 0.1
    assert row({"a": BrokenMapping()}) == {"a.good": 1, "a.bad": "(BrokenMapping: OSError)"}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_value_whose_type_raises_leaves_what_is_beside_it(name: str) -> None:
    bad: Any = UNREADABLE[name]()
    kept, reported = values()
    media: list[tuple[str, object]] = []
    expected = {} if name == "NoItems" else {"bad": f"({name}: OSError)"}
    assert kept.row({"loss": 1.0, "bad": bad}, media) == {"loss": 1.0, **expected}
    nested = kept.facts({"net": {"lr": 0.1, "layers": [1, bad, 3], "bad": bad}})["net"]
    assert nested == {"lr": 0.1, "layers": [1, f"({name}: OSError)", 3], "bad": f"({name}: OSError)"}
    assert not media
    assert reported == [f"a value of type {name} that raises OSError"]
    assert kept.faults[reported[0]] > 1


class Loud(str):
    """A string whose own methods raise, except to hash it."""

    __hash__ = str.__hash__
    __eq__ = __str__ = __len__ = isascii = encode = raising(OSError("loud"))  # type: ignore[assignment]


class Optimizer(str, Enum):
    ADAM = "adam"


def test_strings_of_derived_types_are_their_text() -> None:
    kept, reported = values()
    assert kept.row({"a": Loud("x"), "b": [Loud("y")], "c": Optimizer.ADAM}) == {
        "a": "x",
        "b": ["y"],
        "c": "adam",
    }
    facts = kept.facts({"net": {Loud("key"): Loud("z"), Optimizer.ADAM: 1}})
    assert without_secrets(facts) == {"net": {"key": "z", "adam": 1}}
    assert not reported


def test_tags_that_exceed_a_record() -> None:
    kept, reported = values()
    assert kept.tags(["a", 5, "a", "", Broken()]) == ["a", "5", "(Broken: LookupError)"]
    assert kept.tags("one, two") == ["one", "two"]
    many = kept.tags(f"{number} {'x' * 300_000}" for number in range(2000))
    assert len(many) == 1000
    assert sum(map(len, many)) <= 128 * len(many)
    assert "more than 1000 tags" in reported


def test_cyclic_and_deep_values() -> None:
    cyclic: dict[str, Any] = {"loss": 1}
    cyclic["self"] = cyclic
    cyclic["both"] = [cyclic, cyclic]
    assert row(cyclic)["loss"] == 1
    deep: dict[str, Any] = {"loss": 1}
    for _ in range(5000):
        deep = {"a": deep}
    assert len(row({"deep": deep, "loss": 2})) == 2
    assert values()[0].facts({"deep": deep, "lr": 2})["lr"] == 2


class Sly(str):
    """A string that raises when compared, once it is in a mapping."""

    armed = False

    def __hash__(self) -> int:
        return 1 / 0 if Sly.armed else 5  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        raise ValueError


class Odd(float):
    def __float__(self) -> float:
        raise ValueError


def test_subclasses_of_strings_and_numbers() -> None:
    data = {Sly("a"): 1, "loss": 2}
    Sly.armed = True
    try:
        assert row(data) == {"a": 1, "loss": 2}
        assert values()[0].facts(data) == {"a": 1, "loss": 2}
        assert values()[0].facts({"in": data, "lr": 3})["lr"] == 3
    finally:
        Sly.armed = False
    assert row({"x": Odd(1), "loss": 2})["loss"] == 2


def test_name_whose_methods_raise() -> None:
    class Name(str):
        __eq__ = raising(ValueError("not comparable"))
        __hash__ = raising(ValueError("not hashable"))  # type: ignore[assignment]

    class Pairs(BrokenMapping):
        def items(self) -> Any:
            return [(Name("x"), numpy.float32(0.5))]

    class Once(str):
        def __hash__(self) -> int:
            if hasattr(self, "asked"):
                raise ValueError("hashed before")
            self.asked = True
            return str.__hash__(self)

    class Nobody:
        __getattribute__ = raising(LookupError("no attributes"))

    assert row({Nobody(): 1, "x": 2}) == {"(Nobody: LookupError)": 1, "x": 2}
    assert row(Pairs()) == row({Once("x"): numpy.float32(0.5)}) == {"x": 0.5}


def test_invalid_names() -> None:
    kept = row({(1, 2): 1, "": 2, 7: 3, None: 4, "x" * 600: 5, "_step": 6, "loss": 7})
    assert list(kept.values()) == [1, 2, 3, 4, 5, 6, 7]
    assert kept["7"] == 3
    assert "_step" not in kept


def test_rows_with_too_many_names_are_truncated_and_counted() -> None:
    kept, reported = values()
    assert len(kept.row({f"m{i}": i for i in range(1_000_000)})) == ROW_NAMES
    assert len(reported) == 1


def test_unreadable_mapping() -> None:
    class Closed(BrokenMapping):
        __iter__ = raising(OSError())  # type: ignore[assignment]

    kept, reported = values()
    assert kept.row(Closed()) == {"(unreadable)": "(Closed: OSError)"}
    assert kept.facts({"lr": 1, "x": Closed()})["lr"] == 1
    config = RecordedDict(lambda changes, removed: None, reported.append)
    config.update(Closed())
    assert len(set(reported)) == 1


def test_records_of_maximum_size_are_accepted_by_readers() -> None:
    kept = values()[0].facts({f"k{n}": n for n in range(RECORD_VALUES + 10)})
    assert decode(INFO, {"t": 1_760_000_000_000, "config": kept})[1] == {}
    marker = {"name": "marker", "level": "info", "text": values()[0].text(range(RECORD_VALUES))}
    assert values()[0].text([10**9] * RECORD_VALUES).endswith("…")
    event = values()[0].event(marker, {"layers": [1] * RECORD_VALUES, "t": 5, "level": 6})
    assert decode(EVENT, {"t": 1_760_000_000_000, **event})[1] == {}
    assert (event["name"], event["level"]) == ("marker", "info")
    assert "t" not in event


def test_faults_are_reported_once_and_counted() -> None:
    kept, reported = values()
    for _ in range(100):
        kept.row({"x": Broken()})
    assert len(reported) == 1
    assert list(kept.faults.values()) == [100]


def test_mapping_modified_by_another_thread() -> None:
    shared: dict[str, Any] = {"loss": 1.0, "inner": {}}
    stop = threading.Event()

    def change() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            for at in (shared, shared["inner"]):
                at[f"n{number % 100}"] = number
                at.pop(f"n{(number + 50) % 100}", None)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        kept = values()[0]
        for _ in range(300):
            assert kept.row(shared)["loss"] == 1.0
            assert kept.facts(shared)["loss"] == 1.0
    finally:
        stop.set()
        thread.join()


def test_arrays() -> None:
    assert row({"x": numpy.arange(LISTED)})["x"] == list(range(LISTED))
    histogram = row({"x": numpy.arange(1000.0).reshape(10, 100)})["x"]
    assert (histogram["_type"], histogram["count"], histogram["min"], histogram["max"]) == (
        "histogram",
        1000,
        0.0,
        999.0,
    )
    assert histogram["mean"] == 499.5
    assert len(histogram["values"]) == BINS == len(histogram["bins"]) - 1
    assert sum(histogram["values"]) == 1000


def test_the_histogram_of_an_array_is_media_too() -> None:
    media: list[tuple[str, object]] = []
    array = numpy.array([*range(999), numpy.nan])
    data = {"layer": {"w": array}, "short": numpy.arange(3), "names": numpy.array(["a"] * 99), "loss": 0.5}
    kept = values()[0].row(data, media)
    assert set(kept) == {"layer.w", "short", "names", "loss"}
    ((name, histogram),) = media
    assert isinstance(histogram, Media)
    value = histogram.item(RunFiles("/nonexistent"))["value"]
    assert (name, histogram.kind, value["count"], value["not_finite"]) == ("layer.w", "histogram", 1000, 1)
    assert (sum(value["counts"]), len(value["edges"])) == (999, len(value["counts"]) + 1)
    assert (value["min"], value["max"], value["mean"]) == (0, 998, 499)
    assert value["counts"] == kept["layer.w"]["values"]


def test_the_histogram_of_an_array_without_a_finite_value() -> None:
    media: list[tuple[str, object]] = []
    values()[0].row({"w": numpy.full(40, numpy.inf)}, media)
    ((_, histogram),) = media
    assert isinstance(histogram, Media)
    value = {"count": 40, "not_finite": 40, "counts": [], "edges": []}
    assert histogram.item(RunFiles("/nonexistent")) == {"value": value}


def test_other_objects_become_strings() -> None:
    moment = datetime(2026, 1, 2, tzinfo=timezone.utc)
    kept = row(
        {
            "a": moment,
            "b": numpy.datetime64("2026-01-02"),
            "c": numpy.complex64(1 + 2j),
            "d": Path("/data"),
            "e": pandas.DataFrame({"x": range(100)}),
            "f": pandas.Series(range(1000)),
            "g": Decimal("sNaN"),
        }
    )
    assert kept["a"] == str(moment)
    assert kept["b"] == "2026-01-02"
    assert kept["c"] == "(1+2j)"
    assert kept["d"] == "/data"
    assert kept["e"].startswith("     x")
    assert (kept["f"]["count"], kept["f"]["max"]) == (1000, 999)
    assert kept["g"] == "sNaN"


def test_large_arrays_are_sampled() -> None:
    looked_at = []

    class Watched(numpy.ndarray):  # type: ignore[type-arg]
        def tolist(self) -> Any:
            looked_at.append(self.size)
            return super().tolist()

    array = numpy.random.default_rng(1).normal(size=(300, 7, 1000)).view(Watched)
    array[17, 3, 11] = 1e6
    histogram = row({"x": array})["x"]
    assert (histogram["count"], histogram["max"]) == (2_100_000, 1e6)
    assert looked_at == [histogram["sampled"]]
    assert SAMPLED / 4 < histogram["sampled"] <= SAMPLED
    assert abs(histogram["mean"]) < 0.1


def test_histograms_exclude_nonfinite_numbers() -> None:
    histogram = row({"x": numpy.array([1.0, 2.0, numpy.nan, numpy.inf] * 20)})["x"]
    assert (histogram["min"], histogram["max"], histogram["not_finite"], histogram["count"]) == (
        1.0,
        2.0,
        40,
        80,
    )


def test_settings_that_exceed_a_record(train: Start, journals: Journals) -> None:
    _, err = succeeded(
        train("""
            import runvitals
            labels = {"a": "x" * 500_000, "\\ud800": "y"}
            tags = ["b", "a", "b", *map(str, range(2000))]
            run = runvitals.init(notes="n" * 20_000_000, tags=tags, settings={"labels": labels})
            run.log({"loss": 1})
            run.finish()
        """)
    )
    assert err.count("recorded as far as possible") == 3
    run = open_run("latest", str(journals.directory))
    assert (run.state, run.problems) == ("finished", [])
    assert run.facts.notes.startswith("nnn")
    assert (run.facts.tags[:3], len(run.facts.tags)) == (["b", "a", "0"], 1000)


def test_largest_step(train: Start, journals: Journals) -> None:
    succeeded(
        train("""
            import runvitals
            with runvitals.init(id="run1") as run:
                run.log({"n": 0}, step=2**53)
                run.log({"n": 1})
        """)
    )
    assert [r["step"] for r in journals.history("run1")] == [2**53, 2**53]


def test_training_continues_despite_bad_values(train: Start, journals: Journals) -> None:
    _, err = succeeded(
        train("""
            import runvitals
            class Broken:
                def __str__(self): raise ValueError
                __getattr__ = item = __str__
            cyclic = []
            cyclic.append(cyclic)
            run = runvitals.init(config={(1, 2): Broken(), "c": cyclic, "lr": 0.1})
            run.config["n"] = 10 ** 5000
            for step in range(3):
                run.log({"bad": Broken(), "loss": step, "c": cyclic})
            run.log({"loss": 3}, step=10**400)
            run.alert(Broken(), "x" * 20_000_000)
            run.mark("here", t=Broken(), name=1, type=2, level=3)
            run.finish()
        """)
    )
    assert [r["data"]["loss"] for r in journals.history()] == [0, 1, 2, 3]
    assert [r["step"] for r in journals.history()] == [0, 1, 2, 3]
    config = [r.value["config"] for r in journals.records() if r.type == frames.INFO and "config" in r.value]
    assert config[0]["lr"] == 0.1
    events = [r.value for r in journals.records() if r.type == frames.EVENT]
    assert [e["name"] for e in events if e["name"] in ("alert", "marker")] == ["alert", "marker"]
    [total] = [e for e in events if e["name"] == "values_mended" and e["count"] > 1]
    assert "6 times a value of type Broken that raises" in total["text"]
    assert err.count("a value of type Broken that raises TypeError:") == 1
