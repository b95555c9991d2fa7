"""Filters of `wandb.Api().runs()` as our own, and hostile ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.ending import Ending
from runvitals.model.filter import AllOf, AnyOf, Filter, Words
from runvitals.model.mongo_fields import BadFilter
from runvitals.model.mongo_filter import parse_filters
from runvitals.model.run import Run
from runvitals.readers.journals import run_filter
from runvitals.server.doors.wandb.run_nodes import OUR_STATES

T0 = 1_760_000_000_000  # 2025-10-09T08:53:20Z


def _run(run_id: str, **values: Any) -> Run:
    texts = {"project": "digits", "name": run_id, "group": None, "job_type": None, "tags": [], "notes": ""}
    empty: dict[str, Any] = {
        "command": [],
        "ending": Ending("finished"),
        "started_ms": T0,
        "ended_ms": T0 + 60_000,
        "duration_ms": 60_000,
        "config": {},
        "summary": {},
        "settings": {},
        "machines": {},
        "sources": {},
        "hosts": [],
        "ranks": [],
        "events": [],
        "lost_records": 0,
        "problems": [],
        "last": {},
    }
    return Run(id=run_id, **{**texts, **empty, **values})


RUNS = [
    _run("a", config={"lr": 0.1, "opt": {"name": "adam"}, "amp": True}, summary={"loss": 0.5}, tags=["base"]),
    _run(
        "b", config={"lr": 1, "opt": {"name": "sgd"}}, summary={"loss": 2.5}, tags=["base", "old"], group="g"
    ),
    _run("c", name="resnet-50", ending=Ending("lost"), config={"layers": [64, 32], "value": {"value": 7}}),
    _run("d", started_ms=T0 + 86_400_000, ending=Ending("stopped"), notes="see", job_type="eval"),
    _run("e", started_ms=T0 - 1500, ending=Ending("running"), ended_ms=None, config={"lr": "high"}),
]


def _ids(mongo_filter: object) -> str:
    terms = parse_filters(json.dumps(mongo_filter), OUR_STATES)
    return "".join(run.id for run in run_filter.matching(RUNS, Filter(terms=terms)))


@pytest.mark.parametrize(
    ("mongo_filter", "expected"),
    [
        ({}, "abcde"),
        (None, "abcde"),
        ({"state": "finished"}, "ab"),
        ({"state": "Crashed"}, "c"),
        ({"state": {"$in": ["killed", "running"]}}, "de"),
        ({"state": {"$ne": "finished"}}, "cde"),
        ({"state": {"$regex": "^(finished|lost)$"}}, "abc"),
        ({"state": "preempted"}, ""),
        ({"name": "a"}, "a"),
        ({"name": {"$in": ["a", "b", "nobody"]}}, "ab"),
        ({"displayName": "resnet-50"}, "c"),
        ({"display_name": {"$regex": "^res.*[0-9]+$"}}, "c"),
        ({"display_name": {"$regex": "^RES", "$options": "i"}}, "c"),
        ({"display_name": {"$not": {"$regex": "^res"}}}, "abde"),
        ({"display_name": {"$gt": "d"}}, "ce" if "resnet-50" > "d" else ""),
        ({"tags": "base"}, "ab"),
        ({"tags": {"$in": ["old", "base"]}}, "ab"),
        ({"tags": {"$nin": ["old"]}}, "acde"),
        ({"tags": {"$ne": "base"}}, "cde"),
        ({"tags": {"$all": ["old", "base"]}}, "b"),
        ({"tags": {"$size": 2}}, "b"),
        ({"tags": {"$size": 0}}, "cde"),
        ({"config.layers": {"$size": 2}}, "c"),
        ({"config.layers": {"$not": {"$size": 3}}}, "abcde"),
        ({"tags": None}, "cde"),
        ({"tags": {"$exists": True}}, "ab"),
        ({"tags": {"$regex": "^o"}}, "b"),
        ({"$or": [{"tags": None}, {"tags": {"$ne": "base"}}]}, "cde"),
        ({"group": "g"}, "b"),
        ({"group": None}, "acde"),
        ({"group": {"$in": ["g", None]}}, "abcde"),
        ({"jobType": "eval"}, "d"),
        ({"notes": {"$exists": False}}, "abce"),
        ({"config.lr": 0.1}, "a"),
        ({"config.lr.value": 0.1}, "a"),
        ({"config.lr": {"$gt": 0.01, "$lt": 0.5}}, "a"),
        ({"config.lr": {"$gte": 0.1}}, "ab"),
        ({"config.lr": {"$ne": 0.1}}, "bcde"),
        ({"config.lr": {"$in": [0.1, "high"]}}, "ae"),
        ({"config.lr": {"$nin": [0.1, "high"]}}, "bcd"),
        ({"config.lr": {"$in": []}}, ""),
        ({"config.lr": {"$not": {"$gt": 0.5}}}, "acde"),
        ({"config.lr": None}, "cd"),
        ({"config.lr": {"$ne": None}}, "abe"),
        ({"config.opt": {"$exists": True}}, "ab"),
        ({"config.opt.name": "adam"}, "a"),
        ({"config.opt.value.name": "adam"}, "a"),
        ({"config.opt.name": {"$regex": "^(adam|sgd)$"}}, "ab"),
        ({"config.amp": True}, "a"),
        ({"config.layers": [64, 32]}, "c"),
        ({"config.value.value": 7}, "c"),
        ({"summary_metrics.loss": {"$lt": 1}}, "a"),
        ({"summary.loss": {"$gt": 1}}, "b"),
        ({"keys_info.keys.loss": {"$exists": True}}, "ab"),
        ({"createdAt": {"$gt": "2025-10-09T12:00:00Z"}}, "d"),
        ({"created_at": {"$lt": "2025-10-09T08:53:19"}}, "e"),
        ({"created_at": {"$lte": "2025-10-09T08:53:18.500Z"}}, "e"),
        ({"created_at": {"$gte": "2025-10-10"}}, "d"),
        ({"created_at": "2025-10-09T10:53:20+02:00"}, "abc"),
        ({"duration": {"$gte": 60}}, "abcde"),
        ({"heartbeat_at": {"$gt": T0 / 1000 + 61}}, ""),
        ({"summary_metrics._runtime": {"$gt": 59}}, "abcde"),
        ({"summary_metrics._timestamp": {"$gt": T0 / 1000 + 61}}, ""),
        ({"sweep": None}, "abcde"),
        ({"sweep": "xyz"}, ""),
        ({"$and": [{"config.lr": {"$gt": 0.01}}, {"$or": [{"tags": "old"}, {"state": "running"}]}]}, "b"),
        ({"$nor": [{"tags": "base"}, {"state": "running"}]}, "cd"),
        ({"$not": {"tags": "base", "group": "g"}}, "acde"),
        ({"$or": []}, ""),
        ({"tags": "base", "group": "g"}, "b"),
    ],
)
def test_which_runs_a_filter_selects(mongo_filter: object, expected: str) -> None:
    assert _ids(mongo_filter) == expected


@pytest.mark.parametrize(
    ("mongo_filter", "message"),
    [
        ([], "expected an object"),
        ({"$where": "sleep(1e9)"}, r"unknown operator '\$where'"),
        ({"$and": {}}, "expected a list"),
        ({"nonsense": 1}, "unknown field 'nonsense'; expected one of .*config"),
        ({"config.": 1}, "unknown field"),
        (
            {"summary_metrics._wandb": {"$gt": 1}},
            "cannot be compared by 'summary_metrics._wandb'; .*_step",
        ),
        ({"config.lr": {"$mod": [2, 0]}}, r"config.lr: unknown operator '\$mod'"),
        ({"config.lr": {}}, "empty object"),
        ({"config.lr": {"$eq": {"a": 1}}}, "cannot be compared with"),
        ({"config.lr": {"$in": 3}}, "expected a list"),
        ({"tags": {"$in": "base"}}, "expected a list"),
        ({"tags": 3}, "expected a text"),
        ({"tags": {"$in": ["x"] * 10_001}}, "at most 10,000"),
        ({"tags": {"$gt": "x"}}, "not supported"),
        ({"tags": {"$size": "2"}}, r"invalid \$size '2'; expected 0 to 500"),
        ({"config.layers": {"$size": 501}}, r"invalid \$size 501"),
        ({"created_at": {"$gt": "yesterday"}}, "invalid time 'yesterday'"),
        ({"created_at": {"$gt": 1e300}}, "too large"),
        ({"duration": {"$gt": True}}, "expected a number of seconds"),
        ({"name": {"$regex": "("}}, "invalid regular expression"),
        ({"name": {"$regex": "a" * 501}}, "at most 500 characters"),
        ({"name": {"$regex": "(?=a)"}}, "invalid regular expression"),
        ({"name": {"$regex": 5}}, "expected a text"),
        ({"name": {"$regex": "a", "$options": "q"}}, r"unknown \$options"),
        ({"$or": [{"name": "a"}] * 201}, "too many conditions"),
        ({"config.lr": {"$in": list(range(300))}}, "too many conditions"),
    ],
)
def test_what_is_wrong_with_a_filter(mongo_filter: object, message: str) -> None:
    with pytest.raises(BadFilter, match=message):
        parse_filters(json.dumps(mongo_filter), OUR_STATES)


def test_hostile_texts_are_refused() -> None:
    for text, message in (
        ("{", "not JSON"),
        ("[" * 50_000, "nested too deeply"),
        ('{"$not":' * 5000 + "{}" + "}" * 5000, "nested too deeply"),
        ('{"$not":' * 20 + "{}" + "}" * 20, "nested too deeply"),
        ('{"name":' + '{"$not":' * 20 + '"a"' + "}" * 21, "nested too deeply"),
        (" " * 100_001, "100,001 characters"),
        ("9" * 5000, "not JSON|expected an object"),
        ('{"config.lr": ' + "9" * 5000 + "}", "."),
    ):
        with pytest.raises(BadFilter, match=message):
            parse_filters(text)


def test_an_expression_that_would_backtrack_takes_linear_time() -> None:
    assert _ids({"name": {"$regex": "(a*)*(a*)*(a|a)*b$"}}) == "b"


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
_names = st.sampled_from(
    [
        *("$and", "$or", "$not", "$in", "$gt", "$regex", "$options", "$exists", "$all", "$size"),
        *("name", "tags", "state", "config.x", "created_at", "duration", "sweep", "group"),
    ]
)
_filters = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3)
)


@given(_filters)
def test_any_filter_is_answered_or_refused(mongo_filter: object) -> None:
    try:
        terms = parse_filters(json.dumps(mongo_filter), OUR_STATES)
    except BadFilter:
        return
    run_filter.matching(RUNS, Filter(terms=terms))


@pytest.mark.parametrize(
    ("search", "texts", "kind"),
    [
        ("resnet", ["resnet"], AnyOf),
        ("resnet vit", ["resnet", "vit"], AnyOf),
        ('"quick fox" "b c"', ["quick fox", "b c"], AllOf),
    ],
)
def test_text_searches_words_and_phrases(search: str, texts: list[str], kind: type[AnyOf | AllOf]) -> None:
    (term,) = parse_filters(json.dumps({"$text": {"$search": search}}))
    assert isinstance(term.condition, kind)
    assert [each.condition for each in term.condition.terms] == [Words(text) for text in texts]
    for wrong in ("x", {}, {"$search": 5}, {"$search": ' "" '}):
        with pytest.raises(BadFilter, match=r"\$search"):
            parse_filters(json.dumps({"$text": wrong}))
