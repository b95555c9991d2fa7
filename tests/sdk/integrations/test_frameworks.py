"""Callbacks and recipes with the frameworks themselves: those that are small enough to install for tests."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy
import pytest

import runvitals
from runvitals.readers.journals.run_handle import OpenRun

RANDOM = numpy.random.default_rng(0)
X = RANDOM.random((200, 3))
Y = (X[:, 0] > X[:, 1]).astype(int)


@pytest.fixture
def how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    return {"mode": "offline", "dir": str(tmp_path / "data"), "settings": {"quiet": True}, "reinit": True}


def read(run: runvitals.Run, tmp_path: Path) -> OpenRun:
    run.finish()
    return runvitals.open_run(run.id, str(tmp_path / "data"))


def importances(opened: OpenRun) -> dict[str, Any]:
    return {key.key: opened.media(key.key)[0].items[0] for key in opened.media_keys()}


def test_lightgbm(tmp_path: Path, how: dict[str, Any]) -> None:
    import lightgbm

    from runvitals.callbacks import LightGBMCallback
    from runvitals.integration.lightgbm import log_summary

    run = runvitals.init(**how)
    data = lightgbm.Dataset(X, Y)
    params = {"objective": "binary", "verbose": -1, "num_threads": 1}
    model = lightgbm.train(params, data, 3, valid_sets=[data], callbacks=[LightGBMCallback()])
    log_summary(model, save_model_checkpoint=True)
    opened = read(run, tmp_path)
    rows = [row.data for row in opened.history() if "iteration" in row.data]
    assert [row["iteration"] for row in rows] == [0, 1, 2]
    assert rows[0]["training_binary_logloss"] > rows[2]["training_binary_logloss"]
    assert opened.config["objective"] == "binary"
    assert opened.summary["training_binary_logloss_best"] == rows[2]["training_binary_logloss"]
    assert importances(opened)["Feature Importance"]["type"] == "image/svg+xml"


@pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="it has no small wheel for this processor"
)
def test_xgboost(tmp_path: Path, how: dict[str, Any]) -> None:
    import xgboost

    from runvitals.callbacks import XGBoostCallback

    run = runvitals.init(**how)
    data = xgboost.DMatrix(X, Y)
    params = {"objective": "binary:logistic", "nthread": 1}
    callbacks = [XGBoostCallback(log_model=True)]
    xgboost.train(
        params,
        data,
        3,
        evals=[(data, "train")],
        callbacks=callbacks,
        early_stopping_rounds=2,
        verbose_eval=False,
    )
    xgboost.cv(params, data, 2, nfold=2, callbacks=[XGBoostCallback(log_feature_importance=False)])
    opened = read(run, tmp_path)
    rows = [row.data for row in opened.history() if "train-logloss" in row.data]
    assert [row["epoch"] for row in rows] == [0, 1, 2, 0, 1]
    assert opened.summary["best_iteration"] == 2
    assert list(importances(opened)) == ["Feature Importance"]


def test_each_trial_of_optuna_is_a_run(tmp_path: Path, how: dict[str, Any]) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: Any) -> float:
        lr: float = trial.suggest_float("lr", 0, 1)
        with runvitals.init(group=trial.study.study_name, config=trial.params, **how) as run:
            run.log({"loss": lr})
            if trial.number:
                run.tags += ("pruned",)
                run.finish()
                raise optuna.TrialPruned
            return lr

    optuna.create_study(study_name="lr").optimize(objective, n_trials=2)
    folders = (tmp_path / "data" / "runs").iterdir()
    runs = [runvitals.open_run(folder.name, str(tmp_path / "data")) for folder in folders]
    assert [(run.facts.group, run.state) for run in runs] == [("lr", "finished")] * 2
    assert all(run.summary["loss"] == run.config["lr"] for run in runs)
    assert sorted(tuple(run.facts.tags) for run in runs) == [(), ("pruned",)]


def test_the_configuration_of_hydra(tmp_path: Path, how: dict[str, Any]) -> None:
    from hydra import compose, initialize_config_dir

    (tmp_path / "config.yaml").write_text("model: {lr: 0.1, layers: [1, 2], twice: '${model.lr}'}\n")
    with initialize_config_dir(str(tmp_path), version_base=None):
        config = compose("config", ["model.lr=0.5"])
    run = runvitals.init(config=config, **how)
    assert read(run, tmp_path).config == {"model": {"lr": 0.5, "layers": [1, 2], "twice": 0.5}}
