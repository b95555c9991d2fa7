"""Secrets in a command line are hidden, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.destination_kinds import BUILT_IN
from runvitals.monitoring.environment.redaction import (
    DESTINATION_KINDS,
    command,
    entries,
    is_secret,
    text,
    url,
)
from runvitals.server.access.actions import Action

SECRET = "hunter2hunter2"


def test_the_names_of_permissions_are_no_secrets() -> None:
    names = ", ".join(action.value for action in Action)
    assert text(f"unknown permission 'x'; expected one of {names}") == (
        f"unknown permission 'x'; expected one of {names}"
    )
    assert text("secret:manage-9 secret: manage") == "secret:*** secret: ***"


@pytest.mark.parametrize(
    "argument",
    [
        "--api-key=",
        "--api_key=",
        "--apikey=",
        "--token=",
        "--hf_token=",
        "--hfToken=",
        "--HFToken=",
        "--secret=",
        "--client-secret=",
        "--password=",
        "--db-password=",
        "--passwd=",
        "--credentials=",
        "-Dhttp.proxyPassword=",
        "HF_TOKEN=",
        "WANDB_API_KEY=",
        "AWS_SECRET_ACCESS_KEY=",
        "AWS_ACCESS_KEY_ID=",
        "AWS_SESSION_TOKEN=",
        "AZURE_STORAGE_KEY=",
        "OPENAI_API_KEY=",
        "GITHUB_PAT=",
        "DB_PASS=",
        "PGPASSWORD=",
        "SENTRY_DSN=",
        "+env.NGC_API_KEY=",
        "trainer.logger.api_key=",
        "logger@wandb.secret=",
        "KAGGLE_KEY=",
    ],
)
def test_a_value_is_hidden_because_of_its_name(argument: str) -> None:
    assert command(["train.py", argument + SECRET, "--lr=0.1"]) == ["train.py", argument + "***", "--lr=0.1"]


@pytest.mark.parametrize(
    "option", ["--token", "--api-key", "--password", "-password", "--wandb_key", "--auth"]
)
def test_the_value_after_a_secret_option_is_hidden(option: str) -> None:
    assert command(["train.py", option, SECRET, "data"]) == ["train.py", option, "***", "data"]


def test_a_value_that_begins_with_a_dash_is_hidden_but_not_the_next_option() -> None:
    assert command(["--password", "-x-" + SECRET]) == ["--password", "***"]
    assert command(["--use-auth-token", "--lr", "0.1"]) == ["--use-auth-token", "--lr", "0.1"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tokenizer", "bpe"],
        ["--tokenizer_path=/data/tok.model"],
        ["--max-tokens", "2048"],
        ["--num_tokens=1000000000"],
        ["--key-size=64"],
        ["model.key_dim=128"],
        ["--pad-token=0"],
        ["--pad_token", "0"],
        ["--use_token=True"],
        ["--use_token=false"],
        ["--monkey=banana"],
        ["--keyboard", "us"],
        ["--passes=3"],
        ["--num-pass", "3"],
        ["PWD=/home/me"],
        ["--author", "me"],
        ["--lr", "0.1", "--optimizer=adam", "-m", "torch.distributed.run"],
        ["http://localhost:8080/v1", "ssh://git@host/repo.git", "git@host:me/it.git", "s3://bucket/key"],
        ["hf_to_megatron_converter.py", "sk-learn-comparison-of-models.py"],
        ["5d41402abc4b2a76b9719d911017c5925d414029"],
        [""],
    ],
)
def test_other_arguments_are_left(arguments: list[str]) -> None:
    assert command(arguments) == arguments


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("https://me:pw@host/a", "https://me:***@host/a"),
        ("https://ghp_abc@github.com/me/it.git", "https://***@github.com/me/it.git"),
        ("redis://:pw@cache:6379/0", "redis://:***@cache:6379/0"),
        ("postgresql+psycopg://me:p@w@db/runs", "postgresql+psycopg://me:***@db/runs"),
        ("mongodb+srv://me:pw@c0.example.net/?w=majority", "mongodb+srv://me:***@c0.example.net/?w=majority"),
        ("a=https://u:p@h,b=https://u:p@h/x", "a=https://u:***@h,b=https://u:***@h/x"),
        ("ssh://git@host/it.git", "ssh://git@host/it.git"),
        ("https://host/@scope/package", "https://host/@scope/package"),
        ("https://host/search?q=me@here", "https://host/search?q=me@here"),
        ("no url: // here @ all", "no url: // here @ all"),
    ],
)
def test_passwords_in_urls_are_hidden(dirty: str, clean: str) -> None:
    assert url(dirty) == clean


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("export HF_TOKEN=abcdefg; python t.py", "export HF_TOKEN=***; python t.py"),
        ("env PASSWORD='a b' python t.py", "env PASSWORD='***' python t.py"),
        ('env PASSWORD="a b" python t.py', 'env PASSWORD="***" python t.py'),
        ("python t.py --token abcdefg --lr 0.1", "python t.py --token *** --lr 0.1"),
        ("wandb.login(key='abcdefg', host=h)", "wandb.login(key='***', host=h)"),
        ("wandb.login(key = 'abcdefg')", "wandb.login(key = '***')"),
        ('{"api_key": "abcdefg", "lr": 1}', '{"api_key": "***", "lr": 1}'),
        ('{"api_key":"abcdefg","lr":1}', '{"api_key":"***","lr":1}'),
        ("Authorization: Bearer abc def", "Authorization: ***"),
        ("curl -H 'Authorization: Basic abc=' host", "curl -H 'Authorization: ***' host"),
        ("Cookie: session=abc; theme=dark", "Cookie: ***"),
        ("X-Api-Key: abcdefg", "X-Api-Key: ***"),
        ("https://host/x?api_key=abcdefg&lr=1", "https://host/x?api_key=***&lr=1"),
        (
            "https://b.s3.amazonaws.com/k?X-Amz-Credential=AK%2F2026&X-Amz-Signature=abcdefg&x=1",
            "https://b.s3.amazonaws.com/k?X-Amz-Credential=***&X-Amz-Signature=***&x=1",
        ),
        ("secret: unterminated 'quote", "secret: *** 'quote"),
        ("env password='unterminated", "env password='***"),
    ],
)
def test_text_within_one_argument(dirty: str, clean: str) -> None:
    assert text(dirty) == clean
    assert command(["bash", "-c", dirty]) == ["bash", "-c", clean]


def test_an_argument_that_is_an_assignment_is_hidden_completely() -> None:
    """Its value may contain spaces and quotes. If it is a whole shell command, too much is hidden, which is
    the smaller loss.
    """
    assert command(["-c", "PASSWORD='a b' python t.py"]) == ["-c", "PASSWORD=***"]


@pytest.mark.parametrize(
    "token",
    [
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0123456789_abcdefGHI",
        "glpat-ABCdef123456789012345",
        "hf_QwErTyUiOpAsDfGhJkLzXcVbNm123456",
        "sk-proj-AbCdEf0123456789AbCdEf0123456789",
        "xoxb-0123456789-AbCdEfGhIjKlMnOp",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyD0123456789abcdefghijklmnopqrstuv",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123456",
        "nvapi-AbCdEf0123456789AbCdEf",
    ],
)
def test_well_known_tokens_are_hidden_anywhere(token: str) -> None:
    assert command([token]) == ["***"]
    assert command([f"https://host/{token}/x"]) == ["https://host/***/x"]
    assert command(["-c", f"login('{token}')"]) == ["-c", "login('***')"]


@given(st.lists(st.text()))
def test_the_number_of_arguments_is_unchanged(arguments: list[str]) -> None:
    assert len(command(arguments)) == len(arguments)


@given(st.text(alphabet="abcXYZ019-_.,;:/+=@ '\"", min_size=1))
def test_the_value_of_a_password_option_is_always_hidden(value: str) -> None:
    assert command([f"--password={value}"]) == ["--password=***"]


@given(st.text())
def test_redaction_is_idempotent(value: str) -> None:
    assert text(text(value)) == text(value)


def test_names_are_judged_by_their_words() -> None:
    assert is_secret("MyServiceToken", SECRET)
    assert not is_secret("detokenize", SECRET)
    assert not is_secret("", SECRET)


@pytest.mark.parametrize(
    ("configured", "shown"),
    [
        (["mysql", "-phunter2", "db"], ["mysql", "-p***", "db"]),
        (["curl", "-u", "me:hunter2", "host"], ["curl", "-u", "me:***", "host"]),
        (["train.py", "--api-key", "hunter2"], ["train.py", "--api-key", "***"]),
        (["mysql", "-P", 3306, "--password", 12345678], ["mysql", "-P", 3306, "--password", "***"]),
        (["-1", "token", {"lr": 0.1}, None], ["-1", "token", {"lr": 0.1}, None]),
    ],
)
def test_command_lines_in_a_configuration(configured: list[object], shown: list[object]) -> None:
    assert entries({"backup": configured}) == {"backup": shown}


@pytest.mark.parametrize(
    ("destination", "shown"),
    [
        ("prometheus:k3y@host", "prometheus:***@host"),
        ("prometheus:me:k3y@host:9090", "prometheus:***@host:9090"),
        ("otel:pa/ss@collector:4317", "otel:***@collector:4317"),
        ("wandb:a@b@host", "wandb:***@host"),
        ("cloudwatch:k3y@eu/NS?include=a@b", "cloudwatch:***@eu/NS?include=a@b"),
        ("mlflow:me:k3y@host/x", "mlflow:***@host/x"),
        ("files:k3y@host/out", "files:***@host/out"),
        ("files:/data/me@work/out", "files:/data/me@work/out"),
        ("tensorboard:runs/me@work", "tensorboard:runs/me@work"),
        ("mlflow:sqlite:////data/me@work.db", "mlflow:sqlite:////data/me@work.db"),
        ("mail:me@example.org", "mail:me@example.org"),
    ],
)
def test_users_of_destinations(destination: str, shown: str) -> None:
    """Passwords of any length, in a command line, a variable, a list, a message."""
    assert command(["runvitals", "sync", "--to", destination])[-1] == shown
    assert text(f"RUNVITALS_DESTINATIONS=files:/x,{destination} python x.py") == (
        f"RUNVITALS_DESTINATIONS=files:/x,{shown} python x.py"
    )
    assert text(f"['{destination}'] is invalid") == f"['{shown}'] is invalid"


def test_all_built_in_destinations_are_known() -> None:
    assert DESTINATION_KINDS | {"http", "https"} == BUILT_IN


def test_values_of_secret_variables_in_a_command_line() -> None:
    environ = {"TOKEN": "zebra-7", "SHORT_TOKEN": "on", "HOME": "/home/anna"}
    words = ["train.py", "zebra-7", "--with", "x:zebra-7", "--on", "/home/anna"]
    assert command(words, environ) == ["train.py", "***", "--with", "x:***", "--on", "/home/anna"]
