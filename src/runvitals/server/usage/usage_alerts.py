"""Mails about limits and charges: at which thresholds, and who gets them, once a month each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from runvitals.server.events.outbox import Notification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.charges import CHARGES, LIMITED, STORAGE, UNITS
from runvitals.server.usage.days import Month
from runvitals.server.usage.limits import Use, uses
from runvitals.server.usage.settings import UsageSettings
from runvitals.server.usage.storage.alerts import Recipients, UsageAlert, UsageAlertReceiver
from runvitals.server.usage.storage.plans import ORGANISATION

PERCENT: Final = (85, 100)
"""Percent of a limit at which administrators get a mail, unless they set others."""
AMOUNTS: Final = (200, 450, 700, 1000)
"""Charges of a month, in the organisation's currency, at which they get one."""
Kind = Literal["percent", "amount"]
_SMALL: Final = 0.05
_LARGEST: Final = 3


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """When mails are sent, and to whom.

    Args:
        recipients: `admins`: administrators of the organisation; `billing`: billing administrators only.
            Administrators of a team get mails about its limits in any case.
        off: categories without mails.
    """

    percent: tuple[int, ...] = PERCENT
    amounts: tuple[int, ...] = AMOUNTS
    recipients: Recipients = "admins"
    off: frozenset[str] = frozenset()

    def as_json(self) -> dict[str, Any]:
        """Return the settings as they are stored and sent."""
        return {
            "percent": list(self.percent),
            "amounts": list(self.amounts),
            "recipients": self.recipients,
            "categories": {category: category not in self.off for category in LIMITED},
        }


def alert_settings(metadata_store: MetadataStore) -> AlertSettings:
    """The settings as they are now."""
    settings = metadata_store.usage.documents.get("alerts")
    if not settings:
        return AlertSettings()
    off = frozenset(category for category, on in settings["categories"].items() if not on)
    return AlertSettings(tuple(settings["percent"]), tuple(settings["amounts"]), settings["recipients"], off)


def check_limits(metadata_store: MetadataStore, settings: UsageSettings, now_ms: int) -> None:
    """Tell administrators of limits that were passed, once a month; refuse new runs where a plan says so.

    Called after each roll-up.
    """
    month = Month.of(settings.calendar.date_at(now_ms))
    used = uses(metadata_store, settings, now_ms)
    telling = _Telling(metadata_store, settings, month, now_ms)
    telling.rearm(used)
    refused = {}
    for use in used:
        if use.refuses:
            refused[use.entity_id] = telling.refusal(use)
        telling.tell(use)
    metadata_store.usage.refused = refused


class _Telling:
    """Sends the mails of one check."""

    def __init__(
        self, metadata_store: MetadataStore, settings: UsageSettings, month: Month, now_ms: int
    ) -> None:
        self._alerts = metadata_store.usage.alerts
        self._names = metadata_store.usage.reading.names()
        self._settings = alert_settings(metadata_store)
        self._currency = settings.currency
        self._month = month
        self._now_ms = now_ms

    def rearm(self, used: Sequence[Use]) -> None:
        """Forget the thresholds that are not passed any more because the limit was raised."""
        now = {(use.entity_id, use.category): use for use in used}
        for alert in self._alerts.of_period(self._month.name):
            use = now.get((alert.entity_id, alert.category))
            if use is None or alert.limit_then is None or alert.kind != "percent":
                continue
            share, limit = use.share, use.limit_units
            if (
                limit is not None
                and limit > alert.limit_then
                and share is not None
                and share < alert.threshold
            ):
                self._alerts.forget(alert)

    def refusal(self, use: Use) -> str:
        """Why new runs are refused."""
        administrators = ", ".join(receiver.name for receiver in self._alerts.receivers(use.entity_id))
        return f"{self._quantity_text(use)}; administrators: {administrators}"

    def tell(self, use: Use) -> None:
        """Mail administrators if a threshold was passed about which they got no mail yet."""
        if use.category in self._settings.off:
            return
        share = use.share
        if share is not None:
            self._send(use, "percent", [percent for percent in self._settings.percent if share >= percent])
        if use.category == CHARGES and use.entity_id == ORGANISATION:
            self._send(
                use, "amount", [percent for percent in self._settings.amounts if use.quantity >= percent]
            )

    def _send(self, use: Use, kind: Kind, thresholds: Sequence[int]) -> None:
        if not thresholds:
            return
        period, limit = self._month.name, use.limit_units
        about = period, use.entity_id, use.category, kind
        passed = [UsageAlert(*about, threshold, use.quantity, limit) for threshold in thresholds]
        # With the limit: after it was raised, the same threshold may be passed again.
        key = ":".join(map(str, ("usage", *about, max(thresholds), limit)))
        billing = self._alerts.billing_administrators()
        notifications = [
            Notification(
                f"{key}:user:{receiver.user_id}",
                "usage.threshold",
                f"user:{receiver.user_id}",
                f"usage:{use.entity_id}",
                self._text(use, receiver, billing),
                {
                    "path": "/-/billing" if receiver.manages else "/-/settings/usage",
                    "link": "Plan" if receiver.manages else "Usage",
                    "level": "warning",
                },
                self._now_ms,
            )
            for receiver in self._alerts.receivers(use.entity_id, self._settings.recipients)
        ]
        self._alerts.send(passed, notifications, self._now_ms)

    def _text(self, use: Use, receiver: UsageAlertReceiver, billing: Mapping[str, str]) -> str:
        unit, share = self._unit(use), use.share
        end = f"The month ends on {self._month.last.isoformat()}."
        largest = "; ".join(
            f"{self._names.get(('project', number or 0), 'without a project')} {_figure(value)} {unit}"
            for number, value in use.largest[:_LARGEST]
        )
        refuses = use.limit is not None and use.limit.refuse_new_runs
        then = "new runs are refused" if refuses else "nothing is refused"
        contacts = ", ".join(f"{name} ({address})" if address else name for name, address in billing.items())
        paragraphs = (
            f"{self._quantity_text(use)} in {self._month.name}",
            end if share is None else f"That is {share:.0f} % of the limit. {end}",
            f"Largest projects: {largest}." if largest else "",
            f"You can raise the limit in the plan. At 100 %, {then}."
            if receiver.manages
            else f"A billing administrator can raise the limit: {contacts}.",
        )
        return "\n\n".join(filter(None, paragraphs))

    def _quantity_text(self, use: Use) -> str:
        """Such as `vision has used 100.2 of 100 GB (storage)`."""
        name = (
            "the organisation"
            if use.entity_id == ORGANISATION
            else self._names.get(("entity", use.entity_id), "?")
        )
        limit = use.limit_units
        of_limit = "" if limit is None else f" of {limit:g}"
        category = use.category.replace("_", " ")
        return f"{name} has used {_figure(use.quantity)}{of_limit} {self._unit(use)} ({category})"

    def _unit(self, use: Use) -> str:
        if use.category == CHARGES:
            return self._currency
        return "GB" if use.category == STORAGE else UNITS[use.category]


def _figure(value: float) -> str:
    """Return a quantity with one decimal; a small one has a digit that is not 0."""
    return f"{value:.1f}" if value == 0 or value >= _SMALL else f"{value:.1g}"
