"""Chooses run, host, rank and device of what OpenTelemetry and Prometheus send, from attributes and labels.

A rule is a text such as `{k8s.namespace.name}-{k8s.job.name}`. It applies if all attributes in braces are
there; of the rules for a field, the first one that applies counts. Attributes and labels share the rules: the
label `service_name` is found as `service.name`.

Example:
    >>> route_of({"service.name": "train", "slurm.job.id": "7", "host.name": "node1"}).run
    'slurm-7'
    >>> route_of({"instance": "node1:9100", "job": "node"})[2:5]
    ('host-node1', 'node1', 'node1')
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

from runvitals.journal.paths import check_run_id, safe_name
from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.names import shorten

Attributes = Mapping[str, str]
"""The attributes of an OTLP resource or a data point, or the labels of a Prometheus series."""
MAX_RULES: Final = 20
"""For one field."""
MAX_RULE_CHARACTERS: Final = 256
UNKNOWN_HOST: Final = "unknown"
_ATTRIBUTE = re.compile(r"\{([^{}]+)\}")
_DEVICE = re.compile(r"[A-Za-z_/-]*([0-9]{1,4})")
_PORT = re.compile(r"(?:\[([^\]]+)\]|([^:]*)):[0-9]{1,5}")
_HIGHEST_RANK = 1 << 31
_WITHOUT_RULE: Final = frozenset(
    ("runvitals.entity", "runvitals.project", "service.name", "service.instance.id", "process.pid")
)
"""Attributes that routes also depend on, without a rule."""


@dataclass(frozen=True)
class RoutingRules:
    """The rules for each field, by precedence. Those that a project sets for a field replace the defaults.

    Args:
        project: the project, if not the one that the sender names. It must exist, or the key may create it.
        run: the run id. If no rule applies: the service and its instance or process, otherwise the host.
        run_name: the name of a new run.
        host: the host. A port at the end is removed.
        rank: the rank, a number.
        device: the number of a GPU, of the attributes of a data point: `1`, `gpu1` and `nvidia1` are 1.
    """

    project: tuple[str, ...] = ("{runvitals.project}",)
    run: tuple[str, ...] = (
        "{runvitals.run.id}",
        "{runvitals.run}",
        "slurm-{slurm.job.id}",
        "slurm-{slurm.job_id}",
        "slurm-{slurm_jobid}",
        "slurm-{hpc_job}",
        "k8s-{k8s.job.uid}",
        "{k8s.namespace.name}-{k8s.job.name}",
        "k8s-{k8s.pod.uid}",
        "{k8s.namespace.name}-{k8s.pod.name}",
        "{exported_namespace}-{exported_pod}",
    )
    run_name: tuple[str, ...] = (
        "{runvitals.run.name}",
        "{slurm.job.name}",
        "{k8s.job.name}",
        "{k8s.pod.name}",
        "{exported_pod}",
    )
    host: tuple[str, ...] = (
        "{runvitals.host}",
        "{k8s.node.name}",
        "{host.name}",
        "{Hostname}",
        "{node}",
        "{nodename}",
        "{host}",
        "{exported_instance}",
        "{instance}",
        "{host.id}",
    )
    rank: tuple[str, ...] = ("{runvitals.rank}", "{rank}", "{slurm.procid}")
    device: tuple[str, ...] = ("{runvitals.device}", "{hw.id}", "{gpu.index}", "{gpu}", "{device}")

    @cached_property
    def attributes(self) -> frozenset[str]:
        """The names in all rules, those of attributes and those of labels: what they say is in the run."""
        rules = (rule for field in FIELDS for rule in getattr(self, field))
        names = {name for rule in rules for name in _ATTRIBUTE.findall(rule)}
        return frozenset(names | {label_name(name) for name in names})

    @cached_property
    def of_route(self) -> frozenset[str]:
        """The names of all attributes and labels that `address_of` and `route_of` look at."""
        rules = (rule for field in FIELDS if field != "device" for rule in getattr(self, field))
        names = {*_WITHOUT_RULE, *(name for rule in rules for name in _ATTRIBUTE.findall(rule))}
        return frozenset(names | {label_name(name) for name in names})

    @cached_property
    def of_device(self) -> frozenset[str]:
        """The names of all attributes and labels that `device` looks at."""
        names = {name for rule in self.device for name in _ATTRIBUTE.findall(rule)}
        return frozenset(names | {label_name(name) for name in names})


FIELDS: Final = tuple(field.name for field in fields(RoutingRules))
DEFAULT_RULES: Final = RoutingRules()


class InvalidRules(ValueError):
    """Rules that cannot be used. `fields`: what is wrong, by the place: `{"run[0]": "…"}`."""

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{index}: {problem}" for index, problem in problems.items()))
        self.fields = dict(problems)


def checked_rules(patterns: Mapping[str, Sequence[str]]) -> RoutingRules:
    """Return the rules of a project. Fields that are missing keep the default rules.

    Raises:
        InvalidRules: names every field that is wrong.

    Example:
        >>> checked_rules({"run": ["{trial}"]}).run
        ('{trial}',)
    """
    problems: dict[str, str] = {}
    for field, rules in patterns.items():
        if field not in FIELDS:
            problems[field] = f"there is no field {field!r}; expected {', '.join(FIELDS)}"
        elif len(rules) > MAX_RULES:
            problems[field] = f"{len(rules)} rules; expected at most {MAX_RULES}"
        else:
            faults = ((index, _fault(rule)) for index, rule in enumerate(rules))
            problems |= {f"{field}[{index}]": fault for index, fault in faults if fault is not None}
    if problems:
        raise InvalidRules(problems)
    return RoutingRules(**{field: tuple(rules) for field, rules in patterns.items()})


def _fault(rule: str) -> str | None:
    if not 1 <= len(rule) <= MAX_RULE_CHARACTERS:
        return f"a rule of {len(rule)} characters; expected 1 to {MAX_RULE_CHARACTERS}"
    rest = _ATTRIBUTE.sub("", rule)
    if "{" in rest or "}" in rest:
        return f"invalid rule {rule!r}; expected each {{ to be followed by a name and }}"
    if rest == rule:
        return f"the rule {rule!r} names no attribute; expected one in braces, such as {{k8s.job.name}}"
    return None


class NamedPlace(NamedTuple):
    """The team or user, and the project, that a sender names for everything in a request."""

    entity: str | None = None
    project: str | None = None


NO_PLACE: Final = NamedPlace()


class Route(NamedTuple):
    """Where the values of a resource or series belong.

    Args:
        entity: the team or user; None: the default of the key.
        project: None: the default project.
        run: a valid run id.
        run_name: None: the same.
        is_host_run: the run stands for a host rather than a training: it never ends.
    """

    entity: str | None
    project: str | None
    run: str
    run_name: str | None
    host: str
    rank: int | None
    is_host_run: bool


def address_of(attributes: Attributes, sender: NamedPlace = NO_PLACE) -> NamedPlace:
    """Return the project of `runvitals.entity` and `runvitals.project`, else the one the sender names."""
    entity = _value(attributes, "runvitals.entity") or sender.entity
    return NamedPlace(entity, _value(attributes, "runvitals.project") or sender.project)


def route_of(
    attributes: Attributes, rules: RoutingRules = DEFAULT_RULES, place: NamedPlace = NO_PLACE
) -> Route:
    """Return where the values with these attributes belong.

    Args:
        rules: of the project at `place`.
        place: as `address_of` returns it.
    """
    project = _first(rules.project, attributes) or place.project
    named_host = _first(rules.host, attributes)
    host = shorten(_without_port(named_host), LABEL_CHARACTERS) if named_host else UNKNOWN_HOST
    text, is_host_run = _first(rules.run, attributes), False
    name = _first(rules.run_name, attributes)
    if text is None:
        text, is_host_run = _run_without_rule(attributes, None if named_host is None else host)
        name = name or (host if is_host_run and named_host else text)
        # Run ids are unique within a team: the same host may be in several of its projects.
        text = f"{project}.{text}" if project else text
    run = run_id(text)
    name = name or (text if text != run else None)
    rank = _first(rules.rank, attributes)
    return Route(
        _value(attributes, "runvitals.entity") or place.entity,
        shorten(project, LABEL_CHARACTERS) if project else None,
        run,
        shorten(name, LABEL_CHARACTERS) if name else None,
        host or UNKNOWN_HOST,
        int(rank) if rank is not None and _is_rank(rank) else None,
        is_host_run,
    )


def device(attributes: Attributes, rules: RoutingRules = DEFAULT_RULES) -> int | None:
    """Return the number of the device that the attributes of a data point name.

    None if they name none by number.

    Example:
        >>> device({"hw.id": "gpu1"}), device({"gpu": "0"}), device({"hw.id": "0000:3b:00.0"})
        (1, 0, None)
    """
    if rules.of_device.isdisjoint(attributes):
        return None
    for rule in rules.device:
        text = _fill(rule, attributes)
        match = _DEVICE.fullmatch(text) if text else None
        if match is not None:
            return int(match[1])
    return None


def run_id(text: str) -> str:
    """Return a valid run id for a name in another system.

    The name itself, if it is valid; otherwise what is valid of it and a part of its SHA-256.

    Example:
        >>> run_id("slurm-7"), run_id("train/7")
        ('slurm-7', 'train_7-eeea76fe')
    """
    try:
        return check_run_id(text)
    except ValueError:
        return f"{safe_name(text)}-{_digest(text)}"


def writer_host(host: str) -> str:
    """Return a host's name as a part of names of writers, different for different hosts."""
    safe = safe_name(host)
    return safe if safe == host else f"{safe}-{_digest(host)}"


