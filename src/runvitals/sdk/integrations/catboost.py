"""For `fit()` of CatBoost.

https://catboost.ai/docs/en/concepts/python-reference_catboost_fit
"""

from __future__ import annotations

from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, log_importances, log_model_file


class CatBoostCallback:
    """Logs the metrics of each iteration.

    Args:
        metric_period: log every so many iterations.
        settings: arguments for `runvitals.init` if no run is open.

    Example:
        >>> model.fit(x, y, eval_set=(x_test, y_test), callbacks=[CatBoostCallback(project="credit")])
    """

    def __init__(self, metric_period: int = 1, **settings: Any) -> None:
        if metric_period < 1:
            raise ValueError(f"invalid metric_period={metric_period!r}: expected 1 or more iterations")
        self._callback = CallbackRun(0, settings)
        self._period = metric_period

    def after_iteration(self, info: Any) -> bool:
        """Log a row; the training goes on."""
        if info.iteration % self._period == 0:
            row = {"iteration": info.iteration}
            for data, metrics in info.metrics.items():
                row.update({f"{data}-{name}": values[-1] for name, values in metrics.items()})
            self._callback.run().log(row)
        return True


def log_summary(
    model: Any,
    log_all_params: bool = True,
    save_model_checkpoint: bool = False,
    log_feature_importance: bool = True,
    **settings: Any,
) -> None:
    """Log the parameters, best scores and importances of a fitted model and, if asked, the model."""
    run = CallbackRun(0, settings).run(model.get_all_params() if log_all_params else model.get_params())
    run.summary["best_iteration"] = model.get_best_iteration()
    for data, scores in (model.get_best_score() or {}).items():
        run.summary.update({f"{data}-{name}": value for name, value in scores.items()})
    if log_feature_importance:
        log_importances(
            run, dict(zip(model.feature_names_, model.get_feature_importance().tolist(), strict=True))
        )
    if save_model_checkpoint:
        log_model_file(run, "model.cbm", model.save_model)
