"""`runvitals server`: a server that stores and shows the runs of many machines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.cli import mail_test, quick_start, server_check
from runvitals.cli.argument_types import add_server_path, address, positive_integer, size_bytes, time_ms
from runvitals.cli.cold_storage import add_cold_storage, cold_settings
from runvitals.cli.first_administrator import requested_administrator
from runvitals.cli.store_options import (
    FILES_FOLDER,
    SECRETS_FILE,
    add_store,
    check_shared_stores,
    check_waiting,
    is_clickhouse,
    open_stores,
    store_locations,
)
from runvitals.model.account_names import entity_name

if TYPE_CHECKING:
    import socket

    from runvitals.server.clock import Clock
    from runvitals.server.database.secret_box import SecretBox
    from runvitals.server.files.received_files import ReceivedFiles
    from runvitals.server.http.serve import EndSignals
    from runvitals.server.metadata_store import MetadataStore
    from runvitals.server.shared_server import SharedServer
    from runvitals.store.files.bucket_location import BucketLocation
    from runvitals.store.files.interface import FileStore

DEFAULT_LISTEN = "127.0.0.1:8900"
_SETUP = "/-/setup"
"""The file of the keys that encrypt queued mail, second factors and passwords of mail servers."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals server`."""
    parser.description = (
        "Stores samples in a folder and facts about runs in a database, until SIGTERM or Ctrl-C. "
        "From the first administrator on, every request needs an account or a key. Before that, unless it "
        "listens on loopback, every request needs a token (`runvitals token create NAME`). Until there is an "
        "administrator, the server prints a link to create one."
    )
    _add_options(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    mail_test.add_action(actions, add_store)
    server_check.add_action(actions, _add_options)


def _add_options(parser: argparse.ArgumentParser) -> None:
    _add_listening(parser)
    add_accounts(parser)
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="settings of the organisation and providers of sign-in, as TOML; they cannot be changed on the "
        "page; a mail server and secrets of providers may be among them, so only the server should read it",
    )
    _add_secrets(parser)
    _add_audit_file(parser)
    add_keeping(parser)
    add_cold_storage(parser)
    _add_files(parser)
    parser.add_argument(
        "--keep-deleted",
        metavar="TIME",
        type=time_ms,
        help="how long deleted runs stay in the trash; default: the setting trash_days, 30 days at first",
    )
    parser.add_argument(
        "--log-format",
        choices=("text", "json"),
        default="text",
        help="format of the log on stderr; default: text",
    )
    add_store(parser)


def _add_listening(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=address,
        default=address(DEFAULT_LISTEN),
        help=f"default: {DEFAULT_LISTEN}; port 0 means any free port",
    )
    parser.add_argument(
        "--otlp-grpc",
        metavar="HOST:PORT",
        type=address,
        help="also receive OpenTelemetry's metrics by OTLP over gRPC, usually on port 4317, without TLS; "
        "needs runvitals[otlp-grpc]; OTLP over HTTP needs no option",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=positive_integer,
        default=1,
        help="serve by N processes, which share ClickHouse and PostgreSQL; default: 1",
    )
    parser.add_argument("--require-token", action="store_true", help="require a token on loopback too")


def add_accounts(parser: argparse.ArgumentParser) -> None:
    """Add the options for users and for proxies in front of the server."""
    parser.add_argument(
        "--admin-email",
        metavar="ADDRESS",
        help="create the first administrator, unless there is one; also RUNVITALS_ADMIN_EMAIL, with "
        "RUNVITALS_ADMIN_NAME and RUNVITALS_ADMIN_PASSWORD_FILE",
    )
    parser.add_argument(
        "--team",
        metavar="NAME",
        type=team_name,
        default="main",
        help="the team that owns the projects and tokens from before there were accounts; default: main",
    )
    parser.add_argument(
        "--trusted-proxies",
        metavar="ADDRESSES",
        type=proxies,
        default=proxies("127.0.0.1,::1"),
        help="addresses and networks of proxies whose X-Forwarded-For, X-Forwarded-Proto and "
        "X-Forwarded-Prefix are believed, separated by commas; default: this machine; none: ''",
    )
    add_server_path(parser)


