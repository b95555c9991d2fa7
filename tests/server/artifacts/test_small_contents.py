"""Small files of a version in one response: who gets them, what is left out, what our client makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import runvitals
from runvitals.model import small_files
from runvitals.model.limits import PIECE_BYTES, SMALL_FILE_BYTES
from runvitals.readers.servers.artifact_contents import ArtifactContents
from runvitals.readers.servers.connection import ServerError
from tests.server.artifacts.test_artifacts import Lab, recorded
from tests.server.serving import serving

VERSION = "/entities/ada/projects/digits/artifacts/many/v0"
LARGE = b"x" * (SMALL_FILE_BYTES + 1)
FILES = {
    **{f"d/{number:02} &+%.txt": b"%d" % number for number in range(20)},
    "d/same.txt": b"7",
    "empty": b"",
    "large": LARGE,
    **{f"much/{number}": bytes([number]) * 60_000 for number in range(20)},
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A server where ada has the artifact `many`, of which bo may read nothing."""
    with serving(tmp_path_factory.mktemp("server")) as served:
        lab = Lab(served, tmp_path_factory.mktemp("data"))
        artifact = runvitals.Artifact("many", "dataset")
        for path, content in FILES.items():
            with artifact.new_file(path, "wb") as file:
                file.write(content)
        artifact.add_reference("s3://bucket/key")
        recorded(lab, "ada", artifact)
        yield lab


def together(lab: Lab, *paths: str) -> list[bytes]:
    response = lab.get(f"{VERSION}/contents", path=list(paths))
    assert (response.status_code, response.headers["content-type"]) == (200, "application/octet-stream")
    assert len(response.content) <= PIECE_BYTES
    contents = list(small_files.unpack(response.content))
    assert all(hashlib.sha256(content).hexdigest() == sha256 for sha256, content in contents)
    return [bytes(content) for _, content in contents]


def test_each_content_comes_once_and_the_rest_is_left_out(lab: Lab) -> None:
    wanted = ["d/07 &+%.txt", "d/same.txt", "empty", "large", "key", "none"]
    assert sorted(together(lab, *wanted)) == [b"", b"7"]
    much = together(lab, *(f"much/{number}" for number in range(20)))
    assert {len(content) for content in much} == {60_000}
    assert len(set(much)) == 17  # as many as fit


@pytest.mark.parametrize(
    ("who", "path", "status"),
    [
        ("bo", f"{VERSION}/contents", 404),
        ("ada", f"{VERSION}9/contents", 404),
        ("ada", f"{VERSION.replace('many', 'none')}/contents", 404),
        ("ada", f"{VERSION.replace('v0', 'v99999999999')}/contents", 404),
        ("ada", f"{VERSION.replace('v0', 'latest')}/contents", 200),
    ],
)
def test_who_may_not_read_the_version_gets_nothing(lab: Lab, who: str, path: str, status: int) -> None:
    assert lab.get(path, who, path="empty").status_code == status


def test_the_number_of_paths_is_limited(lab: Lab) -> None:
    assert lab.get(f"{VERSION}/contents", path=["a"] * 501).status_code == 422
    assert lab.get(f"{VERSION}/contents").status_code == 422


@pytest.mark.parametrize("fault", [None, "wrong", "damaged", "earlier version"])
def test_a_download_gets_all_files_whatever_comes_together(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str | None
) -> None:
    alone: list[str] = []
    copy = ArtifactContents.copy

    def counted(self: ArtifactContents, entry: Any, path: str) -> None:
        alone.append(entry.path)
        copy(self, entry, path)

    monkeypatch.setattr(ArtifactContents, "copy", counted)
    with lab.client() as client:
        artifact = client.artifact("ada/digits/many")
        source: Any = artifact._source
        connection = source._contents._first.server
        get_file = type(connection).get_file

        def answer(self: Any, path: str, parameters: Any) -> bytes:
            body = get_file(self, path, parameters)
            if fault == "wrong":
                return body[:-1] + b"?"
            if fault == "damaged":
                return body[:-1]
            if fault == "earlier version":
                raise ServerError("there is no such route", 404)
            return bytes(body)

        monkeypatch.setattr(type(connection), "get_file", answer)
        root = Path(artifact.download(tmp_path / "out"))
        artifact.verify(root)
    there = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    assert there == FILES
    if fault is None:
        assert alone == ["large"]
    elif fault == "wrong":
        assert 1 < len(alone) < 5
    else:
        assert len(alone) > 5
