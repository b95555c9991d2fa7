"""The options for the storage of old samples: `--cold-storage` and those beside it."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from runvitals.cli import WrongUsage
from runvitals.cli.argument_types import size_bytes, time_ms
from runvitals.model.durations import DAY_MS

if TYPE_CHECKING:
    from runvitals.store.samples.cold.storage import ColdSettings

_AFTER_MS = 30 * DAY_MS
_CACHE_BYTES = 2 << 30


def add_cold_storage(parser: argparse.ArgumentParser) -> None:
    """Add the options that move old samples to a bucket."""
    parser.add_argument(
        "--cold-storage",
        metavar="BUCKET",
        type=cold_address,
        help="keep the values of old samples in a bucket, s3://BUCKET/PREFIX, gs://… or az://…, or in an "
        "existing folder, instead of in the store; needs runvitals[bucket]",
    )
    parser.add_argument(
        "--cold-after",
        metavar="TIME",
        type=time_ms,
        help="samples that are older are moved to --cold-storage; default: 30d, at least 1d",
    )
    parser.add_argument(
        "--cold-cache",
        metavar="SIZE",
        type=size_bytes,
        help="size of what was read from --cold-storage and is kept on disk; default: 2GiB",
    )


def cold_address(text: str) -> str:
    """Return the address of a bucket, or the absolute path of a folder."""
    from runvitals.store.files.bucket_location import BucketLocation

    if "://" not in text:
        if not os.path.isdir(text):
            raise argparse.ArgumentTypeError(f"{text!r:.200} is neither a bucket nor an existing folder")
        return os.path.abspath(text)
    try:
        return str(BucketLocation.read(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def cold_settings(arguments: argparse.Namespace, in_folder: bool = True) -> ColdSettings | None:
    """Return the settings of these options; None if there is no cold storage.

    Args:
        in_folder: whether samples are kept in a folder.

    Raises:
        ValueError: the options do not fit together.
    """
    if arguments.cold_storage is None:
        for name in ("cold_after", "cold_cache"):
            if getattr(arguments, name) is not None:
                raise WrongUsage(f"--{name.replace('_', '-')} needs --cold-storage")
        return None
    if not in_folder:
        raise WrongUsage(
            "--cold-storage is for a store in a folder: ClickHouse moves old samples to a bucket by a "
            "storage policy, see the documentation"
        )
    after_ms = _AFTER_MS if arguments.cold_after is None else arguments.cold_after
    cache_bytes = _CACHE_BYTES if arguments.cold_cache is None else arguments.cold_cache
    if after_ms < DAY_MS:
        raise WrongUsage("--cold-after must be at least 1d")
    from runvitals.store.samples.cold.storage import ColdSettings

    return ColdSettings(arguments.cold_storage, after_ms, cache_bytes)
