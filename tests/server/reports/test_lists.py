"""The lists of reports, stars and following."""

from __future__ import annotations

from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create, text


def _titles(server: AccountsServer, by: str | None, query: str) -> list[str]:
    return [report["title"] for report in server.ask(by, "GET", f"reports?{query}")["reports"]]


def test_lists_have_what_one_may_read(digits: AccountsServer) -> None:
    create(digits, title="Published", publish=True)
    create(digits, title="Draft")
    create(digits, "ada", title="Ada's", publish=True)
    assert _titles(digits, "bob", "") == ["Ada's", "Draft", "Published"]
    assert _titles(digits, "bob", "of=mine") == ["Draft", "Published"]
    assert _titles(digits, "eve", "") == ["Ada's", "Published"]
    assert _titles(digits, "eve", "of=team&entity=vision") == ["Ada's", "Published"]
    assert _titles(digits, "eve", "of=team&entity=other") == []
    assert _titles(digits, "mallory", "") == []
    digits.ask("eve", "GET", "reports?of=team", 422)
    page = digits.ask("bob", "GET", "reports?limit=2")
    assert (len(page["reports"]), page["total"]) == (2, 3)
    assert len(digits.ask("bob", "GET", f"reports?limit=2&after={page['next']}")["reports"]) == 1


def test_reports_are_searched_by_title_and_text(digits: AccountsServer) -> None:
    create(digits, title="Warm-up", blocks=[text("aaaa", "Cosine *decay*, 50% less")], publish=True)
    create(digits, title="Secret", blocks=[text("aaaa", "decay of mine")])
    assert _titles(digits, "eve", "text=DECAY cosine") == ["Warm-up"]
    assert _titles(digits, "eve", "text=decay") == ["Warm-up"]
    assert _titles(digits, "bob", "text=decay") == ["Secret", "Warm-up"]
    assert _titles(digits, "eve", "text=50%25") == ["Warm-up"]
    assert _titles(digits, "eve", "text=5_%25") == []


def test_stars_and_following_are_ones_own(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    path = f"reports/{report['id']}"
    for mark, of in (("star", "starred"), ("follow", "followed")):
        for _ in range(2):
            digits.ask("eve", "PUT", f"{path}/{mark}", 204)
        assert _titles(digits, "eve", f"of={of}") == ["Rates"]
        assert _titles(digits, "bob", f"of={of}") == []
        assert digits.ask("eve", "GET", path)[of] is True
        digits.ask("eve", "DELETE", f"{path}/{mark}", 204)
        assert digits.ask("eve", "GET", path)[of] is False
        digits.ask("mallory", "PUT", f"{path}/{mark}", 404)


def test_reports_of_projects_in_the_trash_are_in_no_list(digits: AccountsServer) -> None:
    create(digits, publish=True)
    digits.ask("ada", "DELETE", "entities/vision/projects/digits", 202)
    assert _titles(digits, "bob", "") == []
