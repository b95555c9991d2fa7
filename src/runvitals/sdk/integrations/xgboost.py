"""For `xgboost.train` and the estimators of XGBoost.

https://xgboost.readthedocs.io/en/stable/python/callbacks.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class, log_importances, log_model_file

_BASES = (("xgboost.callback", "TrainingCallback"),)


class XGBoostCallback:
    """Logs the evaluations of each iteration, and at the end the best score and the features' importances.

    Args:
        log_model: also log the model as an artifact.
        log_feature_importance: log how much each feature counts.
        importance_type: `gain`, `weight`, `cover` …, as XGBoost has them.
        define_metric: ignored; W&B's class has it.
        settings: arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: XGBoost has not been imported.

    Example:
        >>> xgboost.train(params, data, evals=[(test, "test")], callbacks=[XGBoostCallback(project="credit")])
    """

    def __new__(cls, *args: Any, **settings: Any) -> XGBoostCallback:
        """Create the callback with XGBoost's base class."""
        callback: XGBoostCallback = object.__new__(derive_class(cls, "XGBoost", *_BASES))
        return callback

    def __init__(
        self,
        log_model: bool = False,
        log_feature_importance: bool = True,
        importance_type: str = "gain",
        define_metric: bool = True,
        **settings: Any,
    ) -> None:
        self._callback = CallbackRun(0, settings)
        self._log_model, self._log_importance = log_model, log_feature_importance
        self._importance_type = importance_type

    def __reduce__(self) -> tuple[Any, ...]:  # the derived class is not importable by name
        return XGBoostCallback, (), dict(self.__dict__)

    def before_training(self, model: Any) -> Any:
        """Open the run, with the parameters of the model as config."""
        parameters = json.loads(model.save_config()) if hasattr(model, "save_config") else {}
        self._callback.run(parameters)
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Mapping[str, Any]]) -> bool:
        """Log a row; the training goes on."""
        row = {"epoch": epoch}
        for data, metrics in evals_log.items():
            for name, values in metrics.items():
                last = values[-1]
                row[f"{data}-{name}"] = last[0] if isinstance(last, tuple) else last  # of `xgboost.cv`
        self._callback.run().log(row)
        return False

    def after_training(self, model: Any) -> Any:
        """Log what is known at the end."""
        run = self._callback.run()
        for name in ("best_score", "best_iteration"):
            try:
                run.summary[name] = getattr(model, name)
            except (AttributeError, TypeError, ValueError):
                pass  # there is none without early stopping
        if self._log_importance and hasattr(model, "get_score"):
            log_importances(run, model.get_score(importance_type=self._importance_type))
        if self._log_model:
            log_model_file(run, "model.json", model.save_model)
        return model
