"""Parameters of lists of runs: their order and their columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.model.run_groups import MAX_COLUMNS, field_named
from runvitals.model.run_sort import RunSort
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.runs.run_lists import ShownColumns

MAX_SPARKLINES = 5
MAX_SPARKLINE_RUNS = 200
_MAX_SORT_CHARACTERS = 1300

Columns = Annotated[
    list[str],
    Query(
        description="Fields whose values are returned: `config.…`, `summary.…`, `system.…`.",
        max_length=MAX_COLUMNS,
    ),
]


def fields_of(columns: list[str]) -> dict[str, str]:
    """Return the fields of columns by the client's names; raise InvalidFields for an unknown column."""
    try:
        return {name: field_named(name) for name in columns}
    except ValueError as error:
        raise InvalidFields({"columns": str(error)}) from None


@dataclass(frozen=True, slots=True)
class RequestedList:
    """The order and the columns of a list.

    Args:
        fields: by the names that the client uses.
    """

    sort: RunSort
    fields: dict[str, str]
    sparklines: tuple[str, ...]

    @property
    def shown(self) -> ShownColumns:
        """The columns that are read for the list."""
        return ShownColumns(tuple(dict.fromkeys(self.fields.values())), self.sparklines)


def requested_list(
    sort: Annotated[
        str,
        Query(
            description="`started_ms`, `name`, `id`, `group`, `job_type`, `state`, `project`, `entity`, "
            "`author`, `last_ms`, `duration_ms`, `verdict` (its severity), `lost_hours`, or a field: "
            "`config.…`, `summary.…`, `system.…`. Several are separated by commas; `-` before one means "
            "descending: `-summary.loss,name`. Runs without a value come last.",
            max_length=_MAX_SORT_CHARACTERS,
        ),
    ] = "started_ms",
    descending: Annotated[
        bool, Query(description="The highest, or newest, first: for a single name without `-`.")
    ] = True,
    columns: Columns = [],  # noqa: B006
    sparklines: Annotated[
        list[str],
        Query(
            description="Logged names, or keys or globs of metrics, whose means in at most 40 parts of the "
            f"run's time are returned; for at most {MAX_SPARKLINE_RUNS} runs a page.",
            max_length=MAX_SPARKLINES,
        ),
    ] = [],  # noqa: B006
) -> RequestedList:
    """Return the order and the columns of a list.

    Raises:
        HTTPException: 422 for an unknown column.
    """
    if any(len(key) > NAME_CHARACTERS for key in sparklines):
        raise InvalidFields({"sparklines": f"a key has at most {NAME_CHARACTERS} characters"})
    with answering(422):
        order = RunSort.parse(sort, descending)
    return RequestedList(order, fields_of(columns), tuple(dict.fromkeys(sparklines)))


TheList = Annotated[RequestedList, Depends(requested_list)]
