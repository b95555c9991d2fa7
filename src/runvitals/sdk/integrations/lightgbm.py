"""For `lightgbm.train` and the estimators of LightGBM.

https://lightgbm.readthedocs.io/en/latest/Python-API.html#callbacks
"""

from __future__ import annotations

from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, log_importances, log_model_file


class LightGBMCallback:
    """Logs the evaluations of each iteration.

    Args:
        log_params: add the parameters to the run's configuration.
        define_metric: ignored; W&B's function has it.
        settings: arguments for `runvitals.init` if no run is open.

    Example:
        >>> lightgbm.train(params, data, valid_sets=[test], callbacks=[LightGBMCallback(project="credit")])
    """

    order = 50
    before_iteration = False

    def __init__(self, log_params: bool = True, define_metric: bool = True, **settings: Any) -> None:
        self._callback = CallbackRun(0, settings)
        self._log_params = log_params

    def __call__(self, env: Any) -> None:
        """Log a row."""
        first = env.iteration == env.begin_iteration
        run = self._callback.run(env.params if first and self._log_params else None)
        row = {"iteration": env.iteration}
        for entry in env.evaluation_result_list or ():
            data, name, value = entry[0], entry[1], entry[2]
            row[f"{data}_{name}"] = value
            if len(entry) > 4:  # of `lightgbm.cv`: the deviation
                row[f"{data}_{name}-stdv"] = entry[4]
        run.log(row)


def log_summary(
    model: Any, feature_importance: bool = True, save_model_checkpoint: bool = False, **settings: Any
) -> None:
    """Log the best scores of a trained booster, its features' importances and, if asked, the model."""
    run = CallbackRun(0, settings).run()
    booster = getattr(model, "booster_", model)
    run.summary.update({
        f"{data}_{name}_best": value
        for data, scores in (booster.best_score or {}).items()
        for name, value in scores.items()
    })  # fmt: skip
    run.summary["best_iteration"] = booster.best_iteration
    if feature_importance:
        names, values = booster.feature_name(), booster.feature_importance().tolist()
        log_importances(run, dict(zip(names, values, strict=True)))
    if save_model_checkpoint:
        log_model_file(run, "model.txt", booster.save_model)
