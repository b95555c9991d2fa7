"""A run's series with MLflow's names and units: `names=mlflow`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Query

from runvitals.base.buckets import Buckets, Grid
from runvitals.model.metrics import mlflow
from runvitals.readers.journals.run_handle import Names
from runvitals.readers.journals.series import Series, renamed_series
from runvitals.server.http.immediate import immediate
from runvitals.server.library.run_library import (
    BucketedSeries,
    ChartData,
    OpenedRun,
    RunVersion,
    RunView,
    SeriesSelection,
    SeriesSummary,
)
from runvitals.server.runs.routes.parameters import TheRun

T = TypeVar("T")


class MlflowView:
    """A view whose series have MLflow's names and units if MLflow has a name for them."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        host_memory = view.summaries(SeriesSelection((mlflow.OF_HOST,)))
        self._with_host_memory = {series.host for series in host_memory}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, name)

    def summaries(self, selection: SeriesSelection, skip: int = 0) -> list[SeriesSummary]:
        """See `RunView.summaries`."""
        return [self._summary(summary) for summary in self._view.summaries(selection, skip)]

    def samples(
        self, selection: SeriesSelection, t0: int, t1: int, at_most: int | None = None
    ) -> list[Series]:
        """See `RunView.samples`."""
        return [self._series(series) for series in self._view.samples(selection, t0, t1, at_most)]

    def read_chart(
        self, selection: SeriesSelection, t0: int, t1: int, on: Grid, max_points: int
    ) -> ChartData:
        """See `RunView.read_chart`."""
        chart = self._view.read_chart(selection, t0, t1, on, max_points)
        buckets = (
            None if chart.buckets is None else [self._rename_buckets(series) for series in chart.buckets]
        )
        return ChartData([self._series(series) for series in chart.samples], buckets)

    def read_buckets(self, selection: SeriesSelection, on: Grid) -> list[BucketedSeries]:
        """See `RunView.read_buckets`."""
        return [self._rename_buckets(series) for series in self._view.read_buckets(selection, on)]

    def _mlflow_name(self, key: str, host: str) -> tuple[str, float]:
        return mlflow.rename(key, host in self._with_host_memory) or (key, 1.0)

    def _summary(self, summary: SeriesSummary) -> SeriesSummary:
        key, factor = self._mlflow_name(summary.key, summary.host)
        low, high, last = (
            None if value is None else value * factor for value in (summary.min, summary.max, summary.last)
        )
        return replace(summary, key=key, min=low, max=high, last=last)

    def _series(self, series: Series) -> Series:
        return renamed_series(series, *self._mlflow_name(series.key, series.host))

    def _rename_buckets(self, series: BucketedSeries) -> BucketedSeries:
        key, factor = self._mlflow_name(series.key, series.host)
        return replace(
            series, key=key, buckets=series.buckets if factor == 1.0 else scale(series.buckets, factor)
        )


def scale(buckets: Buckets, factor: float) -> Buckets:
    """Return buckets in another unit."""
    low, high = buckets.min * factor, buckets.max * factor
    return replace(buckets, min=low, max=high, mean=buckets.mean * factor, last=buckets.last * factor)


class MlflowRun:
    """A run that is read through an `MlflowView`."""

    def __init__(self, run: OpenedRun) -> None:
        self._run = run

    def version(self) -> RunVersion | None:
        """See `OpenedRun.version`."""
        return self._run.version()

    async def use(self, work: Callable[[RunView], T], quick: bool = False) -> T:
        """See `OpenedRun.use`."""
        return await self._run.use(lambda view: work(cast(RunView, MlflowView(view))), quick)


RequestedNames = Annotated[
    Names, Query(description="`mlflow` returns MLflow's names and units for series that have one.")
]


@immediate
def with_requested_names(run: TheRun, names: RequestedNames = "runvitals") -> OpenedRun:
    """Return the run of the path, with the requested names."""
    return MlflowRun(run) if names == "mlflow" else run


TheNamedRun = Annotated[OpenedRun, Depends(with_requested_names)]
