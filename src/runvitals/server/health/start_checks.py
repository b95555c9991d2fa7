"""`runvitals server check`: whether a server could start and store, before it does. Changes nothing."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from runvitals.server.backup.backup import ServerStores
from runvitals.server.buckets.check import CheckStep, check_bucket
from runvitals.server.buckets.storage.buckets import BucketRow, BucketTable
from runvitals.server.buckets.team_buckets import TeamBuckets
from runvitals.server.database.condition import DatabaseCondition, read_condition
from runvitals.server.database.database import Database, ReadOnlyDatabase
from runvitals.server.database.migration import newest
from runvitals.server.database.secret_box import (
    SecretBox,
    SecretUnreadable,
    open_secret_box,
    temporary_secret_box,
)
from runvitals.server.files.disk_space import DiskSpace
from runvitals.server.files.reserved_space import FileLimits
from runvitals.server.http import serve
from runvitals.server.mail.settings import URL_ENVIRONMENT, mail_settings, server_url
from runvitals.server.mail.smtp import SmtpConnection
from runvitals.server.organisation.settings import policy_of
from runvitals.server.organisation.storage.settings import SettingTable
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.pairing.check import require_match
from runvitals.server.settings_file import read_settings_file
from runvitals.store.errors import MetadataStoreError, StoreError
from runvitals.store.files.bucket_location import BucketLocation
from runvitals.store.samples.clickhouse import parse_address
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.schema import features
from runvitals.store.samples.sqlite import stored_ids
from runvitals.store.samples.sqlite.folder_lock import FolderLock
from runvitals.store.samples.sqlite.stored_ids import StoredIds

_MOST_AHEAD_S: Final = 5.0
_CERTIFICATE_DAYS: Final = 14
_CONNECT_S: Final = 5.0

State = Literal["ok", "note", "failed"]


class StartCheck(NamedTuple):
    """What was found. `note`: a server starts, but something needs attention."""

    what: str
    state: State
    text: str


class _Note(Exception):
    """What needs attention, and keeps no server from starting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan:
    """How a server is to be started.

    Attributes:
        listen: host and port.
        settings: the file of --settings.
        secret_keys: the key file.
        buckets: those of the server's own, by the option that names each.
        team_folders: those of --team-folders.
        environment: such as `os.environ`.
    """

    listen: tuple[str, int]
    stores: ServerStores
    settings: str | None
    secret_keys: str
    buckets: Mapping[str, BucketLocation]
    team_folders: Sequence[str]
    environment: Mapping[str, str]


def check_start(plan: StartPlan) -> Iterator[StartCheck]:
    """Yield what is found, one part of the server after the other. No text has a secret."""
    stores = plan.stores
    box = temporary_secret_box()
    settings: dict[str, Any] = {}
    yield _checked("address", lambda: _address(*plan.listen))
    yield _checked("key file", lambda: _key_file(plan.secret_keys))
    if os.path.exists(plan.secret_keys):
        box = _or(lambda: open_secret_box(plan.secret_keys), box)
    if plan.settings is not None:
        path = plan.settings
        yield _checked("settings", lambda: f"{path}: {len(read_settings_file(path, box))} settings are valid")
        settings = _or(lambda: read_settings_file(path, box), settings)
    yield _checked("metadata", lambda: _metadata(stores))
    yield _checked("samples", lambda: _samples(stores))
    yield _checked("disk", lambda: _disk(stores.folder))
    condition = _or(lambda: read_condition(stores.metadata), None)
    if condition is not None and condition.revision is not None:
        yield _checked("pairing", lambda: _pairing(stores))
    if condition is not None and condition.revision == newest():
        with closing(ReadOnlyDatabase(stores.metadata)) as database:
            stored = SettingTable(database).all()
            settings = {**stored, **settings}
            yield from _team_buckets(plan, database, box, settings)
    for option, bucket in plan.buckets.items():
        check = partial(_own_bucket, bucket, _origin(plan, settings))
        yield _checked(f"bucket of {option}", check)
    yield _checked("mail", lambda: _mail(settings, plan.environment, box))
    for provider in settings.get("providers", ()):
        check = partial(_provider, provider, _origin(plan, settings), settings, box)
        yield _checked(f"provider {provider['id']}", check)
    yield _checked("certificate", lambda: _certificate(_origin(plan, settings)))
    yield _checked("clock", lambda: _clock(stores, condition))


