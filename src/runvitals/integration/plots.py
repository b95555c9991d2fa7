"""The names that `runvitals.plot` had in early versions of W&B's package."""

from runvitals.sdk.media.charts import pr_curve as precision_recall
from runvitals.sdk.media.charts import roc_curve as ROC  # noqa: N812

__all__ = ["ROC", "precision_recall"]
