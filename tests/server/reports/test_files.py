"""Images of reports."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create


def picture(form: str = "PNG", size: tuple[int, int] = (3000, 1500)) -> bytes:
    """A picture with a comment in its metadata."""
    body = io.BytesIO()
    Image.new("RGB", size, (10, 20, 30)).save(
        body, form, **({"comment": b"secret"} if form == "JPEG" else {})
    )
    return body.getvalue()


def upload(server: AccountsServer, report: dict[str, Any], body: bytes, status: int = 201, **how: Any) -> Any:
    """The answer to an upload."""
    headers = {"content-type": how.pop("content_type", "image/png")}
    by = how.pop("by", "bob")
    return server.ask(by, "POST", f"reports/{report['id']}/files", status, content=body, headers=headers)


def test_an_image_is_encoded_anew_and_shown_to_readers(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    stored = upload(digits, report, picture("JPEG"), content_type="image/jpeg")
    assert (stored["width"], stored["height"]) == (2560, 1280)
    with digits.client("eve") as client:
        answer = client.get(f"reports/{report['id']}/files/{stored['file']}")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert b"secret" not in answer.content
    assert Image.open(io.BytesIO(answer.content)).format == "WEBP"
    digits.ask("mallory", "GET", f"reports/{report['id']}/files/{stored['file']}", 404)
    upload(digits, report, picture(), 403, by="eve")


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", "image/svg+xml", 415),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", "image/png", 422),
        (b"GIF89a" + bytes(100), "image/gif", 422),
        (bytes(10_000_001), "image/png", 413),
    ],
)
def test_what_is_no_picture_is_refused(
    digits: AccountsServer, body: bytes, content_type: str, status: int
) -> None:
    with digits.client("bob") as client:
        report = create(digits)
        answer = client.post(
            f"reports/{report['id']}/files", content=body, headers={"content-type": content_type}
        )
    assert answer.status_code == status


def test_files_of_a_draft_are_its_authors(digits: AccountsServer) -> None:
    report = create(digits)
    stored = upload(digits, report, picture(size=(20, 10)))
    digits.ask("ada", "GET", f"reports/{report['id']}/files/{stored['file']}", 404)
    other = create(digits, "ada", publish=True)
    digits.ask("bob", "GET", f"reports/{other['id']}/files/{stored['file']}", 404)


def test_copies_keep_images_after_the_report_is_gone(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    stored = upload(digits, report, picture(size=(20, 10)))
    image = {"id": "pict", "kind": "image", "file": stored["file"], "alt": "A plot"}
    digits.ask("bob", "PATCH", f"reports/{report['id']}", json={"revision": 1, "blocks": [image]})
    digits.ask("bob", "POST", f"reports/{report['id']}/publish", json={"revision": 2})
    copy = digits.ask("ada", "POST", f"reports/{report['id']}/duplicate", 201, json={})
    digits.ask("bob", "DELETE", f"reports/{report['id']}", 204)
    digits.accounts.reports.purge(report["id"])
    files = digits.app.services.files
    assert files is not None
    assert files.collect() == 0
    with digits.client("ada") as client:
        assert client.get(f"reports/{copy['id']}/files/{stored['file']}").status_code == 200
    digits.accounts.reports.purge(copy["id"])
    assert files.collect() == 1


def test_files_of_reports_count_as_storage_of_their_project(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    upload(digits, report, picture())
    [project] = digits.ask("ada", "GET", "storage/vision")["projects"]
    assert project["reports"] > 0
    assert (project["reports"] <= project["bytes"], project["trash"]) == (True, 0)
    digits.ask("bob", "DELETE", f"reports/{report['id']}", 204)
    [project] = digits.ask("ada", "GET", "storage/vision")["projects"]
    assert project["trash"] == project["reports"]