@lru_cache(4096)
def label_name(attribute: str) -> str:
    """Return the name of an attribute as a Prometheus label.

    Example:
        >>> label_name("k8s.job.name")
        'k8s_job_name'
    """
    return re.sub(r"[^A-Za-z0-9_]", "_", attribute)


def _run_without_rule(attributes: Attributes, host: str | None) -> tuple[str, bool]:
    """Return the run that the service names, otherwise that of the host; and whether it is that of a host."""
    service = _value(attributes, "service.name")
    if service is not None:
        instance, pid = _value(attributes, "service.instance.id"), _value(attributes, "process.pid")
        if instance is not None:
            return f"{service}-{instance}", False
        if pid is not None:
            return f"{service}-{host or UNKNOWN_HOST}-{pid}", False
    if host is not None or service is None:
        return f"host-{host or UNKNOWN_HOST}", True
    return service, True


def _first(rules: Sequence[str], attributes: Attributes) -> str | None:
    for rule in rules:
        text = _fill(rule, attributes)
        if text is not None:
            return text
    return None


def _fill(rule: str, attributes: Attributes) -> str | None:
    """Return the text of a rule; None if it does not apply."""
    parts = _parts(rule)
    filled = list(parts)
    for index in range(1, len(parts), 2):
        value = _value(attributes, parts[index])
        if value is None:
            return None
        filled[index] = value
    return "".join(filled)


@lru_cache(4096)
def _parts(rule: str) -> tuple[str, ...]:
    """Return texts and names of attributes, alternating."""
    return tuple(_ATTRIBUTE.split(rule))


def _value(attributes: Attributes, name: str) -> str | None:
    """Return an attribute that is there and not empty."""
    return attributes.get(name) or attributes.get(label_name(name)) or None


def _without_port(host: str) -> str:
    """Return an address without its port.

    Example:
        >>> _without_port("node1:9100"), _without_port("[fe80::1]:9100"), _without_port("fe80::1")
        ('node1', 'fe80::1', 'fe80::1')
    """
    match = _PORT.fullmatch(host)
    return host if match is None else match[1] or match[2] or host


def _is_rank(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 11 and int(text) < _HIGHEST_RANK


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
