"""`runvitals backup` and `restore` keep reports, with all that belongs to them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PIL import Image
from sqlalchemy import select

from runvitals.cli import main
from runvitals.cli.store_options import FILES_FOLDER
from runvitals.server.database.database import Database
from runvitals.server.database.tables import reports as tables
from runvitals.server.database.tables.projects import guest_link
from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.conftest import with_team
from tests.server.database.conftest import NewAddress, empty, kind, postgresql
from tests.server.reports.documents import REPORTS, panel, publish, text
from tests.server.reports.runs import record_run

__all__ = ["empty", "kind", "postgresql"]
TABLES = (
    tables.report,
    tables.report_version,
    tables.report_file,
    tables.frozen_panel,
    tables.report_share,
    tables.report_star,
    tables.report_follow,
    tables.report_pin,
    tables.report_comment,
    tables.report_reaction,
    tables.wandb_report,
    guest_link,
)


def fill(server: AccountsServer) -> str:
    """Make a report with files, versions, comments, shares and all else; returns its path."""
    record_run(server, "run-0", {"loss": [1.0, 0.5]})
    path = publish(server, panel())
    picture = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(picture, "PNG")
    headers = {"content-type": "image/png"}
    file = server.ask("bob", "POST", f"{path}/files", 201, content=picture.getvalue(), headers=headers)
    image = {"id": "pict", "kind": "image", "file": file["file"], "alt": "A red square"}
    shown = server.ask("bob", "GET", path)
    blocks = [text("aaaa", "A remark"), image, *shown["blocks"]]
    server.ask("bob", "PATCH", path, json={"revision": 1, "blocks": blocks})
    frozen = server.ask("bob", "POST", f"{path}/panels/panel1/freeze")
    server.ask("bob", "POST", f"{path}/publish", json={"revision": frozen["revision"]})
    comment = server.ask("eve", "POST", f"{path}/comments", 201, json={"text": "Why?", "block": "aaaa"})
    server.ask("bob", "POST", f"{path}/comments", 201, json={"text": "So.", "reply_to": comment["id"]})
    server.ask("bob", "PUT", f"{path}/comments/{comment['id']}/reactions/👍", 204)
    server.ask("bob", "PUT", f"{path}/shares/mallory", 204, json={"role": "edit"})
    server.ask("bob", "POST", f"{path}/links", 201, json={})
    for mark in ("star", "follow"):
        server.ask("eve", "PUT", f"{path}/{mark}", 204)
    number = int(path.partition("/")[2])
    server.ask("ada", "PATCH", "teams/vision/profile", json={"pinned_reports": [number]})
    server.metadata_store.wandb_report_specs.put(number, "{}")
    trashed = server.ask("bob", "POST", REPORTS, 201, json={"title": "Gone"})["id"]
    server.ask("bob", "DELETE", f"reports/{trashed}", 204)
    return path


def rows(address: str) -> Mapping[str, list[Any]]:
    database = Database(address)
    with database.read() as connection:
        found = {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr) for table in TABLES
        }
    database.close()
    return found


def test_reports_are_in_backups(empty: NewAddress, tmp_path: Path) -> None:
    old, new = empty(), empty()
    with accounts_server(tmp_path / "old", old) as server:
        with_team(server.metadata_store)
        path = fill(server)
    (tmp_path / "old" / "files").rename(tmp_path / "old" / "store" / FILES_FOLDER)
    before = rows(old)
    assert all(before.values()), [name for name, found in before.items() if not found]
    copy = str(tmp_path / "copy")
    assert main(["backup", copy, "--store", str(tmp_path / "old" / "store"), "--metadata", old]) == 0
    place = tmp_path / "new" / "store"
    assert main(["restore", copy, "--store", str(place), "--metadata", new]) == 0
    assert rows(new) == before
    (place / FILES_FOLDER).rename(tmp_path / "new" / "files")
    with accounts_server(tmp_path / "new", new) as server:
        shown = server.ask("bob", "GET", path)
        [image] = [block for block in shown["blocks"] if block["kind"] == "image"]
        with server.client("bob") as client:
            picture = client.get(f"{path}/files/{image['file']}")
        assert picture.headers["content-type"] == "image/webp"
        values = server.ask("mallory", "GET", f"{path}/panels/panel1/data")
        assert (values["frozen"], list(values["lines"])) == (True, ["logged:loss"])
        assert len(server.ask("eve", "GET", f"{path}/comments")["comments"]) == 2
