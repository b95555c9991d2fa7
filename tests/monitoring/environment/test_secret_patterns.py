"""Secrets are recognized by their form in any text, and other text is left.

Each is put together here from two parts, so that scanners of this repository find none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from runvitals.monitoring.environment.redaction import command, entries, text
from runvitals.monitoring.environment.secret_patterns import hide

HEX = "0123456789abcdef" * 4
MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9" * 4
TOKENS = [
    "rvt-" + "PcAoeHlDptRHHSkOGKcNEYkIpRJovyEN4u4BItOm",
    "rvt_" + MIXED[:43],
    "rvt_" + "abcdefgh",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + MIXED[:36],
    "ghs_" + "abcdefghijklmnopqrstuvwxyzabcdefghij",
    "github_pat_" + "11ABCDEFG0123456789_abcdefGHI",
    "glpat-" + "abcdef1234567890abcd",
    "glpat-" + "kRtWqYpLmZxVbNcHJdGF",  # random, and without a digit by chance
    "sk_" + "live_" + "kRtWqYpLmZxVbNcHJdGFsTaQ",
    "sb_secret_" + "kRtWqYpLmZxVbNcHJdGFsTaQwErTyUi",
    "LTAI" + "kRtWqYpLmZxVbNcHJdGF",
    "hf_" + "abcdefghijklmnopqrstuvwxyzabcdefgh",
    "sk-" + "ant-api03-" + MIXED[:40],
    "sk-" + "proj-" + MIXED[:40],
    "sk-" + MIXED[:48],
    "gsk_" + MIXED[:52],
    "wandb_v1_" + MIXED[:40],
    "npm_" + MIXED[:36],
    "pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:60],
    "dckr_pat_" + MIXED[:27],
    "sk_" + "live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "rk_" + "test_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "SG." + MIXED[:22] + "." + MIXED[:43],
    "xoxb-" + "123456789012-1234567890123-abcdefghijklmnop",
    "xapp-" + "1-A0123-456-abcdef",
    "AIza" + "SyD0123456789abcdefghijklmnopqrstuv",
    "ya29." + MIXED[:60],
    "GOCSPX-" + MIXED[:28],
    "dop_v1_" + HEX,
    "dapi" + HEX[:32],
    "hvs." + MIXED[:90],
    "glsa_" + MIXED[:32] + "_0123abcd",
    "SK" + HEX[:32],
    "key-" + HEX[:32],
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "SG." + MIXED[:22] + "." + MIXED[:43],
    "LTAI" + MIXED[:20],
    "p8e-" + MIXED[:32],
    "pat" + MIXED[:14] + "." + HEX,
    "dt0c01." + "ST2EY72KQINMH574WMNVI7YN." + "G3DFPBEJYMODIDAEX454" * 3,
    "EZAK" + MIXED[:54],
    "fo1_" + MIXED[:43],
    "HRKU-" + "AA" + MIXED[:58],
    "pat-na1-" + "0123abcd-0123-0123-0123-0123456789ab",
    "sdk-" + "0123abcd-0123-4123-8123-0123456789ab",
    "nfp_" + MIXED[:36],
    "NRII-" + MIXED[:32],
    "secret_" + MIXED[:43],
    "sha256~" + MIXED[:43],
    "pscale_pw_" + MIXED[:43],
    "pnu_" + MIXED[:36],
    "shippo_live_" + HEX[:40],
    "xoxc-" + "123456789012-1234567890123-" + HEX,
    "sqp_" + HEX[:40],
    "sgp_" + HEX[:16] + "_" + HEX[:40],
    "sb_secret_" + MIXED[:31],
    "tfp_" + MIXED[:59],
    "s." + MIXED[:24],
    "pa-" + MIXED[:43],
    "pa-" + MIXED[:42] + "_",
    "ak-" + MIXED[:22],
    "local-" + HEX[:40],
    "AQVN" + MIXED[:38],
    "sk_" + HEX[:48],
    "pcsk_" + MIXED[:64],
    "rpa_" + MIXED[:42],
    "CFPAT-" + MIXED[:43],
    "live_" + HEX[:35],
    "MTk4" + "NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ." + MIXED[:27],
    "A3T" + "XIOSFODNN7EXAMPLE",
    "bedrock-api-key-" + MIXED[:80],
    "glc_" + "eyJvIjoiMTIzNDU2Iiwib" + "+/" + MIXED[:40],
    "sk_" + "prod_" + "4eC39HqLyj",
    "sm_pat_" + MIXED[:16],
    "FLWSECK_TEST-" + HEX[:12],
    "EAAA" + MIXED[:60],
    "EAAC" + MIXED[:104].lower(),
    "A" * 22 + MIXED[:80],
    "pat." + MIXED[:22] + "." + MIXED[:24] + "." + MIXED[:20],
    "t1." + MIXED[:9] + "." + MIXED[:86],
    MIXED[:14].lower() + ".atlasv1." + MIXED[:67].lower(),
    "ZXlK" + "aGJHY2lPaUpJVXpJMU5pSjk" + MIXED[:60],
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF123456",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "login('{}')",
        "x={};",
        "https://host/a/{}/b",
        "say {}, please",
        "q%3D{}",
        "\\n{}",
        "“{}”",
        "[{}]",
    ],
)
def test_tokens_of_services(token: str, around: str) -> None:
    dirty = around.format(token)
    assert token not in text(dirty)
    assert token not in " ".join(command(["train.py", dirty]))
    assert token not in str(entries({"notes": [dirty]}))


@pytest.mark.parametrize(
    "key",
    [
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLE123",  # of Amazon
        "wJalrXUtnFEMI/KxMDENG/bPxRfiCY" + "EXaMPLEkey",  # without a digit
        "/JalrXUtnFEMI+K7MDENG+bPxRfiCY" + "EXAMPLE123",
        MIXED[:86] + "==",  # of an Azure storage account
        "abc8" + "Q~" + MIXED[:31] + ".~-",  # of an Azure client
    ],
)
@pytest.mark.parametrize("around", ["{}", "login('{}')", "x={};", "say {}, please", "[{}]", "a\n{}\nb"])
def test_long_keys(key: str, around: str) -> None:
    assert hide(around.format(key)) == around.format("***")


@pytest.mark.parametrize("kind", ["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "", "PGP "])
def test_private_keys(kind: str) -> None:
    block = " BLOCK" if kind == "PGP " else ""
    begin, end = f"-----BEGIN {kind}PRIVATE KEY{block}-----", f"-----END {kind}PRIVATE KEY{block}-----"
    assert hide(f"a\n{begin}\nMIIEow\nabc\n{end}\nb") == "a\n***\nb"
    assert hide(f"a {begin}\\nMIIEow\\n") == "a ***"
    assert hide(f"{begin}x{end} and {begin}y{end}") == "*** and ***"
    public = "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----"
    assert hide(public) == public


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("https://hooks.slack.com/services/T000/B000/abc", "https://hooks.slack.com/***"),
        ("hooks.slack.com/workflows/T0/A0/1/abc now", "hooks.slack.com/*** now"),
        ("https://discord.com/api/webhooks/123/a-b_c", "https://discord.com/api/webhooks/***"),
        ("https://canary.discordapp.com/api/webhooks/1/x", "https://canary.discordapp.com/api/webhooks/***"),
        ("https://acme.webhook.office.com/webhookb2/a@b/IncomingWebhook/c/d",
         "https://acme.webhook.office.com/***"),
        ("https://outlook.office.com/webhook/a-b/c", "https://outlook.office.com/webhook/***"),
        ("https://api.telegram.org/bot123:AAxyz/sendMessage", "https://api.telegram.org/bot***"),
        ("https://chat.example.org/hooks/abc", "https://chat.example.org/hooks/***"),
        ("HTTPS://HOOKS.SLACK.COM/services/T/B/x", "HTTPS://HOOKS.SLACK.COM/***"),
    ],
)  # fmt: skip
def test_web_hook_addresses(dirty: str, clean: str) -> None:
    assert text(dirty) == clean


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("bearer abcdefgh", "bearer ***"),
        ("got: Bearer abc1.def", "got: Bearer ***"),
        ("proxy basic bWU6cHc=", "proxy basic ***"),
        ("postgresql://me:pa/ss@db:5432/runs", "postgresql://me:***@db:5432/runs"),
        ("redis://:a/b/c@cache", "redis://:***@cache"),
        ("https://me:a?b#c@host/x", "https://me:***@host/x"),
        ("http://me:12/34@host", "http://me:***@host"),
        ("wandb:0123456789abcdef0123456789abcdef01234567@team/digits", "wandb:***@team/digits"),
        ("wandb:abcdef@team", "wandb:***@team"),
        ("https://host/write?tenant=a&token=ab,c%2F+d", "https://host/write?tenant=a&token=***"),
        ("PASSWORD=a,b;c python t.py", "PASSWORD=*** python t.py"),
        ("login(token=abcdefg, host=h)", "login(token=***, host=h)"),
        ('{\\"api_key\\": \\"abcdefg\\", \\"lr\\": 1}', '{\\"api_key\\": \\"***\\", \\"lr\\": 1}'),
        ("curl -u me:pw1 https://host", "curl -u me:*** https://host"),
        (f"wandb login {HEX[:40]} now", "wandb login *** now"),
        (f"Authorisation token {HEX[:40]}", "Authorisation token ***"),
        ("bot 123456789:" + "AA" + MIXED[:33], "bot 123456789:***"),
        ("SLACK_WEBHOOK=https://x.example/y", "SLACK_WEBHOOK=***"),
        ("secrets=['a b', 'c'] lr=1", "secrets=*** lr=1"),
        ("auth=('me', 'hunter2')", "auth=***"),
        ("--passcode abc123 --pw=abc123", "--passcode *** --pw=***"),
    ],
)
def test_other_positions(dirty: str, clean: str) -> None:
    assert text(dirty) == clean


def test_option_and_value_in_separate_arguments() -> None:
    assert command(["curl", "-u", "me:pw", "host"]) == ["curl", "-u", "me:***", "host"]
    assert command(["curl", "--user=me:pw", "-ume:pw"]) == ["curl", "--user=me:***", "-ume:***"]
    assert command(["run", "Bearer", "abc1"]) == ["run", "Bearer", "***"]
    assert command(["wandb", "login", HEX[:40]]) == ["wandb", "login", "***"]
    assert command(["huggingface-cli", "login", "--token", "abc"]) == [
        "huggingface-cli",
        "login",
        "--token",
        "***",
    ]


@pytest.mark.parametrize(
    "harmless",
    [
        "http://localhost:8080/v1/models",
        "https://host:8443/@scope/package",
        "docker.io/team/image:tag@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "npm:lodash-es@4.17",
        "git@github.com:me/it.git",
        "5d41402abc4b2a76b9719d911017c5925d414029",
        "basic training of the bearer of news",
        "/home/me/Projects/2024/Experiment7/Run12",
        "--pad_token=</s> --eos-token=<|end|>",
        "/Users/ADA/Documents/Experiments/LARGEOnes",
        "fw_someFunctionOfTheFramework",
        "GATTACAgattacaCATCATcatcat" * 3,
        "rvt-cluster-of-the-second-floor",
        "sk-learn-comparison-of-models-2024-v1.py",
        "hf_to_megatron_converter_2024.py",
        "key-value-store",
        "the token is missing; login failed for user 12",
        "python -u train.py --lr 0.1",
        "meta-llama/Llama-3.1-8B-Instruct@main",
        "2024-05-01T12:30:45Z",
        "--sort-key created",
        "--group_by_key=user",
        "--key val_loss",
        "monitor_key=val/loss",
        "best_key: val_acc",
        "key=val_acc_top1",
        "Unexpected key: transformer.h.0.attn.bias",
        "webhook=False, credentials=None, secrets=[]",
        "use_auth_token=True",
        "password_required=no",
        "time_to_first_token=12.5ms",
        "Basic Usage12 of this library",
        "running on login frontier-login-0001-abcdefgh",
        "ops_per_second_forward_pass_rank0",
        "SG.linear.layer1.weight.norm2",
        "ddp_bucket_view_of_gradients_in_layer_12_of_rank_3",
        "test_loss_of_epoch_12 and live_objects_count_12",
        "pat.train.shards-00012.parquet",
        "author/key_loss=3.5",
    ],
)
def test_other_text_is_left(harmless: str) -> None:
    assert text(harmless) == harmless


def test_entries_of_a_configuration() -> None:
    kept = {
        "lr": 0.1, "pad_token": "</s>", "label_key": "label", "sort_key": "loss", "max_tokens": 10,
        "tokenizer": "bpe", "use_auth_token": True, "wandb": {"project": "digits"}, "keys": ["a", "b"],
    }  # fmt: skip
    assert entries(kept) == kept
    secret = {
        "api_key": "a", "hf": {"token": "abc1defg"}, "password": "x", "WANDB_API_KEY": "abc",
        "aws_secret": "s",
        "auth_token": "abc", "urls": ["https://me:pw@host"],
    }  # fmt: skip
    assert entries(secret) == {
        "api_key": "***", "hf": {"token": "***"}, "password": "***", "WANDB_API_KEY": "***",
        "aws_secret": "***", "auth_token": "***", "urls": ["https://me:***@host"],
    }  # fmt: skip


def test_entries_within_a_secret_entry_are_hidden() -> None:
    kept = entries({"secrets": {"db": "abcdefg", "ports": [5432, 1], "on": True, "c": {"d": None, "e": "x"}}})
    assert kept == {"secrets": {"db": "***", "ports": ["***", 1], "on": True, "c": {"d": None, "e": "***"}}}


def test_entry_names_that_are_tokens_are_hidden() -> None:
    assert entries({"rvt_abcdefgh": 1, "rvt_hijklmno": 2, 3: 4}) == {"***": 1, "****": 2, 3: 4}


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("https://host/x?access_token=abc1defg&n=1", "https://host/x?access_token=***&n=1"),
        ("https://host/x#access_token=abc1defg", "https://host/x#access_token=***"),
        ("https://host/c?sv=1&sig=abc1defg%3D&se=2", "https://host/c?sv=1&sig=***&se=2"),
        ("WANDB_API_KEY=abcdefg python t.py", "WANDB_API_KEY=*** python t.py"),
        ("host=h user=me password=abcdefg", "host=h user=me password=***"),
        ("X-Api-Key: abcdefg", "X-Api-Key: ***"),
        ("curl -u me:pw https://host", "curl -u me:*** https://host"),
        ("sort by key: loss; key=val", "sort by key: loss; key=val"),
        ("auth: disabled", "auth: disabled"),
    ],
)
def test_texts_of_a_configuration(dirty: str, clean: str) -> None:
    assert entries({"note": dirty, "a": [{"b": dirty}]}) == {"note": clean, "a": [{"b": clean}]}


@pytest.mark.parametrize(
    "part",
    [
        " ",
        "a:",
        "='",
        "hf_",
        "sk-ant-",
        "@",
        "a:b@",
        "://",
        "-----BEGIN ",
        "A1b",
        "bearer ",
        "token=a,",
        "/hooks/",
        "mysql -p'",
        'login -"',
        "/passwd: ",
        "('token', '",
        "<token>",
        "token%3D",
        "password:\n ",
        "password: |\n  a\n",
        "name: key value=",
        "PASSWORD='a'\\''",
        "login --a ",
        "://a:b'",
        ".atlasv1.",
    ],
)
def test_hostile_text_takes_linear_time(part: str) -> None:
    """Text of eight times the length takes about eight times as many steps, not 64 times."""

    def steps(length: int) -> int:
        dirty, count = part * (length // len(part)), 0

        def trace(frame: object, event: str, argument: object) -> Callable[..., Any]:
            nonlocal count
            count += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            text(dirty)
        finally:
            sys.settrace(before)
        return count

    assert steps(8_000) < 12 * steps(1_000)
