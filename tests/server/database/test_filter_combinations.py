"""Terms joined by and, or and not, regular expressions, and fields that are there or not."""

from __future__ import annotations

import pytest

from runvitals.model.filter import (
    AllOf,
    AnyOf,
    FieldComparison,
    FieldMatch,
    Filter,
    HasField,
    Labelled,
    Predicate,
    TagCount,
    Term,
    TextPattern,
)
from runvitals.server.metadata_store import MetadataStore
from tests.server.database.runs import T0, made, uids


@pytest.fixture(scope="module")
def four(shared_store: MetadataStore) -> MetadataStore:
    made(shared_store, "a", run={"name": "resnet-50", "tags": ["base", "old"]}, config={"lr": 0.1})
    made(shared_store, "b", run={"name": "resnet-101", "tags": ["base"]}, config={"opt": {"name": "adam"}})
    made(shared_store, "c", run={"name": "vit", "notes": "two\nlines"}, config={"opt": "sgd", "lr": 1})
    made(shared_store, "d", project="other", run={"name": "resnet-50"}, config={"opt": "adam"})
    return shared_store


def _is(field: str, operator: str, value: float | str) -> Term:
    return Term(FieldComparison((Predicate(field, operator, value),)))


def _label(label: str, text: str, kind: str = "regex") -> Term:
    return Term(Labelled(label, (TextPattern(text, kind),)))  # type: ignore[arg-type]


def _not(term: Term) -> Term:
    return Term(term.condition, not term.negated)


LARGE, ADAM = _is("config.lr", ">", 0.5), _is("config.opt.name", "=", "adam")


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (Term(AnyOf((LARGE, ADAM))), "bc"),
        (Term(AllOf((LARGE, ADAM))), ""),
        (Term(AnyOf(())), ""),
        (Term(AllOf(())), "abcd"),
        (_not(Term(AnyOf((LARGE, ADAM)))), "ad"),
        (Term(AllOf((_not(LARGE), Term(AnyOf((ADAM, _label("name", "^vit$"))))))), "b"),
        (Term(AnyOf((_not(_is("config.lr", ">", 0)), _not(_is("name", "=", "vit"))))), "abd"),
        (Term(HasField("config.lr")), "ac"),
        (Term(HasField("config.opt")), "bcd"),
        (Term(HasField("config.op")), ""),
        (_not(Term(HasField("config.opt.name"))), "acd"),
        (_label("name", "^resnet-(50|101)$"), "abd"),
        (_label("name", "(?i)VIT"), "c"),
        (_not(_label("name", "50")), "bc"),
        (_label("id", "[bc]"), "bc"),
        (_label("tag", "^b"), "ab"),
        (_not(_label("tag", "o")), "bcd"),
        (Term(TagCount(2)), "a"),
        (Term(TagCount(0), negated=True), "ab"),
        (_label("note", "lines$"), "c"),
        (_label("project", "^oth"), "d"),
        (_label("host", "node[12]"), "abcd"),
        (_label("group", "^$"), "abcd"),
        (_label("user", "."), ""),
        (_label("state", "^run"), "abcd"),
        (_label("state", "nothing"), ""),
        (Term(Labelled("name", (TextPattern("vit"), TextPattern("-50$", "regex")))), "acd"),
        (Term(FieldComparison((FieldMatch("config.opt", TextPattern("^s.d$", "regex")),))), "c"),
        (Term(FieldComparison((FieldMatch("config.unheard", TextPattern(".", "regex")),))), ""),
    ],
)
def test_which_runs_a_term_selects(four: MetadataStore, term: Term, expected: str) -> None:
    assert "".join(sorted(uids(four, Filter(terms=(term,))))) == expected


def test_regular_expressions_of_a_project_leave_other_projects_alone(four: MetadataStore) -> None:
    run_filter = Filter(project="digits", terms=(_label("name", "resnet"),))
    assert sorted(uids(four, run_filter)) == ["a", "b"]
    assert four.runs.count(run_filter, T0) == 2


def test_an_invalid_expression_is_an_error_of_the_request(four: MetadataStore) -> None:
    with pytest.raises(ValueError, match="invalid regular expression"):
        uids(four, Filter(terms=(_label("name", "(a"),)))
    with pytest.raises(ValueError, match="invalid regular expression"):
        uids(four, Filter(terms=(_label("name", r"(a)\1"),)))  # could take exponential time
