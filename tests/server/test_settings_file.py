"""Settings and providers from the file of `runvitals server --settings`."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.settings import opened_smtp_url
from runvitals.server.settings_file import read_settings_file
from runvitals.server.sign_on.providers import client_secret, providers_of
from tests.server.accounts.routes.people import serving_people

BOX = SecretBox({"k": bytes(32)})
WHOLE = """
[settings]
name = "The lab"
url = "https://runs.lab.example/"
signup = "domain"
signup_domains = ["Lab.example"]
smtp_url = "smtps://runs:p4ss@mail.lab.example"
mail_from = "runs@lab.example"

[[providers]]
id = "lab"
label = "Lab"
kind = "oidc"
issuer = "https://idp.example"
client_id = "runs"
client_secret = "hunter2"
group_claim = "groups"
admin_group = "chiefs"
[providers.group_map]
eyes = { team = "vision", role = "member" }
"""


def write(folder: Path, text: str) -> str:
    path = folder / "settings.toml"
    path.write_text(text)
    return str(path)


def test_a_whole_file(tmp_path: Path) -> None:
    settings = read_settings_file(write(tmp_path, WHOLE), BOX)
    assert (settings["name"], settings["url"]) == ("The lab", "https://runs.lab.example")
    assert settings["signup_domains"] == ["lab.example"]
    assert opened_smtp_url(settings["smtp_url"], BOX) == "smtps://runs:p4ss@mail.lab.example"
    provider = providers_of(settings)["lab"]
    assert (client_secret(settings, provider, BOX), provider.admin_group) == ("hunter2", "chiefs")
    assert provider.memberships(["eyes"]) == {"vision": "member"}
    assert "hunter2" not in repr(settings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[settings", "end of a table declaration"),
        ("[setting]\nname = 'x'", "unknown table 'setting'"),
        ("[settings]\nsign_up = 'open'", "unknown setting 'sign_up'"),
        ("[settings]\nsignup = 'everybody'", "invalid signup 'everybody'"),
        ("[settings]\nurl = 'ftp://x'", "invalid url"),
        ("[settings]\nsmtp_url = 'http://x'", "invalid smtp_url"),
        ("settings = 7", "expected settings as a table"),
        ("[providers]\nid = 'lab'", "expected providers as an array of tables"),
        ("[[providers]]\nid = 'lab'\nkind = 'saml'", "provider lab: invalid kind 'saml'"),
        ("\udcff", "can't decode"),
    ],
)
def test_the_error_names_the_file_and_what_is_wrong(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=r"settings\.toml: ") as raised:
        read_settings_file(str(path), BOX)
    assert problem in str(raised.value)


def test_what_the_file_sets_is_followed_shown_and_locked(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE)
    with serving_people(tmp_path) as people:
        people.set(name="Before", signup="open")
        people.accounts.settings.fix(read_settings_file(path, BOX), path)
        people.rights_changed()
        rita = people.browser("rita")
        methods = rita.get("/auth/methods").json()
        assert (methods["signup"], [row["id"] for row in methods["providers"]]) == ("domain", ["lab"])
        shown = rita.get("/organisation/settings")
        name = shown.json()["settings"]["name"]
        assert (name["value"], name["editable"], name["enforced_by"]) == ("The lab", False, path)
        assert rita.put("/organisation/settings", json={"signup": "open"}).status_code == 409
        assert rita.put("/organisation/settings", json={"trash_days": 7}).status_code == 200
        providers = rita.get("/organisation/providers")
        assert (providers.json()["editable"], providers.json()["enforced_by"]) == (False, path)
        refused = rita.put("/organisation/providers", json={"providers": []})
        assert refused.status_code == 409
        assert path in refused.json()["error"]
        mail = rita.get("/organisation/mail")
        assert (mail.json()["host"], mail.json()["configured"]) == ("mail.lab.example", True)
        for response in (shown, providers, mail):
            assert "hunter2" not in response.text
            assert "p4ss" not in response.text
