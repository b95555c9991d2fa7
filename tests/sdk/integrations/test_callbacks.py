"""Callbacks in real training processes, called by fakes of the frameworks (`frameworks/`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames
from runvitals.sdk.integrations.callback_run import CallbackRun
from tests.sdk.runs import Journals, environment, finished, start

FRAMEWORKS = Path(__file__).parent / "frameworks"


@pytest.fixture
def journals(tmp_path: Path) -> Journals:
    return Journals(tmp_path)


def train(journals: Journals, script: str) -> tuple[int, str, str]:
    path = environment(journals.directory)["PYTHONPATH"] + f":{FRAMEWORKS}"
    return finished(start(journals.directory, script, PYTHONPATH=path))


def marks(journals: Journals) -> list[dict[str, Any]]:
    events = [record.value for record in journals.records() if record.type == frames.EVENT]
    return [event for event in events if event["name"] == "marker"]


def test_lightning(journals: Journals) -> None:
    code, _, err = train(
        journals,
        """
        from runvitals.callbacks import LightningCallback
        from lightning.pytorch import Trainer
        import pickle
        callback = pickle.loads(pickle.dumps(LightningCallback(every_s=0, project="digits")))
        Trainer([callback]).fit(epochs=2, steps=3)
        """,
    )
    assert (code, journals.end()["state"]) == (0, "finished"), err
    texts = [mark["text"] for mark in marks(journals)]
    validation = ["validation begins", "validation ends"]
    assert texts == [
        *validation, "epoch 0 begins", *validation, "checkpoint", "epoch 1 begins", *validation, "checkpoint",
    ]  # fmt: skip
    assert (marks(journals)[-1]["epoch"], marks(journals)[-1]["step"]) == (1, 6)
    rows = journals.history()
    assert [row["step"] for row in rows] == [1, 2, 3, 3, 3, 4, 5, 6, 6, 6]
    assert rows[-1]["data"] == {"loss": 1 / 6, "val_loss": 1 / 3, "epoch": 1, "trainer/global_step": 6}
    config = [r.value["config"] for r in journals.records() if r.type == frames.INFO and "config" in r.value]
    assert {"lr": 0.1, "layers": [2, 3]} in config


def test_only_rank_0_logs(journals: Journals) -> None:
    code, _, err = train(
        journals,
        """
        import lightning.pytorch, transformers
        from runvitals.callbacks import LightningCallback, TransformersCallback
        lightning.pytorch.Trainer([LightningCallback(every_s=0)], rank=1).fit(epochs=1, steps=2)
        transformers.Trainer([TransformersCallback(every_s=0)], rank=1).train(epochs=1, steps=2)
        """,
    )
    assert code == 0, err
    assert journals.lifecycle("attach") != []
    assert (journals.history(), marks(journals)) == ([], [])


def test_transformers(journals: Journals) -> None:
    code, _, err = train(
        journals,
        """
        import transformers
        from runvitals.callbacks import TransformersCallback
        transformers.Trainer([TransformersCallback(every_s=3600, project="llm")]).train(epochs=2, steps=3)
        """,
    )
    assert code == 0, err
    assert [mark["text"] for mark in marks(journals)] == [
        "training begins", "epoch 0 begins", "evaluation ends", "checkpoint", "epoch 1 begins",
        "evaluation ends", "checkpoint",
    ]  # fmt: skip
    rows = [(row["step"], row["data"]) for row in journals.history()]
    assert rows == [
        (1, {"epoch": pytest.approx(1 / 3), "global_step": 1}),
        (3, {"loss": pytest.approx(1 / 3), "epoch": 1.0, "global_step": 3}),
        (6, {"loss": pytest.approx(1 / 6), "epoch": 2.0, "global_step": 6}),
    ]


def test_keras_in_an_open_run(journals: Journals) -> None:
    code, _, err = train(
        journals,
        """
        import keras, runvitals
        from runvitals.callbacks import KerasCallback
        run = runvitals.init(config={"lr": 0.1})
        keras.fit([KerasCallback(every_s=3600)], epochs=2, steps=3)
        run.log({"accuracy": 0.9})
        run.finish()
        """,
    )
    assert code == 0, err
    assert len(journals.folders()) == 1
    epochs = [[f"epoch {i} begins", "evaluation begins", "evaluation ends"] for i in range(2)]
    assert [mark["text"] for mark in marks(journals)] == epochs[0] + epochs[1]
    rows = [(row["step"], row["data"]) for row in journals.history()]
    assert rows == [
        (1, {"epoch": 0, "step": 1}),
        (3, {"loss": 1 / 3, "val_loss": 2 / 3, "epoch": 0, "step": 3}),
        (6, {"loss": 1 / 6, "val_loss": 1 / 3, "epoch": 1, "step": 6}),
        (7, {"accuracy": 0.9}),
    ]


def test_callbacks_of_wandb_for_keras(journals: Journals) -> None:
    code, _, err = train(
        journals,
        """
        import keras, keras.callbacks
        from runvitals.keras import WandbEvalCallback, WandbMetricsLogger

        class Evaluation(WandbEvalCallback):
            def __init__(self):
                super().__init__(["sample"], ["epoch", "sample", "guess"])
            def add_ground_truth(self, logs=None):
                self.data_table.add_data("cat")
            def add_model_predictions(self, epoch, logs=None):
                for row in self.data_table_ref.get_index():
                    self.pred_table.add_data(epoch, self.data_table_ref.data[row][0], "dog")

        logger = WandbMetricsLogger(log_freq=2)
        logger.model = None
        keras.fit([logger], epochs=1, steps=3)
        keras.fit([Evaluation()], epochs=2, steps=1)
        """,
    )
    assert code == 0, err
    assert [row["data"] for row in journals.history()] == [
        {"batch/loss": 1, "batch/batch_step": 0},
        {"batch/loss": 1 / 3, "batch/batch_step": 2},
        {"epoch/loss": 1 / 3, "epoch/val_loss": 2 / 3, "epoch/epoch": 0},
    ]
    logged = [
        (r.value["key"], r.value["items"][0]["rows"]) for r in journals.records() if r.type == frames.MEDIA
    ]
    assert sorted(logged) == [("eval_data", 1), ("eval_data", 1), ("val_data", 1)]


def test_missing_framework_is_reported(journals: Journals) -> None:
    code, _, err = train(journals, "from runvitals.callbacks import KerasCallback; KerasCallback()")
    assert code == 1
    assert "KerasCallback: Keras has not been imported; `import keras.callbacks` first" in err
    assert journals.folders() == []  # no run was begun


def test_interval_between_rows() -> None:
    clock = iter([100.0, 100.5, 101.0, 101.9, 102.0])
    callback = CallbackRun(1.0, {}, clock=lambda: next(clock))
    assert [callback.due() for _ in range(5)] == [True, False, True, False, True]
    with pytest.raises(ValueError, match="every_s=-1"):
        CallbackRun(-1, {})
