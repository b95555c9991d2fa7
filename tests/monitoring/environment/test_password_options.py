"""Passwords in options without a telling name are hidden; the same options of other programs are left."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.monitoring.environment.password_options import PasswordOptions
from runvitals.monitoring.environment.redaction import command, text

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("mysql -uroot -phunter2 db", "mysql -uroot -p*** db"),
        ("mysqldump -h db -phunter2 --all-databases", "mysqldump -h db -p*** --all-databases"),
        ("/usr/bin/mariadb -phunter2", "/usr/bin/mariadb -p***"),
        ("docker exec db mysql -phunter2", "docker exec db mysql -p***"),
        ("docker login -u me -p hunter2 registry", "docker login -u me -p *** registry"),
        ("docker login -phunter2", "docker login -p***"),
        ("docker login -p=hunter2", "docker login -p=***"),
        ("docker login --password hunter2", "docker login --password ***"),
        ("helm registry login -u me -p hunter2 host", "helm registry login -u me -p *** host"),
        ("az login -u me -p hunter2", "az login -u me -p ***"),
        ("curl -u user:hunter2 https://host", "curl -u user:*** https://host"),
        ("curl -sSu user:hunter2 https://host", "curl -sSu user:*** https://host"),
        ("curl -uuser:hunter2 https://host", "curl -uuser:*** https://host"),
        ("curl --user=user:hunter2 https://host", "curl --user=user:*** https://host"),
        ("curl -u a:hunter2 -U b:hunter2 host", "curl -u a:*** -U b:*** host"),
        ("sshpass -p hunter2 ssh -p 22 host", "sshpass -p *** ssh -p 22 host"),
        ("sshpass -phunter2 scp -P 22 a host:", "sshpass -p*** scp -P 22 a host:"),
        ("sshpass -p hunter2 mysql -phunter2", "sshpass -p *** mysql -p***"),
        ("redis-cli -h cache -a hunter2 ping", "redis-cli -h cache -a *** ping"),
        ("redis-cli --pass hunter2", "redis-cli --pass ***"),
        ("mongosh -u me -p hunter2 host/db", "mongosh -u me -p *** host/db"),
        ("ldapsearch -x -D cn=me -w hunter2", "ldapsearch -x -D cn=me -w ***"),
        ("sqlcmd -S db -U me -P hunter2", "sqlcmd -S db -U me -P ***"),
        ("smbclient -U me%hunter2 //host/share", "smbclient -U me%*** //host/share"),
        ("PGPASSWORD=hunter2 psql -h db", "PGPASSWORD=*** psql -h db"),
        ("SSHPASS=hunter2 sshpass -e ssh -p 22 host", "SSHPASS=*** sshpass -e ssh -p 22 host"),
        ("MYSQL_PWD=hunter2 mysql db", "MYSQL_PWD=*** mysql db"),
        ("REDISCLI_AUTH=hunter2 redis-cli", "REDISCLI_AUTH=*** redis-cli"),
        ("psql postgresql://me:hunter2@db/runs", "psql postgresql://me:***@db/runs"),
        ("openssl rsa -passin pass:hunter2", "openssl rsa -passin pass:***"),
    ],
)
def test_a_password_is_hidden(line: str, hidden: str) -> None:
    assert text(line) == hidden
    assert command(line.split()) == hidden.split()
    assert command(["bash", "-c", f"cd /data && {line}; ls"])[2] == f"cd /data && {hidden}; ls"


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("mysql -p'hunter2 x' db", "mysql -p'***' db"),
        ('curl -u "me:hunter2 x" host', 'curl -u "me:***" host'),
        ("curl --user='me:hunter2 x' host", "curl --user='me:***' host"),
        ("sshpass -p 'hunter2 x' ssh host", "sshpass -p '***' ssh host"),
        ("os.system('mysql -phunter2 db')", "os.system('mysql -p*** db')"),
        ('["sshpass", "-p", "hunter2 x", "ssh"]', '["sshpass", "-p", "***", "ssh"]'),
        ("sshpass -p 'hunter2 is not closed", "sshpass -p '***"),
        ("mysql -phunter2; ssh -p22 host", "mysql -p***; ssh -p22 host"),
        ("(curl -u me:hunter2)", "(curl -u me:***)"),
        ("(cd /data && curl -u me:hunter2) && ls", "(cd /data && curl -u me:***) && ls"),
        ("rows=$(mysql -phunter2)", "rows=$(mysql -p***)"),
        ("((mysql -phunter2))", "((mysql -p***))"),
        ("mysql -phunter2)", "mysql -p***"),
    ],
)
def test_a_quoted_password_is_hidden_completely(line: str, hidden: str) -> None:
    assert text(line) == hidden


@pytest.mark.parametrize(
    "line",
    [
        "train.py -p 8080",
        "docker run -p 80:80 image",
        "docker run -p 3306:3306 mysql:8",
        "docker run --rm image && ssh -p 22 login",
        "ssh login -p 2222",
        "python -psecond",
        "python -u train.py name:value",
        "mysql -p db",
        "mysql -P 3306 db",
        "mkdir -p mysql",
        "redis-cli -h cache -p 6379",
        "psql -p 5432 -U me -w db",
        "mongosh --port 27017 -p --authenticationDatabase admin",
        "sshpass -f file ssh -p 22 host",
        "sshpass -e ssh -p 22 host",
        "mysql db | ssh -p22 host",
        "curl -o me:file https://host:8080/a",
        "curl -sSo full:name https://host",
        "/etc/passwd: cannot be executed",
        "/etc/passwd: Permission denied",
        "/etc/passwd: not executable",
        "/etc/passwd: is not a directory",
        "bash: /run/secrets/api_token: No such file or directory",
        "sshpass: command not found",
    ],
)
def test_other_values_are_left(line: str) -> None:
    assert text(line) == line
    assert command(line.split()) == line.split()


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("/prod/db/password: hunter2", "/prod/db/password: ***"),
        ("password: cannot", "password: ***"),
        ("/etc/app/password=hunter2", "/etc/app/password=***"),
    ],
)
def test_a_value_that_looks_like_a_path_is_hidden(line: str, hidden: str) -> None:
    assert text(line) == hidden


@given(st.text(alphabet="abcXYZ019-_.,;:/+=@%&|([{'\" ", min_size=1), st.sampled_from(["-p", "-p ", "-p'"]))
def test_redaction_is_idempotent(value: str, option: str) -> None:
    line = f"sshpass {option}{value}"
    assert text(text(line)) == text(line)


@given(st.lists(st.sampled_from(["mysql", "-p", f"-p{SECRET}", "docker", "login", "--", "", "-u", "a:b"])))
def test_every_word_has_a_result(words: list[str]) -> None:
    options = PasswordOptions()
    assert all(-1 <= options.read(word) < max(len(word), 1) for word in words)
    assert len(command(words)) == len(words)
    assert SECRET not in shlex.join(command(["mysql", *[word for word in words if word[:2] == "-p"]]))


def test_a_password_quoted_after_the_user_is_hidden() -> None:
    assert "hunter2" not in text("curl -u me:'hunter2 x' host")
    assert "hunter2" not in text('curl --user me:"hunter2 x" host')
