"""The login page, and the redirect after it. It works without JavaScript."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from runvitals.model.local_path import local_path

PATH = "/login"
STYLE_PATH = "/login.css"
STYLE = """:root { color-scheme: light dark; }
body { display: grid; place-content: center; min-height: 90vh; margin: 0; padding: 16px; background: #f5f6f8;
  color: #1b1f26; font: 14px/1.45 system-ui, sans-serif; }
main { max-width: 380px; padding: 20px 24px; border: 1px solid #dfe2e7; border-radius: 8px;
  background: #fff; }
h1 { margin: 0 0 8px; font-size: 20px; }
label { display: block; margin-bottom: 4px; }
input, button { box-sizing: border-box; width: 100%; height: 36px; padding: 0 10px;
  border: 1px solid #c9ced6; border-radius: 6px; background: transparent; color: inherit; font: inherit; }
button { margin-top: 10px; border-color: #1f6feb; background: #1f6feb; color: #fff; font-weight: 600;
  cursor: pointer; }
.bad { color: #c5303a; }
.soft { margin-bottom: 0; color: #5b6472; }
:focus-visible { outline: 2px solid #1f6feb; outline-offset: 1px; }
@media (prefers-color-scheme: dark) {
  body { background: #0e1116; color: #e4e8ee; }
  main { border-color: #2a313c; background: #161a21; }
  input { border-color: #3a4350; }
  button { border-color: #6ea3f5; background: #6ea3f5; color: #0e1116; }
  .bad { color: #f5737a; }
  .soft { color: #a0a9b7; }
}
"""
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in · runvitals</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<link rel="stylesheet" href="{style}"></head>
<body><main><h1>runvitals</h1><p{kind}>{message}</p>
<form method="post" action="{action}"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" autofocus required>
<button>Log in</button></form>
<p class="soft">An operator of this server creates one with <code>runvitals token create NAME</code>.</p>
</main></body></html>"""


def login_page(target: str, invalid_token: bool = False) -> str:
    """Return the HTML page that leads to `target`, see `redirect_target`, and may report an invalid token."""
    message = "Invalid or revoked token." if invalid_token else "This server requires a token."
    kind = ' class="bad" role="alert"' if invalid_token else ""
    # Relative: the server may be below a path of another one.
    style, action = STYLE_PATH.lstrip("/"), escape(address(target).lstrip("/"))
    return _PAGE.format(style=style, kind=kind, message=message, action=action)


def address(target: str) -> str:
    """Return the address of the login page that redirects to `target`.

    Example:
        >>> address("/"), address("/runs/abc?charts=gpu")
        ('/login', '/login?next=%2Fruns%2Fabc%3Fcharts%3Dgpu')
    """
    return PATH if target == "/" else f"{PATH}?next={quote(target, safe='')}"


def redirect_target(requested: str) -> str:
    """Return a path of this server to go to after the login, but not the login itself; `/` for anything else.

    Example:
        >>> redirect_target("/runs/abc?charts=gpu"), redirect_target("//evil.example/")
        ('/runs/abc?charts=gpu', '/')
    """
    target = local_path(requested)
    return "/" if target.partition("?")[0] == PATH else target
