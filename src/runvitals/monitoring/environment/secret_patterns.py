"""Secrets that are recognized by their form, in any text.

Tokens of well-known services, private keys, web hook addresses. The forms are those that secret scanners use.
"""

from __future__ import annotations

HIDDEN = "***"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdefABCDEF")
_UPPER_AND_DIGITS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ALNUM = _UPPER_AND_DIGITS | frozenset("abcdefghijklmnopqrstuvwxyz")
_NAME = _ALNUM | frozenset("_-.")
_BASE64 = _ALNUM | frozenset("+/")
# An escape before a token, as in URLs and JSON: `%3Dghp_…`, `\nghp_…`.
_ESCAPED = ("\\n", "\\r", "\\t")
_AZURE = _NAME | {"~"}
_AZURE_MARK = "Q~"
_TERRAFORM_MARK = ".atlasv1."
_TERRAFORM_LENGTHS = (14, 60)  # before the mark, and the shortest after it
_AWS_KEY_LENGTH = 40
_LONG_KEY_LENGTH = 64


def _any(rest: str) -> bool:
    return len(rest) >= 8


def _digit_or_mixed_case(rest: str) -> bool:
    """Return whether a token looks random. Of random tokens of 20 characters, one in thirty has no digit."""
    return any(map(str.isdigit, rest)) or _is_mixed_case(rest)


def _is_mixed_case(rest: str) -> bool:
    """About as many capital as small letters, as in random text. Names in programs have fewer capitals."""
    upper, lower = sum(map(str.isupper, rest)), sum(map(str.islower, rest))
    return upper + lower >= 16 and min(upper, lower) * 10 >= 3 * (upper + lower)


def _letters_and_digits(rest: str) -> bool:
    """Return a run of letters and digits: a long one, or a shorter one with a digit."""
    return len(rest) >= 30 or _random_name(rest)


def _random_name(rest: str) -> bool:
    return len(rest) >= 16 and _digit_or_mixed_case(rest)


def _short_random_name(rest: str) -> bool:
    return len(rest) >= 8 and _digit_or_mixed_case(rest)


def _long_random_name(rest: str) -> bool:
    """Long enough for prefixes that also begin names in programs: `ddp_`, `key_`."""
    return len(rest) >= 24 and _digit_or_mixed_case(rest)


def _is_mixed(rest: str) -> bool:
    cases = any(map(str.isupper, rest)) and any(map(str.islower, rest))
    return cases and len(rest) >= 14 and _digit_or_mixed_case(rest)


def _is_mixed_or_long_hex(rest: str) -> bool:
    return len(rest) >= 32 and any(map(str.isdigit, rest)) and any(map(str.isalpha, rest))


def _hex_32(rest: str) -> bool:
    return len(rest) == 32 and _HEX.issuperset(rest)


def _telegram(rest: str) -> bool:
    return len(rest) == 33 and any(map(str.isdigit, rest)) and any(map(str.islower, rest))


def _discord(rest: str) -> bool:
    """Return the id of a bot, a time and a checksum, each in base64."""
    parts = rest.split(".")
    return len(parts) == 3 and 20 <= len(parts[0]) <= 26 and len(parts[1]) == 6 and len(parts[2]) >= 27


def _airtable(rest: str) -> bool:
    name, dot, secret = rest.partition(".")
    return bool(dot) and len(name) == 14 and len(secret) == 64 and _HEX.issuperset(secret)


def _uuid(rest: str) -> bool:
    return len(rest) == 36 and [at for at, sign in enumerate(rest) if sign == "-"] == [8, 13, 18, 23]


def _lob(rest: str) -> bool:
    return (len(rest) == 35 and _HEX.issuperset(rest)) or (len(rest) == 40 and _is_mixed(rest))


def _hex_40(rest: str) -> bool:
    return len(rest) == 40 and _HEX.issuperset(rest)


