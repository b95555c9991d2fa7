"""Every way to change `config` is recorded in the journal."""

from __future__ import annotations

import copy
import pickle
from argparse import Namespace
from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal import frames
from runvitals.journal.reader import read_run
from runvitals.journal.writer import JournalWriter
from runvitals.readers.journals.run_builder import MergedSection, RunBuilder
from runvitals.readers.journals.run_handle import now_ms, open_run
from runvitals.readers.journals.runs import RunList
from runvitals.sdk.recorded_dict import RecordedDict
from tests.sdk.runs import Journals, Start, succeeded

Change = Callable[[RecordedDict], Any]


def ior(fields: RecordedDict) -> None:
    fields |= {"lr": 0.2, "new": 1}


CHANGES: dict[str, Change] = {
    "item": lambda f: f.__setitem__("lr", 0.2),
    "attribute": lambda f: setattr(f, "lr", 0.2),
    "update": lambda f: f.update({"lr": 0.2}, new=3),
    "update with pairs": lambda f: f.update([("lr", 0.2)]),
    "ior": ior,
    "setdefault": lambda f: (f.setdefault("lr", 9), f.setdefault("new", [1])),
    "pop": lambda f: (f.pop("lr"), f.pop("missing", None)),
    "popitem": lambda f: f.popitem(),
    "clear": lambda f: f.clear(),
    "del": lambda f: f.__delitem__("lr"),
    "del attribute": lambda f: delattr(f, "lr"),
    "pop and set": lambda f: (f.pop("lr"), f.update(lr=5)),
    "an object's attributes": lambda f: f.update(Namespace(lr=0.3, wd=0.1)),
    "another mapping's": lambda f: f.update(UserDict(lr=0.4)),
    "others": lambda f: f.replace({"lr": 3, "new": [1]}),
    "itself": lambda f: f.replace(f),
    "clear and set": lambda f: (f.clear(), f.update(lr=5)),
}


def read(folder: Path) -> dict[str, Any]:
    facts = RunBuilder("abc")
    for record in read_run(str(folder)):
        facts.add(record)
    return facts.run(0).config


@pytest.mark.parametrize("name", CHANGES)
def test_journal_matches_the_dictionary(name: str, tmp_path: Path) -> None:
    journal = JournalWriter(str(tmp_path), "train.n1.1.1", {"run": "abc", "role": "train"})

    def write(changes: Any, removed: Any) -> None:
        record: dict[str, Any] = {"t": 1_760_000_000_000, "config": dict(changes)}
        journal.json(frames.INFO, {**record, "removed": {"config": list(removed)}})

    fields = RecordedDict(write, pytest.fail)
    fields.update(seed=1, lr=0.1, layers=[64, 64])
    assert read(tmp_path) == fields
    CHANGES[name](fields)
    assert read(tmp_path) == fields
    journal.close()


def test_entries_that_another_thread_removes_meanwhile() -> None:
    removed: list[str] = []

    def write(changes: Mapping[Any, Any], names: Sequence[Any]) -> None:
        removed.extend(names)
        for name in changes:
            dict.pop(fields, name)  # what another thread may do

    fields = RecordedDict(write, pytest.fail)
    assert fields.setdefault("lr", 0.1) == 0.1
    dict.update(fields, lr=0.2, seed=1)
    fields.replace({"lr": 3})
    assert removed == ["seed"]


def test_errors_are_those_of_a_dictionary() -> None:
    fields = RecordedDict(lambda changes, removed: pytest.fail("nothing is to be written"), pytest.fail)
    for wrong in (
        lambda: fields.pop("x"),
        lambda: fields.popitem(),
        lambda: fields.__delitem__("x"),
        lambda: fields["x"],
    ):
        with pytest.raises(KeyError):
            wrong()
    with pytest.raises(AttributeError):
        del fields.x
    for wrong_type in (5, "ab", int, None):
        with pytest.raises(TypeError):
            fields.update(wrong_type)
    fields.clear()
    fields.update()


def test_copies_record_nothing() -> None:
    written = []
    fields = RecordedDict(lambda changes, removed: written.append(changes), pytest.fail)
    fields["opt"] = {"lr": 0.1}
    for copied in (copy.copy(fields), copy.deepcopy(fields), pickle.loads(pickle.dumps(fields)), fields | {}):
        assert type(copied) is dict
        copied["x"] = 1
    assert len(written) == 1


Operation = tuple[int, str, int | None]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.none() | st.integers(0, 9))))
def test_latest_change_applies_in_any_order_of_records(changes: list[Operation]) -> None:
    """Also for removals: an earlier value of another writer does not reappear."""
    merged = MergedSection()
    by_time = sorted(changes, key=lambda change: change[0])
    for at, key, value in changes:
        if value is None:
            merged.remove([key], at)
        else:
            merged.update({key: value}, at)
    for key in "ab":
        newest = max((at for at, name, _ in by_time if name == key), default=None)
        last = [value for at, name, value in changes if name == key and at == newest]
        assert merged.values.get(key) == (last[-1] if last else None)


def test_training_that_changes_its_config(train: Start, journals: Journals) -> None:
    out, _ = succeeded(
        train("""
            import runvitals
            run = runvitals.init(id="run1", config={"lr": 0.1, "seed": 1, "opt": {"name": "adam"}})
            run.config |= {"lr": 0.2}
            run.config.setdefault("batch", 32)
            del run.config.seed
            run.config.pop("opt")
            run.config.net = {"depth": 3, "layers": [1]}
            run.config.net["depth"] = 4
            run.config.net["layers"].append(2)
            print(dict(run.config))
            run.finish()
        """)
    )
    assert open_run("run1", str(journals.directory)).config == eval(out)
    expected = {"lr": 0.2, "batch": 32, "net": {"depth": 4, "layers": [1, 2]}}
    assert eval(out) == expected
    listed = RunList(str(journals.directory)).run("run1", now_ms())
    assert listed is not None
    assert listed.config == expected


def test_config_that_is_assigned_or_modified_in_place(train: Start, journals: Journals) -> None:
    _, err = succeeded(
        train("""
            import argparse, runvitals
            first = runvitals.init(id="run1", config=argparse.Namespace(lr=0.1, opt={"name": "adam"}))
            runvitals.config |= {"seed": 1}
            runvitals.config["opt"]["name"] = "sgd"
            runvitals.finish()
            second = runvitals.init(id="run2", config={"lr": 0.1})
            runvitals.config |= {"seed": 2}
            assert runvitals.config is second.config and "config" not in vars(runvitals)
            second.config = {"seed": 3}
            runvitals.summary = {"best": 1}
            second.finish()
            second.config["late"] = second.summary["late"] = 1
            for wrong in (5, argparse.Namespace):
                try:
                    runvitals.init(id="run3", config=wrong)
                except TypeError:
                    continue
                assert not "raised"
        """)
    )
    directory = str(journals.directory)
    assert open_run("run1", directory).config == {"lr": 0.1, "opt": {"name": "sgd"}, "seed": 1}
    assert open_run("run2", directory).config == {"seed": 3}
    assert open_run("run2", directory).summary == {"best": 1}
    assert err.count("run run2 is finished; changes of its config are no longer recorded") == 1
    assert "cannot be written" not in err
    assert [folder.name for folder in journals.folders()] == ["run1", "run2"]