def _or(read: Callable[[], Any], otherwise: Any) -> Any:
    """Return what is read, or something else if it cannot be: a check of its own has said why."""
    try:
        return read()
    except (OSError, ValueError, MetadataStoreError):
        return otherwise


def _checked(what: str, check: Callable[[], str]) -> StartCheck:
    try:
        return StartCheck(what, "ok", check())
    except _Note as note:
        return StartCheck(what, "note", str(note))
    except StoreError as error:
        return StartCheck(what, "failed", str(error))
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        return StartCheck(what, "failed", text or str(error))
    except (ValueError, MetadataStoreError, SecretUnreadable) as error:
        return StartCheck(what, "failed", str(error))


def _address(host: str, port: int) -> str:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        with serve.bind(port, host):
            return f"{address} is free"
    except OSError as error:
        raise ValueError(f"cannot listen on {address}: {error.strerror}") from None


def _key_file(path: str) -> str:
    if not os.path.exists(path):
        raise _Note(
            f"{path} does not exist: the server makes one. Servers that share stores need the same, and a "
            "restored server the one of before, without which it cannot read its secrets"
        )
    open_secret_box(path)
    if os.stat(path).st_mode & 0o077:
        raise ValueError(f"{path} can be read by other users of this machine: chmod 600 {path}")
    return f"{path} can be read"


def _metadata(stores: ServerStores) -> str:
    stores.check_metadata_folder()
    condition = read_condition(stores.metadata)
    if condition.revision is None:
        return f"{condition.name} ({condition.version}) is empty: the server makes its tables"
    if condition.revision != newest():
        raise _Note(
            f"{condition.name} ({condition.version}) has tables of revision {condition.revision}, which the "
            f"server upgrades to {newest()}: see `runvitals upgrade --check`"
        )
    return f"{condition.name} ({condition.version}) has tables of revision {condition.revision}"


def _samples(stores: ServerStores) -> str:
    if stores.clickhouse is not None:
        with closing(ClickHouse(parse_address(stores.clickhouse), _CONNECT_S)) as clickhouse:
            version = features(clickhouse).version
            return f"{stores.samples} answers, version {version[0]}.{version[1]}"
    if not os.path.isdir(stores.folder):
        existing = os.path.abspath(stores.folder)
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        if not os.path.isdir(existing):
            raise ValueError(f"{stores.folder} cannot be made: {existing} is not a folder")
        if not os.access(existing, os.W_OK | os.X_OK):
            raise ValueError(f"{stores.folder} does not exist and cannot be made: {existing} is not writable")
        return f"{stores.folder} does not exist: the server makes it"
    FolderLock(stores.folder).close()
    if not stores.has_samples():
        return f"{stores.folder} is writable, and has no samples yet"
    stored_ids.pairing_of(stores.folder)
    return f"{stores.folder} is writable, and no other process uses it"


def _disk(folder: str) -> str:
    if not os.path.isdir(folder):
        raise _Note(f"{folder} does not exist yet")
    space = DiskSpace(folder, lambda: FileLimits().free_bytes)
    problem = space.problem()
    if problem is not None:
        raise ValueError(problem)
    warning = space.warning()
    if warning is not None:
        raise _Note(warning)
    return f"{shutil.disk_usage(folder).free / 1e9:,.1f} GB are free for {folder}"


def _pairing(stores: ServerStores) -> str:
    stored = stores.stored_ids() if stores.has_samples() else StoredIds()
    require_match(stores.samples, stored, stores.metadata)
    return "samples and metadata belong together"


def _team_buckets(
    plan: StartPlan, database: Database, box: SecretBox, settings: Mapping[str, Any]
) -> Iterator[StartCheck]:
    table = BucketTable(database)
    fetcher = Fetcher(lambda: policy_of(settings))
    buckets = TeamBuckets(table, box, lambda: 0, time.monotonic, plan.team_folders, fetcher)
    for row in table.all():
        check = partial(_team_bucket, buckets, row, _origin(plan, settings))
        yield _checked(f"bucket {row.name}", check)


def _team_bucket(buckets: TeamBuckets, row: BucketRow, origin: str) -> str:
    return _bucket(str(row.location), buckets.try_bucket(row, origin))


def _own_bucket(bucket: BucketLocation, origin: str) -> str:
    return _bucket(str(bucket), check_bucket(bucket, origin))


