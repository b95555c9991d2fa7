"""The pages of usage in a real browser."""

from __future__ import annotations

from datetime import datetime, timezone
from importlib.resources import files

import pytest

from tests.server.api.accounts.people import People
from tests.server.browser import Browser
from tests.server.test_account_pages import check, page, people, signed_in  # noqa: F401
from tests.server.test_build import hook  # noqa: F401
from tests.server.test_joining_pages import teams  # noqa: F401
from tests.server.test_page import browser, static  # noqa: F401
from tests.server.test_shared_page import shown
from tests.server.usage.used import A100, H100, use


@pytest.mark.parametrize("dark", [False, True])
def test_the_usage_of_a_team_fits_a_phone_and_can_be_read_by_everyone(
    page: Browser,  # noqa: F811
    teams: People,  # noqa: F811
    dark: bool,
) -> None:
    month = datetime.now(timezone.utc).strftime("%Y-%m")  # the page starts with the browser's month
    team, ada = teams.accounts.teams.by_name("vision").id, teams.accounts.users.by_name("ada").id
    for day, hours, models in (("02", 3, (H100,)), ("03", 5, (A100, H100))):
        how = {"entity_id": team, "author_id": ada, "hours": hours, "models": models}
        use(teams.served.metadata_store, f"run-{day}", f"{month}-{day}", **how)
    page.resize(390, 800, dark)
    signed_in(page, "ada")
    check(page, "/vision/-/settings/usage", files("axe_core_python").joinpath("axe.min.js").read_text())
    shown(page, "13.00", "dl")
    assert page.evaluate("document.querySelectorAll('.bars .part').length") == 2
    page.open("/-/settings/usage")
    shown(page, "13.00", "table")
