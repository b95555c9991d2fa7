"""The grammar of filter texts."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.model.filter import (
    AnyOf,
    FieldComparison,
    FieldMatch,
    Labelled,
    Predicate,
    Term,
    TextPattern,
    Words,
)
from runvitals.model.filter_text import MAX_LENGTH, FilterError, parse


def labelled(label: str, *patterns: TextPattern, negated: bool = False) -> Term:
    return Term(Labelled(label, patterns), negated)  # type: ignore[arg-type]


def compared(field: str, operator: str, value: float | str | bool, negated: bool = False) -> Term:
    return Term(FieldComparison((Predicate(field, operator, value),)), negated)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("resnet", Term(Words("resnet"))),
        ('"two words"', Term(Words("two words"))),
        ('-"two words"', Term(Words("two words"), negated=True)),
        ('"-"', Term(Words("-"))),
        ("1e-3", Term(Words("1e-3"))),
        ("state:failed", labelled("state", TextPattern("failed"))),
        ("state:failed,crashed", labelled("state", TextPattern("failed"), TextPattern("crashed"))),
        ("state!=failed", labelled("state", TextPattern("failed"), negated=True)),
        ("-state!=failed", labelled("state", TextPattern("failed"))),
        ("tag:base*", labelled("tag", TextPattern("base*", "glob"))),
        ('tag:"base*"', labelled("tag", TextPattern("base*"))),
        ('tag:"a, b",c', labelled("tag", TextPattern("a, b"), TextPattern("c"))),
        ('group:""', labelled("group", TextPattern(""))),
        ("name:res", labelled("name", TextPattern("res", "substring"))),
        ("name=res", labelled("name", TextPattern("res"))),
        ("-note:debug", labelled("note", TextPattern("debug", "substring"), negated=True)),
        ("author:ada", labelled("user", TextPattern("ada"))),
        ("device:node1/0000:17:00.0", labelled("device", TextPattern("node1/0000:17:00.0"))),
        ("config.lr>=1e-3", compared("config.lr", ">=", 0.001)),
        ("cfg.lr > 0.1", compared("config.lr", ">", 0.1)),
        ('config."my key"=1', compared("config.my key", "=", 1.0)),
        ("config.amp:true", compared("config.amp", "=", True)),
        ('config.seed:"1"', compared("config.seed", "=", "1")),
        ("-summary.loss<0.1", compared("summary.loss", "<", 0.1, negated=True)),
        ("exit_code!=0", compared("exit_code", "!=", 0.0)),
        ("id<m", compared("id", "<", "m")),
        ("duration>2h", compared("duration_ms", ">", 2 * HOUR_MS)),
        ("duration>=1d12h", compared("duration_ms", ">=", 1.5 * DAY_MS)),
        ("started>2026-11-01", compared("started_ms", ">", 1_793_491_200_000)),
        ("started<=2026-11-01T00:00+01:00", compared("started_ms", "<=", 1_793_487_600_000)),
        ("gpu.util<20", compared("system.gpu", "<", 20.0)),
        ("gpu.gpu<20", compared("system.gpu", "<", 20.0)),
        ("gpu.*.gpu<20", compared("system.gpu", "<", 20.0)),
        ("system.gpu.{i}.gpu.max>95", compared("system.gpu.max", ">", 95.0)),
        ("energy>1000", compared("system.energy", ">", 1000.0)),
    ],
)
def test_a_term(text: str, term: Term) -> None:
    assert parse(text) == (term,)


def test_terms_are_separated_by_spaces() -> None:
    terms = parse('  state:failed\tgpu.util<20\n"two words" -x ')
    assert [term.negated for term in terms] == [False, False, False, True]
    assert parse("  ") == ()


def test_or_between_terms() -> None:
    either = Term(AnyOf((labelled("tag", TextPattern("a")), compared("config.lr", "<", 1.0, negated=True))))
    assert parse("base tag:a or -config.lr<1 x") == (Term(Words("base")), either, Term(Words("x")))
    assert parse('a OR "or"') == (Term(AnyOf((Term(Words("a")), Term(Words("or"))))),)
    assert parse("orb -or") == (Term(Words("orb")), Term(Words("or"), negated=True))


def test_alternatives_of_a_field() -> None:
    (term,) = parse("config.model:resnet*,vit,7")
    assert term.condition == FieldComparison(
        (
            FieldMatch("config.model", TextPattern("resnet*", "glob")),
            Predicate("config.model", "=", "vit"),
            Predicate("config.model", "=", 7.0),
        )
    )
    (negated,) = parse("config.model!=vit,resnet")
    assert negated.negated
    assert len(negated.fields) == 2


@pytest.mark.parametrize(
    ("text", "wrong", "expected"),
    [
        ("ok stat:failed", "'stat:failed'", "unknown name 'stat'; expected one of state, tag, host"),
        ("http://x", "'http://x'", "or quote it"),
        ("state:fail", "'state:fail'", "expected one of running, crashed, failed"),
        ("state:", "'state:'", "expected a value of state"),
        ("state:failed,", "'state:failed,'", "expected a value of state"),
        ("state>failed", "'state>failed'", "expected state:value"),
        ("-", "'-'", "expected a term"),
        ('"no end', "'\"no'", "has no end"),
        ('"a"b', "'\"a\"b'", "expected a space before 'b'"),
        (":x", "':x'", "before ':'"),
        ("config.=1", "'config.=1'", "unknown name 'config.'"),
        ("duration>2", "'duration>2'", "expected e.g. 90s"),
        ("duration>h", "'duration>h'", "expected e.g. 90s"),
        ("started>yesterday", "'started>yesterday'", "expected e.g. 2026-11-01"),
        ("started=2026-11-01", "'started=2026-11-01'", "expected <, <=, > or >="),
        ("exit_code>x", "'exit_code>x'", "expected a number"),
        ("gpu.util.p95>3", "'gpu.util.p95>3'", "unknown name"),
        ("gpu.util<<3", "'gpu.util<<3'", "unknown operator '<<'; expected one of =, !="),
        ("config.lr =>3", "'config.lr", "unknown operator '=>'"),
        ("config.lr>1,2", "'config.lr>1,2'", "one value"),
        ("energy.max>1", "'energy.max>1'", "unknown name"),
        (f"tag:{'a' * 200}*", "'tag:aaa", "at most 150 characters"),
        ("x" * (MAX_LENGTH + 1), "the filter", "at most 2,000"),
        ("x " * 51, "the filter", "at most 50 terms"),
        (f"tag:{','.join('x' * 101)}", "the filter", "100 values"),
    ],
)
def test_an_error_names_the_term_and_what_is_allowed(text: str, wrong: str, expected: str) -> None:
    with pytest.raises(FilterError) as error:
        parse(text)
    assert str(error.value).startswith(wrong)
    assert expected in str(error.value)


@given(st.text(st.sampled_from('ab:="\\-,<>!*. \t\u00e9\u202e\0'), max_size=60))
def test_any_text_is_parsed_or_rejected_with_a_reason(text: str) -> None:
    with suppress(FilterError):
        assert bool(parse(text)) == bool(text.strip())


@given(st.lists(st.text(min_size=1, max_size=20).filter(lambda text: bool(text.strip())), max_size=10))
def test_quoted_texts_are_found_again(phrases: list[str]) -> None:
    quoted = " ".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in phrases)
    assert [term.condition for term in parse(quoted)] == [Words(text) for text in phrases]
