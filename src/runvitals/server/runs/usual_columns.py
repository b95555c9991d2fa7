"""Which columns a list of runs shows until the user chooses: what judges the runs, and what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from runvitals.model.completion import MAX_VALUES, FieldChoice
from runvitals.model.names import STEP

MAX_CONFIG = 4
CONFIG = "config."
SUMMARY = "summary."
_FIRST = (
    *("lr", "learning_rate", "batch_size", "model", "arch", "optimizer", "weight_decay", "dropout"),
    *(
        "dataset",
        "epochs",
        "depth",
        "width",
        "hidden_size",
        "num_layers",
        "layers",
        "warmup_steps",
        "scheduler",
    ),
)
_LAST = re.compile(r"(?:^|[_.])(?:seed|id|uuid|name|time|timestamp|date|host|hostname|port|pid|user)$")
_PLACE = re.compile(r"(?:^|[_.])(?:path|dir|directory|folder|file|url|output|checkpoint|command)")


def logged_names(choices: Iterable[FieldChoice]) -> list[str]:
    """Return the names of the summary that are numbers."""
    return [
        choice.name.removeprefix(SUMMARY)
        for choice in choices
        if choice.name.startswith(SUMMARY) and choice.name != f"{SUMMARY}{STEP}" and choice.kind == "number"
    ]


def differing_config(choices: Sequence[FieldChoice]) -> list[str]:
    """Return the fields of the configuration in which runs differ, the most telling first.

    What is another text in nearly every run names the run and does not describe it.
    """
    differing = [
        choice
        for choice in choices
        if choice.name.startswith(CONFIG) and len(choice.values) > 1 and not _names_a_run(choice)
    ]
    differing.sort(key=_sort_key)
    return [choice.name for choice in differing[:MAX_CONFIG]]


def _names_a_run(choice: FieldChoice) -> bool:
    name = choice.name.lower()
    return _PLACE.search(name) is not None or (choice.kind == "text" and len(choice.values) >= MAX_VALUES)


def _sort_key(choice: FieldChoice) -> tuple[bool, int, int, str]:
    name = choice.name.removeprefix(CONFIG)
    last = name.rpartition(".")[2].rpartition("/")[2].lower().replace("-", "_")
    rank = _FIRST.index(last) if last in _FIRST else len(_FIRST)
    return _LAST.search(name.lower()) is not None, rank, name.count("."), name
