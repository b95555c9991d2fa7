"""`runvitals artifact`: put, get, list and delete artifacts, on a server or on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert, moment, table
from runvitals.model.artifact_names import checked_aliases
from runvitals.model.artifacts import ArtifactAddress, ArtifactVersion

if TYPE_CHECKING:
    from runvitals.readers.servers.artifacts import ServerArtifacts
    from runvitals.sdk.artifacts.artifact import Artifact

_DAY_S = 86_400
_NAME = "[[entity/]project/]name[:alias]; the alias may be a version: v3"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals artifact`."""
    parser.description = (
        "Works with the server of the settings, or without one with the runs of this machine."
    )
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    put = commands.add_parser("put", help="log a file or folder, in a run of its own")
    put.add_argument("path", metavar="PATH", help="a file, a folder, or an address such as s3://bucket/key")
    put.add_argument("--name", required=True, help="[project/]name")
    put.add_argument("--type", default="dataset", help="such as dataset or model; default: %(default)s")
    put.add_argument(
        "--checksum", action="store_true", help="of an address: note its size and ETag, which downloads check"
    )
    put.add_argument("--alias", action="append", default=[], help="a further name of the version")
    get = commands.add_parser("get", help="download a version")
    get.add_argument("name", metavar="NAME", help=_NAME)
    add_download(get)
    get.add_argument(
        "--missing-references", action="store_true", help="leave out references that cannot be read any more"
    )
    verify = commands.add_parser("verify", help="compare the files of a folder with those of a version")
    verify.add_argument("name", metavar="NAME", help=_NAME)
    verify.add_argument("folder", metavar="FOLDER", nargs="?", help="default: artifacts/NAME:vN")
    listed = commands.add_parser("ls", help="list artifacts, or the versions of one")
    listed.add_argument("name", metavar="NAME", nargs="?", help="[[entity/]project/]name; default: all")
    listed.add_argument("--json", action="store_true", help="print JSON, for scripts")
    remove = commands.add_parser("rm", help="say what depends on a version, and delete it with --yes")
    remove.add_argument("name", metavar="NAME", help=f"{_NAME}; without an alias all versions")
    remove.add_argument("--yes", action="store_true", help="delete it for good, with its aliases")
    ttl = commands.add_parser("ttl", help="after how many days versions are deleted: say it, or set it")
    ttl.add_argument("name", metavar="NAME", help="[[entity/]project/]name")
    ttl.add_argument(
        "days", metavar="DAYS", nargs="?", type=_days, help="a number, or never; linked versions are kept"
    )
    for command in (put, get, verify, listed, remove, ttl):
        command.add_argument("--project", help="default: as in the settings")
        add_dir(command)


def add_download(parser: Any) -> None:
    """Add the arguments of a download to a parser."""
    parser.add_argument("-o", "--output", metavar="FOLDER", help="default: artifacts/NAME:vN")
    parser.add_argument(
        "--include",
        metavar="GLOB",
        nargs="+",
        action="extend",
        default=[],
        help="only files whose path matches, as 'train/*.parquet'; * also matches /",
    )


def run(arguments: argparse.Namespace) -> int:
    """Log, download, compare, list or delete artifacts; return 1 if that was not done, or they differ."""
    actions = {"put": _put, "get": _get, "verify": _verify, "ls": _list, "rm": _remove, "ttl": _ttl}
    return actions[arguments.action](arguments)


def _put(arguments: argparse.Namespace) -> int:
    from runvitals.sdk.artifacts.artifact import ArtifactNotLogged
    from runvitals.sdk.run_artifacts import artifact_of
    from runvitals.sdk.start import init

    project, _, name = arguments.name.rpartition("/")
    # Before the run: a mistake would leave one that logged nothing.
    artifact = artifact_of(arguments.path, name, arguments.type, arguments.checksum)
    checked_aliases(arguments.alias)
    with init(
        project=project or arguments.project,
        dir=arguments.dir,
        job_type="artifact",
        reinit=True,
    ) as opened:
        opened.log_artifact(artifact, aliases=arguments.alias)
        _show_upload(arguments, opened.id)
    if not artifact.is_logged:
        return 1  # the run has said why
    try:
        print(inert(artifact.wait().qualified_name))
    except ArtifactNotLogged as error:
        print(f"runvitals: {inert(error)}; it is delivered by `runvitals sync {opened.id}`", file=sys.stderr)
        return 1
    return 0


def _show_upload(arguments: argparse.Namespace, run_id: str) -> None:
    """Show how much of the files has arrived on the server, until all has or no relay sends them."""
    from runvitals.base.progress import TransferProgress
    from runvitals.sdk.delivery import upload_report

    scope = _scope(arguments)
    if scope.server is None:
        return
    with TransferProgress("uploading", 0, 0) as progress:
        while True:
            report = upload_report(scope.server, run_id, scope.folder)
            if report is None or report["delivered"] or report["error"]:
                return
            if uploads := report["uploads"]:
                progress.expect(uploads["total_bytes"], uploads["total_files"])
                progress.set(uploads["bytes"], uploads["files"])
            elif not report["left"]:
                return


def _get(arguments: argparse.Namespace) -> int:
    artifact = _artifact_of(arguments)
    folder = artifact.download(
        arguments.output,
        include=arguments.include,
        allow_missing_references=arguments.missing_references,
    )
    print(inert(folder))
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    artifact = _artifact_of(arguments)
    folder = arguments.folder or artifact.default_root()
    lines = artifact.differences(folder).lines()
    for line in lines:
        print(inert(line))
    if lines:
        print(f"runvitals: {inert(folder)} is not {inert(artifact.name)}", file=sys.stderr)
        return 1
    print(f"{inert(folder)} has the {artifact.file_count:,} files of {inert(artifact.name)}")
    return 0


