"""Secrets are found however they are assigned to their name: in code, calls, lists, YAML, XML, URLs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.monitoring.environment.redaction import command, entries, is_secret, text

SECRET = "Tr0ub4dor-and-3"


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("os.environ['HF_TOKEN']='{}'", "os.environ['HF_TOKEN']='***'"),
        ('os.environ["HF_TOKEN"] = "{}"; x = 1', 'os.environ["HF_TOKEN"] = "***"; x = 1'),
        ("os.putenv('API_KEY', '{}')", "os.putenv('API_KEY', '***')"),
        (
            "session.headers.update(('Authorization', '{}'))",
            "session.headers.update(('Authorization', '***'))",
        ),
        ("Command '['x', '--token', '{}']' failed", "Command '['x', '--token', '***']' failed"),
        ('["--password", "{} b", "--lr", "1"]', '["--password", "***", "--lr", "1"]'),
        ("password: str = '{}'", "password: str = '***'"),
        ('config["credentials"] = {{"a": {{"b": "c"}}, "me": "{}"}}; x', 'config["credentials"] = ***; x'),
        ('credentials = {{"me": "{}"', "credentials = ***"),
        ("passwords: [a, [b], {}] x", "passwords: *** x"),
        ('config["credentials"]["a"]["me"] = "{}"; x', 'config["credentials"]["a"]["me"] = "***"; x'),
        ('credentials[0] = "{}"', 'credentials[0] = "***"'),
        ('config["lr"]["a"] = "b"; password={}', 'config["lr"]["a"] = "b"; password=***'),
        ("'api_key' => '{}'", "'api_key' => '***'"),
        ("x -token {} y", "x -token *** y"),
        ("PASSWORD='a'\\''{}' python t.py", "PASSWORD='***' python t.py"),
        ('{{"password": "a\\"{}", "lr": 1}}', '{{"password": "***", "lr": 1}}'),
        ('"{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}"', '"{{\\\\\\"password\\\\\\": \\\\\\"***\\\\\\"}}"'),
        ("db:\n  password: |\n    {}\n\n    {}\n  lr: 1", "db:\n  password: |\n    ***\n  lr: 1"),
        ("password:\n  - {}\nlr: 1", "password:\n  ***\nlr: 1"),
        ("- name: API_KEY\n  value: {}\n- name: LR", "- name: API_KEY\n  value: ***\n- name: LR"),
        ('{{"name": "DB_PASSWORD", "value": "{}"}}', '{{"name": "DB_PASSWORD", "value": "***"}}'),
        ("<password>{}</password>", "<password>***</password>"),
        ("https://h/?next=%2Fx%3Ftoken%3D{}%26y&z=1", "https://h/?next=%2Fx%3Ftoken%3D***%26y&z=1"),
        ("https://h/?next=%2Fx%3Fa%26token={}&z=1", "https://h/?next=%2Fx%3Fa%26token=***&z=1"),
        ("wandb login --relogin 0123456789abcdef0123456789abcdef01234567", "wandb login --relogin ***"),
        ("postgres://me:p'{}@host/db", "postgres://me:***@host/db"),
        ("postgres://me:p {}@host/db", "postgres://me:***@host/db"),
        ("postgres://me:p\\{}@host/db", "postgres://me:***@host/db"),
    ],
)
def test_a_secret_in_a_text(dirty: str, clean: str) -> None:
    assert text(dirty.replace("{}", SECRET).replace("{{", "{").replace("}}", "}")) == clean.replace(
        "{{", "{"
    ).replace("}}", "}")


@pytest.mark.parametrize(
    "harmless",
    [
        "expected one of 'token', 'key', 'secret'",
        "fields: ['api_key', 'name']",
        "columns = ['password', 'username']",
        "raise KeyError('password')",
        "usage: login <token> <host>",
        "name: lr, value: 0.1",
        "key=lr value=0.1",
        "os.environ['LR'] = '0.1'",
        "a well-known-token is missing",
        "see http://host:port' and mail me@example.org",
        "redis://cache:6379 and me@example.org",
        "unexpected token: '}'",
        "a code after the password, or for a passkey: either one",
        "--password-file /run/secrets/db --token-limit 5 --webhook-timeout 5",
        "--num-secret-santas 5",
        "--ssl-key /etc/ssl/host.pem --ssh-key ~/.ssh/id_ed25519",
    ],
)
def test_other_text_is_left(harmless: str) -> None:
    assert text(harmless) == harmless
    assert command(harmless.split()) == harmless.split()


@pytest.mark.parametrize(
    ("arguments", "clean"),
    [
        (["aws", "configure", "set", "aws_secret_key", SECRET], "aws configure set aws_secret_key ***"),
        (["dvc", "remote", "modify", "r", "password", SECRET], "dvc remote modify r password ***"),
        (["wandb", "login", "--relogin", "0123456789abcdef" * 2 + "01234567"], "wandb login --relogin ***"),
        (["unzip", "-P", SECRET, "a.zip"], "unzip -P *** a.zip"),
        (["7z", "x", f"-p{SECRET}", "a.7z"], "7z x -p*** a.7z"),
        (["http", "-a", f"me:{SECRET}", "host"], "http -a me:*** host"),
        (["x", "--connection-string", SECRET], "x --connection-string ***"),
        (["x", "--pass-phrase", SECRET, "-storepass", SECRET], "x --pass-phrase *** -storepass ***"),
        (["x", "--set", "lr", "0.1"], "x --set lr 0.1"),
        (["git", "config", "user.name", "me"], "git config user.name me"),
        (["x", "--password-file", "/run/x"], "x --password-file /run/x"),
    ],
)  # fmt: skip
def test_arguments(arguments: list[str], clean: str) -> None:
    assert command(arguments) == clean.split()


@pytest.mark.parametrize(
    ("configured", "shown"),
    [
        ({"env": [{"name": "KEY_PASS", "value": SECRET}]}, {"env": [{"name": "KEY_PASS", "value": "***"}]}),
        ({"headers": [["Authorization", SECRET]]}, {"headers": [["Authorization", "***"]]}),
        ({f"https://me:{SECRET}@host": 1}, {"https://me:***@host": 1}),
        ({"k": {f"--token={SECRET}": 1}}, {"k": {"--token=***": 1}}),
        ({"x": ("--password", SECRET)}, {"x": ["--password", "***"]}),
        ({"name": "lr", "value": "a1b2c3d4"}, {"name": "lr", "value": "a1b2c3d4"}),
        ({"columns": ["password", "username"]}, {"columns": ["password", "username"]}),
        ({"password_file": "/run/x", "secret_name": "db"}, {"password_file": "/run/x", "secret_name": "db"}),
    ],
)  # fmt: skip
def test_entries_of_a_configuration(configured: Any, shown: Any) -> None:
    assert entries(configured) == shown


@given(st.text(alphabet="abcXYZ019-_.,;:/+=@ '\"\\<>{}[]\n", min_size=1))
def test_a_password_is_hidden_in_json(value: str) -> None:
    """Whatever it has: quotes, backslashes, line breaks."""
    assert text(json.dumps({"password": f"{SECRET}{value}{SECRET}"})).count(SECRET) == 0


@given(st.text(alphabet="token password:=,'\"\\<>%3D[]()| \n-"))
def test_redaction_is_idempotent(value: str) -> None:
    assert text(text(value)) == text(value)


def test_names_that_describe_a_secret() -> None:
    assert is_secret("token", "!!!abc")
    assert is_secret("password", "!")
    assert not is_secret("DB_PASSWORD_FILE", "/run/secrets/db")
    assert is_secret("DB_PASSWORD", "/run/secrets/db")
    assert is_secret("ssh_key", "abcDEF123")
