"""The W&B entity, project and API key of a run, found the way W&B's own client finds them."""

from __future__ import annotations

import netrc
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from runvitals.base.numbers import parse_number

SERVICE = "https://api.wandb.ai"
_OPTIONS = ("every", "mode", "base_url", "shared")
_MODES = ("online", "offline")
_DEFAULT_EVERY_S = 15.0


@dataclass(frozen=True)
class WandbAddress:
    """`ENTITY/PROJECT?every=15&mode=offline&base_url=https://…&shared=1`; every part is optional.

    Attributes:
        entity, project: "" for the default entity of the key, and the project of the run.
        every_s: samples of this many seconds are merged into one, 15 by default as in W&B; 0: every sample.
        mode: "online" or "offline"; default: `WANDB_MODE`.
        base_url: URL of the service; default: `WANDB_BASE_URL`.
        shared: several machines log to one run (W&B's shared mode), each under its label.

    Raises:
        ValueError: invalid address; the text says what is allowed.

    Example:
        >>> WandbAddress.read("vision/digits?every=1", {}).project
        'digits'
    """

    entity: str
    project: str
    every_s: float
    mode: str
    base_url: str
    shared: bool

    @classmethod
    def read(cls, text: str, environ: Mapping[str, str]) -> WandbAddress:
        """Parse `ENTITY/PROJECT?mode=…` and the other options, with W&B's variables as defaults."""
        path, _, query = text.partition("?")
        entity, _, project = path.rpartition("/")
        options = dict(parse_qsl(query, keep_blank_values=True))
        for name in options:
            if name not in _OPTIONS:
                raise ValueError(f"wandb: unknown option {name!r}; expected one of {', '.join(_OPTIONS)}")
        mode = options.get("mode") or environ.get("WANDB_MODE") or "online"
        if mode not in _MODES:
            raise ValueError(f"wandb: invalid mode={mode!r}; expected {' or '.join(_MODES)}")
        if options.get("shared", "0") not in ("0", "1"):
            raise ValueError(f"wandb: invalid shared={options['shared']!r}; expected 0 or 1")
        base_url = (options.get("base_url") or environ.get("WANDB_BASE_URL") or SERVICE).rstrip("/")
        return cls(
            entity or environ.get("WANDB_ENTITY", ""),
            project or environ.get("WANDB_PROJECT", ""),
            _every(options.get("every", "")),
            mode,
            base_url,
            options.get("shared") == "1",
        )


def _every(text: str) -> float:
    every_s = parse_number(text, 0.0, 3600.0) if text else _DEFAULT_EVERY_S
    if every_s is None:
        raise ValueError(f"wandb: invalid every={text!r}; expected seconds from 0 to 3600")
    return every_s


def authorization(base_url: str, environ: Mapping[str, str]) -> str | None:
    """Return the Authorization header; None without an API key.

    `WANDB_API_KEY` is only used for the service that `WANDB_BASE_URL` names, else for W&B's own. Other
    services need an entry in `~/.netrc` (`NETRC`), where `wandb login` stores keys.

    Raises:
        ValueError: `~/.netrc` could not be parsed.
    """
    key_url = environ.get("WANDB_BASE_URL", SERVICE).rstrip("/")
    key = environ.get("WANDB_API_KEY") if base_url == key_url else None
    key = key or _netrc_key(base_url, environ)
    return None if not key else f"Basic {b64encode(f'api:{key}'.encode()).decode()}"


def _netrc_key(base_url: str, environ: Mapping[str, str]) -> str | None:
    home = environ.get("HOME") or os.path.expanduser("~")
    path = environ.get("NETRC") or os.path.join(home, ".netrc")
    try:
        entry = netrc.netrc(path)
    except FileNotFoundError:
        return None
    except netrc.NetrcParseError as error:
        raise ValueError(f"{path}: {error.msg}, line {error.lineno}") from None
    login = entry.hosts.get(urlsplit(base_url).hostname or "")
    return login[2] if login else None
