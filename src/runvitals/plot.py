"""Charts of tables and of results, under the names of `wandb.plot`.

Example:
    run.log({"roc": runvitals.plot.roc_curve(labels, scores)})
"""

from runvitals.sdk.media.charts import (
    bar,
    confusion_matrix,
    histogram,
    line,
    line_series,
    plot_table,
    pr_curve,
    roc_curve,
    scatter,
    visualize,
)

__all__ = [
    "bar",
    "confusion_matrix",
    "histogram",
    "line",
    "line_series",
    "plot_table",
    "pr_curve",
    "roc_curve",
    "scatter",
    "visualize",
]
