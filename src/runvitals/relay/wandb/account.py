"""Which W&B a run goes to, and the key for it: as W&B's own client finds them."""

from __future__ import annotations

import netrc
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

SERVICE = "https://api.wandb.ai"
_OPTIONS = ("every", "mode", "base_url", "shared")
_MODES = ("online", "offline")
_DEFAULT_EVERY_S = 15.0


@dataclass(frozen=True)
class WandbAddress:
    """`ENTITY/PROJECT?every=15&mode=offline&base_url=https://…&shared=1`, all of it optional.

    Attributes:
        entity, project: "" for what the key's owner and the run have.
        every_s: seconds of samples that become one, 15 as in W&B; 0: every sample.
        mode: "online" or "offline"; `WANDB_MODE` where the address does not say.
        base_url: of the service; `WANDB_BASE_URL` where the address does not say.
        shared: several machines log to the run (W&B's shared mode); each has its label.

    Raises:
        ValueError: one that cannot be; the text says what is allowed.

    Example:
        >>> Address.read("vision/digits?every=1", {}).project
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
        place, _, query = text.partition("?")
        entity, _, project = place.rpartition("/")
        options = dict(parse_qsl(query, keep_blank_values=True))
        for name in options:
            if name not in _OPTIONS:
                raise ValueError(f"wandb: no option {name!r}; there are {', '.join(_OPTIONS)}")
        mode = options.get("mode") or environ.get("WANDB_MODE") or "online"
        if mode not in _MODES:
            raise ValueError(f"wandb: mode={mode!r}: {' or '.join(_MODES)}")
        if options.get("shared", "0") not in ("0", "1"):
            raise ValueError(f"wandb: shared={options['shared']!r}: 0 or 1")
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
    try:
        every_s = float(text) if text else _DEFAULT_EVERY_S
    except ValueError:
        every_s = -1.0
    if not 0 <= every_s <= 3600:
        raise ValueError(f"wandb: every={text!r}: seconds, 0 to 3600")
    return every_s


def authorization(base_url: str, environ: Mapping[str, str]) -> str | None:
    """The header that proves who we are; None without a key.

    `WANDB_API_KEY` is for the service that `WANDB_BASE_URL` names, or W&B's own. Any other has to have an
    entry in `~/.netrc` (`NETRC`), where `wandb login` keeps keys.

    Raises:
        ValueError: that file cannot be understood.
    """
    meant = environ.get("WANDB_BASE_URL", SERVICE).rstrip("/")
    key = environ.get("WANDB_API_KEY") if base_url == meant else None
    key = key or _kept(base_url, environ)
    return None if not key else f"Basic {b64encode(f'api:{key}'.encode()).decode()}"


def _kept(base_url: str, environ: Mapping[str, str]) -> str | None:
    home = environ.get("HOME") or os.path.expanduser("~")
    path = environ.get("NETRC") or os.path.join(home, ".netrc")
    try:
        found = netrc.netrc(path)
    except FileNotFoundError:
        return None
    except netrc.NetrcParseError as error:
        raise ValueError(f"{path}: {error.msg}, line {error.lineno}") from None
    login = found.hosts.get(urlsplit(base_url).hostname or "")
    return login[2] if login else None