def _artifact_of(arguments: argparse.Namespace) -> Artifact:
    from runvitals.sdk.artifacts.artifact import Artifact
    from runvitals.sdk.artifacts.lookup import find

    return Artifact.from_source(find(_scope(arguments), arguments.name))


def _list(arguments: argparse.Namespace) -> int:
    versions = list(_versions(arguments))
    if not versions and arguments.name is not None:
        raise LookupError(f"there is no artifact {arguments.name!r}")
    rows = [_row(version) for version in versions]
    if arguments.json:
        print(json.dumps([asdict(version) for version in versions], indent=1))
    elif rows:
        print(table([["NAME", "TYPE", "ALIASES", "FILES", "BYTES", "LOGGED (UTC)"], *rows]))
    return 0


def _days(text: str) -> int:
    """Return a number of days; 0 for `never`."""
    if text == "never":
        return 0
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"invalid {text!r}; expected a number of days, or never")
    return int(text)


def _ttl(arguments: argparse.Namespace) -> int:
    with _server_artifacts(arguments) as (artifacts, address):
        expiring = None
        if arguments.days is not None:
            expiring = artifacts.set_time_to_live(address, arguments.days * _DAY_S or None)
        ttl_s = artifacts.time_to_live_s(address)
    sentence = "versions are kept"
    if ttl_s is not None:
        days = f"{ttl_s / _DAY_S:g} day{'' if ttl_s == _DAY_S else 's'}"
        count_text = f" ({expiring:,} of those that are there)" if expiring else ""
        sentence = f"versions are deleted {days} after they were logged{count_text}"
    print(f"{inert(arguments.name)}: {sentence}")
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    alias = ArtifactAddress.parsed(arguments.name).alias if ":" in arguments.name else None
    with _server_artifacts(arguments) as (artifacts, address):
        dependents = artifacts.dependents(address, alias)
        for line in _dependent_lines(dependents):
            print(inert(line))
        if not dependents["deletable"]:
            print("runvitals: it is linked: unlink it there first", file=sys.stderr)
            return 1
        if not arguments.yes:
            print("Nothing was deleted. Add --yes to delete it for good.")
            return 0
        artifacts.delete(address, alias)
    print(f"deleted {inert(arguments.name)}")
    return 0


@contextmanager
def _server_artifacts(arguments: argparse.Namespace) -> Iterator[tuple[ServerArtifacts, ArtifactAddress]]:
    """Yield the artifacts of the server, and the address of the one that is named.

    Raises:
        ValueError: there is no server.
    """
    from runvitals.readers.servers.artifacts import ServerArtifacts

    scope = _scope(arguments)
    if scope.server is None:
        raise ValueError(
            "artifacts of this machine belong to the runs that logged them; a server deletes its own"
        )
    written = ArtifactAddress.parsed(arguments.name)
    address = replace(
        written, entity=written.entity or scope.entity, project=written.project or scope.project
    )
    with closing(ServerArtifacts.of(scope.server)) as artifacts:
        yield artifacts, address


def _dependent_lines(dependents: dict[str, Any]) -> Iterator[str]:
    names = {
        "used by": [run["run"] for run in dependents["used_by"]],
        "made from it": [f"{row['name']}:v{row['version']}" for row in dependents["made_from"]],
        "linked as": [
            f"{'/'.join(filter(None, (row['entity'], row['project'], row['name'])))}:v{row['version']}"
            for row in dependents["links"]
        ],
        "aliases": dependents["aliases"],
    }
    totals = {"used by": "used_by_total", "made from it": "made_from_total", "linked as": "links_total"}
    for title, first_names in names.items():
        total = dependents[totals[title]] if title in totals else len(first_names)
        others = [f"{total - len(first_names)} more"] if total > len(first_names) else []
        yield f"{title}: {', '.join([*first_names, *others]) or '-'}"


def _row(version: ArtifactVersion) -> list[str]:
    name = f"{version.project}/{version.name}:v{version.version}"
    about = [name, version.type, ", ".join(version.aliases), str(version.files), f"{version.bytes:,}"]
    return [inert(text) for text in [*about, moment(version.created_ms)]]


def _versions(arguments: argparse.Namespace) -> Iterator[ArtifactVersion]:
    scope = _scope(arguments)
    address = None if arguments.name is None else ArtifactAddress.parsed(arguments.name)
    project = scope.project if address is None else address.project or scope.project
    entity = scope.entity if address is None else address.entity or scope.entity
    if scope.server is None:
        from runvitals.readers.journals.artifacts import LocalArtifacts

        of_all = address is None and arguments.project is None
        sources = LocalArtifacts(scope.folder).versions(
            None if of_all else project, None if address is None else address.name
        )
        yield from (source.version for source in sources)
        return
    from runvitals.readers.servers.artifacts import ServerArtifacts

    with closing(ServerArtifacts.of(scope.server)) as artifacts:
        names = [address.name] if address else [row["name"] for row in artifacts.names(project, entity)]
        for name in names:
            yield from artifacts.versions(ArtifactAddress(entity, project, name))


def _scope(arguments: argparse.Namespace) -> Any:
    from runvitals.sdk.artifacts.lookup import ArtifactScope
    from runvitals.sdk.start import resolve_settings

    settings = resolve_settings({})
    server = settings["server"] if settings["mode"] == "online" else None
    project = arguments.project or settings["project"]
    return ArtifactScope(server, directory(arguments), settings["entity"], project)
