from __future__ import annotations

import pytest

from runvitals.server.access.enforcement import rate_limits
from runvitals.server.access.enforcement.rate_limits import VERIFICATION_MAILS, RateLimit, RateLimiter
from runvitals.server.accounts.known_browsers import KnownBrowser, known_browser, new_known_browser
from runvitals.server.database.secret_box import SecretBox


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize("count", [1, 3, 7, 10])
def test_places_come_back_one_by_one(count: int) -> None:
    clock = Clock()
    limiter = RateLimiter((RateLimit(count, 3600),), clock)
    assert [limiter.take("ada") for _ in range(count)] == [0.0] * count
    assert limiter.take("ada") == pytest.approx(3600 / count)
    assert limiter.take("bob") == 0
    clock.now_s += 3600 / count
    assert limiter.take("ada") == 0
    assert limiter.take("ada") > 0
    clock.now_s += 7200
    assert [limiter.take("ada") for _ in range(count)] == [0.0] * count


def test_several_limits_hold_at_once_and_a_refusal_takes_no_place() -> None:
    clock = Clock()
    limiter = RateLimiter(VERIFICATION_MAILS, clock)
    sent = 0
    for _ in range(24 * 60):
        sent += limiter.take("ada") == 0
        assert limiter.take("ada") > 0
        clock.now_s += 60
    within = VERIFICATION_MAILS[-1].count
    assert within <= sent <= 2 * within


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limits, "MAX_SUBJECTS", 100)
    limiter = RateLimiter((RateLimit(1, 60),), Clock())
    for number in range(1000):
        limiter.take(number)
    assert limiter.take(999) > 0
    assert limiter.take(0) == 0


def test_only_the_server_itself_marks_browsers() -> None:
    box = SecretBox({"k": bytes(32)})
    cookie = new_known_browser(box, 7)
    browser = known_browser(box, cookie)
    assert browser is not None
    assert browser.user_id == 7
    assert new_known_browser(box, 7) != cookie
    other = SecretBox({"k": bytes(31) + b"x"})
    for wrong in (None, "", "x", "é", cookie[:-6] + "AAAAA=", cookie * 9, new_known_browser(other, 7)):
        assert known_browser(box, wrong) is None
    assert known_browser(box, cookie) == KnownBrowser(7, browser.id)