def _bucket(name: str, steps: Sequence[CheckStep]) -> str:
    for step in steps:
        if step.state == "failed":
            raise ValueError(f"{name}: {step.step} failed: {step.error}")
    missing = [f"{step.step}: {step.error}" for step in steps if step.state == "missing"]
    if missing:
        raise _Note(
            f"{name} can be written and read; browsers cannot read it themselves: {'; '.join(missing)}"
        )
    return f"{name} can be written and read"


def _mail(settings: Mapping[str, Any], environment: Mapping[str, str], box: SecretBox) -> str:
    mail = mail_settings(settings, environment, box)
    if mail is None:
        return "no mail server is set: RUNVITALS_SMTP_URL or the setting smtp_url"
    with SmtpConnection(mail.server):
        address = f"{mail.server.host}:{mail.server.port} ({mail.server.encryption})"
        return f"{address} accepts the sign-in; `runvitals server mail-test ADDRESS` sends a mail"


def _provider(provider: Mapping[str, Any], url: str, settings: Mapping[str, Any], box: SecretBox) -> str:
    from runvitals.server.sign_on.discovery import Discovery, ProviderFailed
    from runvitals.server.sign_on.providers import client_secret, providers_of
    from runvitals.server.sign_on.sign_on import CALLBACK

    if not url:
        raise _Note("the setting url is missing: the provider sends browsers back to it")
    callback = server_url(url) + CALLBACK.format(provider=provider["id"])
    if provider["kind"] == "github":
        return f"GitHub sends browsers back to {callback}"
    issuer = str(provider["issuer"])
    try:
        client_secret(settings, providers_of(settings)[provider["id"]], box)
        Discovery(Fetcher(lambda: policy_of(settings)), time.monotonic).metadata(issuer)
    except (ProviderFailed, SecretUnreadable) as error:
        raise _Note(f"nobody can sign in by it now: {error}") from None
    return f"{issuer} answers; it has to send browsers back to {callback}"


def _origin(plan: StartPlan, settings: Mapping[str, Any]) -> str:
    return str(plan.environment.get(URL_ENVIRONMENT) or settings.get("url") or "")


def _certificate(url: str) -> str:
    parts = urlsplit(server_url(url) if url else "")
    if parts.scheme != "https" or not parts.hostname:
        return "the setting url names no https address, so there is none to check"
    try:
        with (
            socket.create_connection((parts.hostname, parts.port or 443), _CONNECT_S) as connection,
            ssl.create_default_context().wrap_socket(connection, server_hostname=parts.hostname) as secure,
        ):
            ends = str((secure.getpeercert() or {}).get("notAfter", ""))
    except ssl.SSLCertVerificationError as error:
        raise ValueError(f"{url}: {error.verify_message}") from None
    except UnicodeError:  # of the name
        raise ValueError(f"invalid url {url[:100]!r}; expected https://host") from None
    except OSError as error:
        raise _Note(f"{url} does not answer yet, so its certificate was not checked: {error}") from None
    days = (ssl.cert_time_to_seconds(ends) - time.time()) / 86400
    if days < _CERTIFICATE_DAYS:
        raise _Note(f"the certificate of {url} ends in {days:.0f} days, on {ends}")
    return f"the certificate of {url} is valid until {ends}"


def _clock(stores: ServerStores, condition: DatabaseCondition | None) -> str:
    ahead = {}
    if condition is not None and condition.ahead_s is not None:
        ahead[condition.name] = condition.ahead_s
    if stores.clickhouse is not None:
        with closing(ClickHouse(parse_address(stores.clickhouse), _CONNECT_S)) as clickhouse:
            now_s = float(clickhouse.command("SELECT toUnixTimestamp(now())"))  # without a fraction
            ahead[stores.samples] = now_s + 0.5 - time.time()
    elif stores.has_samples():
        newest_s = max(entry.stat().st_mtime for entry in os.scandir(stores.folder))
        ahead[f"what was written last to {stores.folder}"] = max(0.0, newest_s - time.time())
    for name, ahead_s in ahead.items():
        if abs(ahead_s) > _MOST_AHEAD_S:
            direction = "behind" if ahead_s > 0 else "ahead of"
            raise ValueError(f"the clock of this machine is {abs(ahead_s):,.0f} s {direction} {name}: set it")
    time_text = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    return f"{time_text}, within {_MOST_AHEAD_S:.0f} s of {' and '.join(ahead)}" if ahead else time_text
