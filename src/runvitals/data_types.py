"""The types of values that `log` takes, under the names of `wandb.data_types`."""

from runvitals.sdk.media.annotations import Classes
from runvitals.sdk.media.base import Media
from runvitals.sdk.media.scenes import Object3D, box3d
from runvitals.sdk.media.table import Table
from runvitals.sdk.media.values import Audio, Histogram, Html, Image, Text, Video
from runvitals.sdk.media.wandb_media import JoinedTable, Molecule, Plotly

__all__ = [
    "Audio",
    "Classes",
    "Histogram",
    "Html",
    "Image",
    "JoinedTable",
    "Media",
    "Molecule",
    "Object3D",
    "Plotly",
    "Table",
    "Text",
    "Video",
    "box3d",
]


def __getattr__(name: str) -> object:
    from runvitals.sdk import wandb_names

    raise wandb_names.absence_error("module", name)