def _add_secrets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--secret-keys",
        metavar="FILE",
        help="the keys that encrypt second factors and passwords of other services; created if missing; "
        "servers that share a metadata store need the same file, and backups of that store do not contain "
        f"it; default: {SECRETS_FILE} in the store",
    )
    parser.add_argument(
        "--stolen-passwords",
        metavar="FILE",
        help="passwords that are not accepted: SHA-1 sums, sorted, one a line, as Have I Been Pwned "
        "publishes them",
    )


def _add_audit_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--audit-file",
        metavar="PATH",
        help="append the audit log to a file too, as JSON lines; rotate it by renaming it",
    )


def add_keeping(parser: argparse.ArgumentParser) -> None:
    """Add the options for the retention of samples."""
    parser.add_argument(
        "--keep",
        metavar="TIME",
        type=time_ms,
        help="how long samples are kept: 90d, 12h, 2w, 1y; default: without limit",
    )
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        type=size_bytes,
        help="size of all samples on disk: 200GB, 1TiB; beyond it the oldest are dropped; default: no limit",
    )


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--files",
        metavar="BUCKET",
        type=bucket,
        help="keep images, tables and files of runs in a bucket: s3://BUCKET/PREFIX, gs://… or az://…, with "
        "the credentials of the environment; needs runvitals[bucket]; default: a folder in the "
        "store",
    )
    parser.add_argument(
        "--max-files",
        metavar="SIZE",
        type=size_bytes,
        help="size of all images, tables and files of runs: 200GB, 1TiB; beyond it no more are accepted; "
        "default: while the disk has 1 GiB free",
    )
    parser.add_argument(
        "--team-folders",
        metavar="FOLDER",
        action="append",
        default=[],
        help="a folder below which a bucket of a team may be a folder, such as one on a network disk; can be "
        "repeated; default: none",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit code."""
    if arguments.action == mail_test.NAME:
        folder, metadata_address = store_locations(arguments)
        keys = arguments.secret_keys or os.path.join(folder, SECRETS_FILE)
        return mail_test.run(arguments, metadata_address, keys, _fix_settings)
    if arguments.action == server_check.NAME:
        return server_check.run(arguments)
    with quick_start.for_imports():
        from runvitals.server.background import work as background  # noqa: F401 - fails early if a dependency is missing
        from runvitals.server.http import allocator, serve
    allocator.keep_little()
    check_waiting(arguments)
    cold_settings(arguments, not is_clickhouse(arguments))
    host, port = arguments.listen
    signals = serve.EndSignals(serve.LONGEST_END_S)
    with serve.until_interrupted(signals), ExitStack() as stack:
        with _address_in_errors(host, port):
            listener = stack.enter_context(serve.bind(port, host))
        if arguments.workers > 1:
            return _serve_by_workers(arguments, listener)
        _serve(arguments, listener, signals)
    return 0


def _serve_by_workers(arguments: argparse.Namespace, listener: socket.socket) -> int:
    from runvitals.cli.worker_processes import WorkerProcesses
    from runvitals.server.database.secret_box import open_secret_box
    from runvitals.server.http.logs import configure
    from runvitals.server.http.serve import LONGEST_END_S, EndSignals

    check_shared_stores(arguments)
    folder, _ = store_locations(arguments)
    open_secret_box(arguments.secret_keys or os.path.join(folder, SECRETS_FILE))  # made once, for all
    configure(arguments.log_format)

    def work(number: int) -> int:
        _serve(arguments, listener, EndSignals(LONGEST_END_S), number)
        return 0

    return WorkerProcesses(arguments.workers, work).run()


def _serve(
    arguments: argparse.Namespace, listener: socket.socket, signals: EndSignals, worker: int = 0
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        worker: the number of this process; what only one process does, the first does.
    """
    from runvitals.server.background.housekeeping import RetentionPolicy
    from runvitals.server.background.work import start_background
    from runvitals.server.build import ServerOptions, build_server
    from runvitals.server.clock import Clock
    from runvitals.server.database.secret_box import open_secret_box
    from runvitals.server.http import serve
    from runvitals.server.http.logs import configure

    folder, _ = store_locations(arguments)
    configure(arguments.log_format)  # before the stores are opened, whose messages would be lost
    with ExitStack() as stack:
        cold, clock = cold_settings(arguments, not is_clickhouse(arguments)), Clock()
        store, metadata_store = open_stores(stack, arguments, worker, cold)
        token_required = _token_required(arguments, listener)
        welcome = [] if worker else _welcome(metadata_store, arguments, token_required, clock())
        box = open_secret_box(arguments.secret_keys or os.path.join(folder, SECRETS_FILE))
        _fix_settings(metadata_store, arguments.settings, box)
        files = _received_files(arguments, folder, metadata_store, clock)
        with quick_start.for_imports():
            options = ServerOptions(
                token_required=token_required,
                clock=clock,
                first_team=arguments.team,
                offers_setup=_offers_setup(metadata_store, welcome, worker),
                trusted_proxies=arguments.trusted_proxies,
                secret_box=box,
                is_breached=_breached_passwords(arguments.stolen_passwords),
                files=files,
                team_folders=arguments.team_folders,
            )
            app = build_server(store, metadata_store, options)
        stack.callback(app.close)
        stack.enter_context(serve.signals_noted(signals))
        retention = RetentionPolicy(arguments.keep, arguments.max_size, arguments.keep_deleted)
        start_background(stack, app, store, metadata_store, retention, clock, files)
        _start_listening(listener)
        if worker == 0:
            _write_audit_file(stack, arguments.audit_file, app, metadata_store, clock)
            _announce(_url(listener), store.name, welcome)
            _receive_grpc(stack, arguments.otlp_grpc, listener)
        serve.serve(app, listener, arguments.log_format, signals, arguments.path)


def _offers_setup(metadata_store: MetadataStore, welcome: list[tuple[str, str]], worker: int) -> bool:
    """Return whether the page for the first administrator can be opened. One worker prints its address."""
    if worker > 0:
        return not metadata_store.accounts.users.any_administrator()
    return any(path.startswith(_SETUP) for _, path in welcome)


def _start_listening(listener: socket.socket) -> None:
    from runvitals.server.http import serve

    host, port = listener.getsockname()[:2]
    with _address_in_errors(host, port):
        serve.start_listening(listener)


@contextmanager
def _address_in_errors(host: str, port: int) -> Iterator[None]:
    """Add the address to the error of a socket that cannot listen there."""
    try:
        yield
    except OSError as error:
        raise OSError(f"could not listen on {host}:{port}: {error.strerror}") from None


def _write_audit_file(
    stack: ExitStack, path: str | None, app: SharedServer, metadata_store: MetadataStore, clock: Clock
) -> None:
    """Append the audit log to a file, until the stack closes."""
    if path is not None:
        from runvitals.server.audit.audit_file import AuditFile

        audit_file = stack.enter_context(AuditFile(path, metadata_store.accounts.audit, clock.earliest))
        app.services.health.threads.append(audit_file.thread)


def _token_required(arguments: argparse.Namespace, listener: socket.socket) -> bool:
    """Return whether requests need a token: always, if others than this machine can send any."""
    from runvitals.server.http import serve

    if arguments.require_token or not serve.is_loopback_address(listener):
        return True
    if arguments.otlp_grpc is None:
        return False
    host, _ = arguments.otlp_grpc
    with serve.listen(0, host) as same_host:
        return not serve.is_loopback_address(same_host)


def _receive_grpc(stack: ExitStack, where: tuple[str, int] | None, listener: socket.socket) -> None:
    """Receive OTLP over gRPC, until the stack closes.

    Raises:
        OSError: it cannot.
    """
    if where is None:
        return
    try:
        from runvitals.server.doors.otlp.grpc_server import OtlpGrpcServer
    except ModuleNotFoundError as error:
        raise OSError(
            f"--otlp-grpc needs packages that are not installed: pip install 'runvitals[otlp-grpc]' (without"
            f" {error.name})"
        ) from None
    host, port = where
    own_host, own_port = listener.getsockname()[:2]
    own_host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(own_host, own_host)
    address_host = f"[{host}]" if ":" in host else host
    server = stack.enter_context(OtlpGrpcServer(f"{address_host}:{port}", (own_host, own_port)))
    print(f"runvitals: OTLP over gRPC on {address_host}:{server.port}", flush=True)


def _received_files(
    arguments: argparse.Namespace, folder: str, metadata_store: MetadataStore, clock: Callable[[], int]
) -> ReceivedFiles:
    """Return the storage of the runs' files: the bucket, or a folder in the store.

    Raises:
        OSError: the bucket cannot be used.
    """
    from runvitals.server.files.received_files import ReceivedFiles
    from runvitals.server.files.reserved_space import FileLimits

    limits = FileLimits(total_bytes=arguments.max_files)
    store: FileStore | None = None
    if arguments.files is not None:
        from runvitals.store.files.buckets import open_bucket

        store = open_bucket(arguments.files)
    return ReceivedFiles(os.path.join(folder, FILES_FOLDER), metadata_store, clock, limits, store)


def _fix_settings(metadata_store: MetadataStore, path: str | None, box: SecretBox) -> None:
    if path is None:
        return
    from runvitals.server.settings_file import read_settings_file

    try:
        settings = read_settings_file(path, box)
    except OSError as error:
        raise OSError(f"could not read the settings {path}: {error.strerror}") from None
    metadata_store.accounts.settings.fix(settings, path)


def _announce(url: str, store: str, welcome: list[tuple[str, str]]) -> None:
    print(f"runvitals: {url} stores runs in {inert(store)}; press Ctrl-C to stop", flush=True)
    for text, path in welcome:
        print(f"runvitals: {text}: {url.rstrip('/')}{path}", flush=True)


def _breached_passwords(path: str | None) -> Callable[[str], bool] | None:
    if path is None:
        return None
    from runvitals.server.accounts.breached_passwords import BreachedPasswords

    return BreachedPasswords(path).__contains__


def _welcome(
    metadata_store: MetadataStore, arguments: argparse.Namespace, token_required: bool, now_ms: int
) -> list[tuple[str, str]]:
    """Create the first administrator if one is named; return links to print, each with its purpose."""
    accounts = metadata_store.accounts
    if accounts.users.any_administrator():
        return []
    administrator = requested_administrator(arguments.admin_email)
    if administrator is not None:
        path = administrator.create(metadata_store, now_ms)
        return [] if path is None else [(f"{administrator.name} sets a password within an hour", path)]
    path = f"{_SETUP}#{accounts.one_time_tokens.create('setup', now_ms)}"
    usable = not token_required or any(token.revoked_ms is None for token in metadata_store.tokens.all())
    return [(f"{'for accounts, ' if usable else ''}create the first administrator within 24 hours", path)]


def _url(listener: socket.socket) -> str:
    """Return an address that a browser can open: this machine's name if the server listens on all."""
    import ipaddress
    import platform

    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host.partition("%")[0]).is_unspecified:
        host = platform.node()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def bucket(text: str) -> BucketLocation:
    """Return the address of a bucket."""
    from runvitals.store.files.bucket_location import BucketLocation

    try:
        return BucketLocation.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def team_name(text: str) -> str:
    """Return the name of a team."""
    try:
        return entity_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def proxies(text: str) -> tuple[str, ...]:
    """Return addresses and networks, checked.

    Example:
        >>> proxies("10.0.0.7, 10.1.0.0/16"), proxies("")
        (('10.0.0.7', '10.1.0.0/16'), ())
    """
    import ipaddress

    networks = tuple(part.strip() for part in text.split(",") if part.strip())
    for part in networks:
        try:
            ipaddress.ip_network(part)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"invalid proxy: {error}") from None
    return networks