def _letters_of(length: int) -> Callable[[str], bool]:
    """Return the rule for short prefixes: this exact length, with capitals, small letters and digits."""
    return lambda rest: len(rest) == length and _is_mixed(rest)


def _aws_id(rest: str) -> bool:
    return len(rest) == 16


def _harness(rest: str) -> bool:
    return [len(part) for part in rest.split(".")] == [22, 24, 20]


def _yandex(rest: str) -> bool:
    return len(rest) >= 90 and "." in rest and _is_mixed(rest)


def _very_long(rest: str) -> bool:
    return len(rest) >= 80 and any(map(str.isdigit, rest))


# The prefix of a token, the characters that may follow, and the check of what follows.
_Form = tuple[str, frozenset[str], "Callable[[str], bool]"]


def _forms(prefixes: str, signs: frozenset[str], is_token: Callable[[str], bool]) -> tuple[_Form, ...]:
    return tuple((prefix, signs, is_token) for prefix in prefixes.split())


_FORMS: tuple[_Form, ...] = (
    *_forms("rvt-", _ALNUM, _letters_and_digits),  # the server's keys
    *_forms("rvt_", _NAME, _any),  # the tokens of servers without accounts
    # Amazon
    *_forms("AKIA ASIA ABIA ACCA", _UPPER_AND_DIGITS, _aws_id),
    *_forms("A3T", _UPPER_AND_DIGITS, lambda rest: len(rest) == 17),
    *_forms("ABSK bedrock-api-key-", _BASE64, _random_name),
    # GitHub, GitLab, Atlassian
    *_forms("ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, _letters_and_digits),
    *_forms("github_pat_", _ALNUM | {"_"}, _random_name),
    *_forms("glpat- glptt- gldt- glrt- glcbt- glft- glsoat- glimt- glagent-", _NAME, _random_name),
    *_forms("ATATT3 ATCTT3 ATBB", _NAME | {"="}, _random_name),
    # packages and images
    *_forms("npm_ rubygems_ CLOJARS_", _ALNUM, _letters_and_digits),
    *_forms("pypi-", _NAME, _is_mixed),
    *_forms("dckr_pat_ dckr_oat_", _NAME, _random_name),
    # models
    *_forms("hf_ api_org_ r8_ gsk_ csk- xai- pplx- tgp_v1_ fw_ fal_", _ALNUM, _letters_and_digits),
    *_forms("sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or- nvapi- wandb_v1_ lsv2_", _NAME, _random_name),
    *_forms("sk-", _ALNUM, _letters_and_digits),
    *_forms("sk-", _NAME, _is_mixed),
    # Google, Azure, DigitalOcean, Databricks, HashiCorp, Pulumi
    *_forms("AIza ya29. GOCSPX- 1//0", _NAME, _random_name),
    *_forms("dop_v1_ doo_v1_ dor_v1_", _ALNUM, _letters_and_digits),
    *_forms("dapi key- SK", _HEX, _hex_32),
    *_forms("hvs. hvb. hvr. pul- tskey- sntrys_ sntryu_ glsa_", _NAME, _random_name),
    *_forms("glc_", _NAME | _BASE64, _random_name),
    # chat
    *_forms("xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxe. xoxo- xapp-", _NAME, _short_random_name),
    # money and mail
    *_forms("sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ whsec_ rzp_live_ rzp_test_", _ALNUM,
            _short_random_name),
    *_forms("SG.", _NAME, _is_mixed),
    *_forms("xkeysib- shpat_ shpss_ shpca_ shppa_ sq0atp- sq0csp-", _NAME, _random_name),
    # the rest
    *_forms("PMAK- NRAK- sbp_ figd_ lin_api_ dp.pt. dp.st. phx_ ops_eyJ ntn_", _NAME, _random_name),
    *_forms("AGE-SECRET-KEY-1", _UPPER_AND_DIGITS, _random_name),
    *_forms("dt0c01. dnkey- FLWSECK- HRKU- pat-na1- pat-eu1- glffct- gloas- GR1348941", _NAME,
            _random_name),
    *_forms("FLWSECK_TEST-", _ALNUM, _short_random_name),
    *_forms("scauth_ authress_ fio-u- EAAA s-s4t2af-", _NAME | {"="}, _long_random_name),
    *_forms("EAAB EAAC EAAG EAAM", _ALNUM, _very_long),
    *_forms("AAAAAAAAAAAAAAAAAAAAAA", _ALNUM | {"%"}, _very_long),  # bearer tokens of Twitter
    *_forms("sat. pat.", _NAME, _harness),
    *_forms("t1.", _NAME | {"="}, _yandex),
    *_forms("access-sandbox- access-development- access-production- xoxc- xoxd- s-s4t2ud- tk-us- CFPAT-",
            _NAME | {"%"}, _random_name),
    *_forms("pscale_pw_ pscale_tkn_ pscale_oauth_ sb_secret_ duffel_live_ duffel_test_ tfp_ pcsk_ fo1_ AQVN",
            _NAME, _is_mixed),
    *_forms("sha256~ v1.0- fm1r_ fm2_ fm1a_", _NAME | _BASE64, _is_mixed_or_long_hex),
    *_forms("bkua_ nfp_ pnu_ rdme_ sqp_ squ_ sqa_ slk_ ddp_ rnd_ vcp_ vck_ phc_ rpa_ key_ sk_ secret_ pat_",
            _ALNUM, _long_random_name),
    *_forms("p8e- ico- NRII- EZAK EZTK cio", _ALNUM, _long_random_name),
    *_forms("sgp_", _ALNUM | {"_"}, _long_random_name),
    *_forms("sm_aat_ sm_pat_ sm_sat_ shippo_live_ shippo_test_ sk_org_live_ sk_org_test_ NRJS- endr+",
            _ALNUM, _letters_and_digits),
    *_forms("LTAI", _ALNUM, _random_name),
    *_forms("LTAI", _ALNUM, _letters_of(12)),
    *_forms("4b1d", _ALNUM, _letters_of(38)),
    *_forms("s.", _ALNUM, _letters_of(24)),
    *_forms("ak- as-", _ALNUM, _letters_of(22)),
    *_forms("pa-", _NAME, _letters_of(43)),
    *_forms("live_ test_", _NAME, _lob),
    *_forms("pubkey-", _HEX, _hex_32),
    *_forms("local-", _HEX, _hex_40),  # a key of a self-hosted W&B server
    *_forms("api- sdk- mob-", _NAME, _uuid),
    *_forms("pat", _NAME, _airtable),
    *_forms("oauth:", _ALNUM, _long_random_name),
    *_forms("API- A3-", _UPPER_AND_DIGITS | {"-"}, _long_random_name),
    *_forms("MT Mz Nj Nz OD OT", _NAME, _discord),
    *_forms("AA", _ALNUM | {"_", "-"}, _telegram),  # after the id of a bot
    *_forms("eyJ", _NAME, _is_mixed),  # a JSON web token
    *_forms("ZXlK", _BASE64, _very_long),  # one in base64, as in secrets of Kubernetes
)  # fmt: skip
_PREFIXES = tuple(dict.fromkeys(prefix for prefix, _, _ in _FORMS))

# Everyone who knows such an address can post there. What follows these words is secret.
_HOOKS = (
    "hooks.slack.com/", "hooks.slack-gov.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/",
    "webhook.office.com/", "outlook.office.com/webhook/", "outlook.office365.com/webhook/",
    "logic.azure.com/workflows/", "logic.azure.com:443/workflows/", "powerplatform.com/powerautomate/",
    "powerplatform.com:443/powerautomate/", "hooks.zapier.com/", "hook.integromat.com/", "hc-ping.com/",
    "api.telegram.org/bot", "maker.ifttt.com/", "open.feishu.cn/open-apis/bot/", "chat.googleapis.com/v1/",
    "open.larksuite.com/open-apis/bot/", "events.pagerduty.com/integration/",
)  # fmt: skip
_HOOK_SEGMENTS = ("/webhook/", "/webhooks/", "/webhookb2/", "/hooks/")
_ENDS = frozenset(" \t\r\n\"'<>`;)]}|\\,")
_KEY_BEGIN, _KEY_END, _DASHES = "-----BEGIN ", "-----END ", "-----"
_MAX_TITLE_LENGTH = 64


def hide(value: str) -> str:
    """Return the text with everything hidden that looks like a secret.

    >>> hide("login('ghp_16C7e42F292c6912E7710c838347Ae178B4a'); post('https://hooks.slack.com/services/T/B/x')")
    "login('***'); post('https://hooks.slack.com/***')"
    """
    if _KEY_BEGIN in value:
        value = _without_private_keys(value)
    value = _without_hooks(value)
    for prefix in _PREFIXES:
        if prefix in value:
            for form in _FORMS:
                if form[0] == prefix:
                    value = _without_form(value, form)
    if _AZURE_MARK in value:
        value = _without_azure_secrets(value)
    if _TERRAFORM_MARK in value:
        value = _without_terraform_tokens(value)
    return _without_long_keys(value)


def _without_private_keys(value: str) -> str:
    """Hide PEM blocks of private keys, complete or truncated."""
    at = value.find(_KEY_BEGIN)
    clean, copied = [], 0
    while at >= 0:
        title_end = value.find(_DASHES, at + len(_KEY_BEGIN), at + len(_KEY_BEGIN) + _MAX_TITLE_LENGTH)
        if title_end < 0 or "PRIVATE KEY" not in value[at:title_end]:
            at = value.find(_KEY_BEGIN, at + 1)
            continue
        end = value.find(_KEY_END, title_end)
        if end >= 0:
            last = value.find(_DASHES, end + len(_KEY_END))
            end = len(value) if last < 0 else last + len(_DASHES)
        else:
            end = len(value)
        clean += [value[copied:at], HIDDEN]
        copied = end
        at = value.find(_KEY_BEGIN, end)
    return "".join(clean) + value[copied:]


def _without_hooks(value: str) -> str:
    lower = value.lower()
    if len(lower) != len(value):  # some letters become two in lower case
        lower = value
    for hook in _HOOKS:
        if hook in lower:
            value, lower = _hide_after(value, lower, hook, everywhere=True)
    for segment in _HOOK_SEGMENTS:
        if segment in lower:
            value, lower = _hide_after(value, lower, segment, everywhere=False)
    return value


def _hide_after(value: str, lower: str, prefix: str, everywhere: bool) -> tuple[str, str]:
    """Hide everything after a prefix; only in URLs, unless `everywhere`.

    Returns the text, and the text in lower case.
    """
    clean, copied = [], 0
    at = lower.find(prefix)
    while at >= 0:
        begin = end = at + len(prefix)
        while end < len(value) and value[end] not in _ENDS:
            end += 1
        if end > begin and (everywhere or _is_in_url(value, at)):
            clean += [value[copied:begin], HIDDEN]
            copied = end
        at = lower.find(prefix, end)
    text = "".join(clean) + value[copied:]
    small = text.lower()
    return text, small if len(small) == len(text) else text


def _is_in_url(value: str, at: int) -> bool:
    """Return whether a position in a text is within a web URL."""
    begin = value.rfind("://", max(0, at - 512), at)
    return begin >= 0 and value[:begin].endswith(("http", "https")) and not _ENDS & set(value[begin:at])


def _without_form(value: str, form: _Form) -> str:
    """Hide every token of a form. Each character is read once."""
    prefix, signs, is_token = form
    clean, copied = [], 0
    at = value.find(prefix)
    while at >= 0:
        if not _begins(value, at):
            at = value.find(prefix, at + len(prefix))
            continue
        begin = end = at + len(prefix)
        while end < len(value) and value[end] in signs:
            end += 1
        rest = value[begin:end]
        if is_token(rest) or is_token(rest.rstrip(".-_")):  # these may also follow a token in a sentence
            clean += [value[copied:at], HIDDEN]
            copied = end
        at = value.find(prefix, end)
    return "".join(clean) + value[copied:]


def _without_azure_secrets(value: str) -> str:
    """Hide client secrets of Azure: 40 characters, of which the fifth and sixth are `Q~`."""
    clean, copied = [], 0
    at = value.find(_AZURE_MARK)
    while at >= 0:
        begin, end = at, at + len(_AZURE_MARK)
        while begin > copied and value[begin - 1] in _AZURE and at - begin < 8:
            begin -= 1
        while end < len(value) and value[end] in _AZURE and end - at < 64:
            end += 1
        if at - begin == 4 and value[at - 1] in _DIGITS and 31 <= end - at - len(_AZURE_MARK) <= 34:
            clean += [value[copied:begin], HIDDEN]
            copied = end
        at = value.find(_AZURE_MARK, end)
    return "".join(clean) + value[copied:]


def _without_terraform_tokens(value: str) -> str:
    """Hide tokens of Terraform, which have their mark in the middle."""
    clean, copied = [], 0
    before, shortest = _TERRAFORM_LENGTHS
    at = value.find(_TERRAFORM_MARK)
    while at >= 0:
        end = at + len(_TERRAFORM_MARK)
        while end < len(value) and (value[end] in _NAME or value[end] == "="):
            end += 1
        if end - at - len(_TERRAFORM_MARK) >= shortest and _ALNUM.issuperset(value[max(0, at - before) : at]):
            clean += [value[copied : max(copied, at - before)], HIDDEN]
            copied = end
        at = value.find(_TERRAFORM_MARK, end)
    return "".join(clean) + value[copied:]


def _begins(value: str, at: int) -> bool:
    """Return whether a word may begin at a position: not inside another one, except after an escape."""
    if at == 0 or value[at - 1] not in _ALNUM:
        return True
    if value[max(0, at - 2) : at] in _ESCAPED:
        return True
    return at >= 3 and value[at - 3] == "%" and _HEX.issuperset(value[at - 2 : at])


def _without_long_keys(value: str) -> str:
    """Hide random runs of base64 characters: 40, as Amazon's keys, or 64 and more."""
    if len(value) < _AWS_KEY_LENGTH:
        return value
    clean, copied, at = [], 0, 0
    while at < len(value):
        # The last character of a possible run shows whether there can be one: most texts have none.
        last = at + _AWS_KEY_LENGTH - 1
        if last >= len(value):
            break
        if value[last] not in _BASE64:
            at = last + 1
            continue
        begin = last
        while begin > at and value[begin - 1] in _BASE64:
            begin -= 1
        if begin > at:
            at = begin
            continue
        end = last
        while end < len(value) and value[end] in _BASE64:
            end += 1
        is_key = _is_random(value[begin:end])
        while end < len(value) and value[end] == "=":
            end += 1
        if is_key:
            clean += [value[copied:begin], HIDDEN]
            copied = end
        at = end
    return "".join(clean) + value[copied:]


def _is_random(run: str) -> bool:
    if len(run) != _AWS_KEY_LENGTH and len(run) < _LONG_KEY_LENGTH:
        return False
    slashes = run.count("/")
    if slashes * 10 > len(run) or (slashes > 1 and run.startswith("/")):
        return False  # a path
    if run.isalpha():
        return False  # such as a sequence of DNA
    counts = (sum(map(kind, run)) for kind in (str.isdigit, str.isupper, str.islower))
    return all(count * 16 >= len(run) for count in counts) or _is_mixed_case(run)
