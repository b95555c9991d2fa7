"""Which logged names and configuration values say how a training is going."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from runvitals.model.defined_metrics import definition_of

Direction = Literal["minimize", "maximize"]

_HELD_OUT = re.compile(r"(?:^|[^a-z])(?:val|valid|validation|eval|evaluation|test|dev|heldout)(?:$|[^a-z])")
_LOWER = re.compile(r"loss|nll|perplexity|ppl|(?:^|[^a-z])(?:error|err|wer|cer|mae|mse|rmse|fid)(?:$|[^a-z])")
_HIGHER = re.compile(
    r"acc(?:$|[^a-z])|accuracy|reward|(?:^|[^a-z])(?:f1|auc|auroc|bleu|rouge|iou|miou|map|ap|dice|psnr|ssim|r2|precision"
    r"|recall|return|score|win_rate)(?:$|[^a-z])"
)
_THROUGHPUT = re.compile(
    r"(?:tokens?|tok|samples?|images?|imgs?|examples?|sequences?|seqs?|iters?|it|steps?|batches|frames?)"
    r"[ _]?(?:/|_?per_?|p)[ _]?(?:s|sec|secs|second|seconds)(?:$|[^a-z])|throughput"
    r"|(?:^|[^a-z])(?:tps|fps)(?:$|[^a-z])"
)
_TOTAL_STEPS = (
    "max_steps",
    "total_steps",
    "num_training_steps",
    "num_train_steps",
    "train_steps",
    "training_steps",
    "num_steps",
    "n_steps",
    "max_iters",
    "total_iters",
    "num_iters",
    "train_iters",
    "max_iterations",
    "num_iterations",
    "iterations",
    "steps",
)
_TOTAL_EPOCHS = ("max_epochs", "num_train_epochs", "num_epochs", "total_epochs", "n_epochs", "epochs")
_MAX_DEPTH = 4


def choose_goal(
    names: Collection[str], defined: Mapping[str, Mapping[str, Any]]
) -> tuple[str, Direction | None] | None:
    """Return the name by which a run is judged, and whether less or more is better.

    One with a goal of `define_metric` comes first, then the loss or accuracy on held-out data, then the loss
    or accuracy of the training. None if no name is any of these.

    Example:
        >>> choose_goal(["lr", "train/loss", "val/loss"], {})
        ('val/loss', 'minimize')
    """
    with_goal = [name for name in names if definition_of(defined, name).get("goal")] if defined else []
    ranked = min(with_goal or names, key=lambda name: (_rank(name), len(name), name), default=None)
    if ranked is None or (not with_goal and _rank(ranked) == _LAST):
        return None
    return ranked, definition_of(defined, ranked).get("goal") or direction_of(ranked)


def direction_of(name: str) -> Direction | None:
    """Return whether less or more of a metric is better, as its name suggests."""
    name = name.lower()
    if _LOWER.search(name):
        return "minimize"
    return "maximize" if _HIGHER.search(name) else None


_LAST = 4


def _rank(name: str) -> int:
    """Return 0 for a held-out loss, then a held-out accuracy, a loss, an accuracy, and the rest."""
    direction = direction_of(name)
    if direction is None:
        return _LAST
    return (0 if _HELD_OUT.search(name.lower()) else 2) + (direction == "maximize")


def choose_throughput(names: Collection[str]) -> str | None:
    """Return the name that says how much is processed in a second: tokens or samples before steps."""
    candidates = [name for name in names if _THROUGHPUT.search(name.lower())]
    slow = re.compile(r"step|it(?:er)?s?[ _]?(?:/|p)|batch")
    return min(candidates, key=lambda name: (bool(slow.search(name.lower())), len(name), name), default=None)


def total_of(config: Mapping[str, Any], unit: Literal["step", "epoch"]) -> float | None:
    """Return how many steps or epochs a configuration asks for; None if it does not say.

    Example:
        >>> total_of({"trainer": {"max_steps": 10_000}}, "step")
        10000.0
    """
    spellings = _TOTAL_STEPS if unit == "step" else _TOTAL_EPOCHS
    values: dict[str, float] = {}
    for name, value in _leaves(config, 0):
        spelling = name.rpartition(".")[2].rpartition("/")[2].lower().replace("-", "_")
        if (
            spelling in spellings
            and not isinstance(value, bool)
            and isinstance(value, int | float)
            and value > 0
        ):
            values.setdefault(spelling, float(value))
    return next((values[name] for name in spellings if name in values), None)


def _leaves(section: Mapping[str, Any], depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, Mapping) and depth < _MAX_DEPTH:
            yield from _leaves(value, depth + 1)
        else:
            yield name, value
