"""Markdown to HTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.server.user_content.image_links import ImageLinks
from runvitals.server.user_content.markdown import MAX_CHARACTERS, html_of, mentions_of

PROXIED, LINKED = ImageLinks(bytes(32)), ImageLinks(bytes(32), enabled=False)
ATTACKS = (Path(__file__).parent / "xss.txt").read_text(encoding="utf-8").splitlines()
TAGS = frozenset(
    "p br hr h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong s a img table thead tbody tr th td".split()  # noqa: SIM905
)
ATTRIBUTES = {
    "a": {"href", "title", "rel"},
    "img": {"src", "alt", "title", "width", "height"},
    "code": {"class"},
    "ol": {"start"},
}
IMAGE = re.compile(r"/-/image/[0-9a-f]{32}/[\w-]+|/-/picture/[0-9a-f]{64}(\?s=(64|512))?")


class _Checked(HTMLParser):
    """Fails on everything that may not be in a page."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attributes:
            assert name in ATTRIBUTES.get(tag, set())
            assert value is not None
            if name == "href":
                assert re.match(r"(https?:|mailto:)|(?![\s\x00-\x20]*[a-zA-Z][\w+.-]*:)", value)
            if name == "src":
                assert IMAGE.fullmatch(value)
            if name in ("width", "height"):
                assert re.fullmatch(r"\d{1,4}|\d{1,3}%", value)
        if tag == "a":
            assert dict(attributes)["rel"] == "nofollow noopener noreferrer ugc"

    def handle_comment(self, data: str) -> None:
        pytest.fail("a comment")

    def handle_decl(self, declaration: str) -> None:
        pytest.fail("a declaration")

    def handle_pi(self, data: str) -> None:
        pytest.fail("an instruction")


def _check(rendered: str) -> None:
    checker = _Checked()
    checker.feed(rendered)
    checker.close()


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_of_the_owasp_list_gets_through(attack: str) -> None:
    wrapped = (
        attack,
        f"> - {attack}",
        f"text *{attack}* text",
        f"[{attack}](https://x.example)",
        f"# {attack}",
    )
    for text in wrapped:
        _check(html_of(text, PROXIED, {"evil"}))
        _check(html_of(text, LINKED, {"evil"}))


def test_the_check_of_this_test_finds_attacks() -> None:
    for attack in ('<img src="x" onerror="y">', "<script>", '<a href="javascript:x" rel="">', "<!-- x -->"):
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            _check(attack)


@given(st.text(alphabet="<>ab/\"'=!-[]()*_`#| \n&;:img srconelpt", max_size=80))
def test_no_text_gets_through(text: str) -> None:
    _check(html_of(text, PROXIED, {"a"}))
    _check(html_of(f"<img src='https://x' {text}", LINKED, {"a"}))


def test_headings_begin_one_level_lower() -> None:
    rendered = html_of("# a\n\n##### b\n\n###### c", PROXIED)
    assert rendered == "<h2>a</h2>\n<h6>b</h6>\n<h6>c</h6>\n"


def test_lists_tables_code_and_tasks() -> None:
    assert html_of("- [ ] a\n- [x] b", PROXIED) == "<ul>\n<li>☐ a</li>\n<li>☑ b</li>\n</ul>\n"
    assert html_of("3. a", PROXIED) == '<ol start="3">\n<li>a</li>\n</ol>\n'
    assert "<th>a</th>" in html_of("|a|\n|:-:|\n|b|", PROXIED)
    assert html_of("~~a~~ **b**", PROXIED) == "<p><s>a</s> <strong>b</strong></p>\n"
    assert html_of("```c++\na<b\n```", PROXIED) == '<pre><code class="language-c++">a&lt;b\n</code></pre>\n'
    assert html_of("> a\n\n---", PROXIED) == "<blockquote>\n<p>a</p>\n</blockquote>\n<hr>\n"


def test_a_badge_is_a_link_with_an_image() -> None:
    badge = (
        '[<img src="https://img.shields.io/a.svg" width="120px" height="5000" onerror="x">](https://x.com)'
    )
    address = PROXIED.address("https://img.shields.io/a.svg")
    link = '<a href="https://x.com" rel="nofollow noopener noreferrer ugc">'
    assert html_of(badge, PROXIED) == f'<p>{link}<img src="{address}" width="120"></a></p>\n'
    assert html_of(badge, LINKED) == f"<p>{link}image</a></p>\n"


@pytest.mark.parametrize(
    ("attributes", "kept"),
    [
        ('width="1"', ' width="1"'),
        ('width="2000px"', ' width="2000"'),
        ('width="50%"', ' width="50%"'),
        ('height="50%"', ""),
        ('height="007"', ' height="7"'),
        ('width="0"', ""),
        ('width="2001"', ""),
        ('width="101%"', ""),
        ('width="-1"', ""),
        ('width="1e3"', ""),
        ('width="１"', ""),
        ('width="10em"', ""),
        ('style="width:10px"', ""),
    ],
)
def test_width_and_height_of_images(attributes: str, kept: str) -> None:
    address = PROXIED.address("https://x.example/a.png")
    rendered = html_of(f'<img src="https://x.example/a.png" {attributes}>', PROXIED)
    assert rendered == f'<p><img src="{address}"{kept}></p>\n'


def test_raw_html_is_text() -> None:
    assert html_of("<b>a</b>", PROXIED) == "<p>&lt;b&gt;a&lt;/b&gt;</p>\n"
    assert html_of("<div>\n*a*\n</div>", PROXIED) == "<p>&lt;div&gt;\n<em>a</em>\n&lt;/div&gt;</p>\n"


def test_images_that_are_not_shown_become_links() -> None:
    for images, source in ((PROXIED, "http://x.example/a.png"), (LINKED, "https://x.example/a.png")):
        link = f'<a href="{source}" rel="nofollow noopener noreferrer ugc">a</a>'
        assert html_of(f"![a]({source})", images) == f"<p>{link}</p>\n"
    assert html_of("![a](data:image/png;base64,AA)", PROXIED) == "<p>a</p>\n"
    assert html_of("![a](relative.png)", PROXIED) == "<p>a</p>\n"


def test_our_own_pictures_keep_their_path() -> None:
    path = f"/-/picture/{'0f' * 32}?s=64"
    assert html_of(f"![]({path})", LINKED) == f'<p><img src="{path}" alt=""></p>\n'
    assert "<img" not in html_of("![](/-/picture/../../api/v1/account)", PROXIED)


def test_mentions_link_to_those_who_may_be_read() -> None:
    text = "@ada, @bob x@ada.example `@ada` [@ada](https://x.example) @Ada"
    assert mentions_of(text) == {"ada", "bob"}
    rendered = html_of(text, PROXIED, {"ada"})
    assert rendered.count('href="/ada"') == 1
    assert rendered.startswith(
        '<p><a href="/ada" rel="nofollow noopener noreferrer ugc">@ada</a>, @bob x@ada'
    )


def test_a_long_text_is_refused() -> None:
    html_of("a" * MAX_CHARACTERS, PROXIED)
    with pytest.raises(ValueError, match="at most 20000"):
        html_of("a" * (MAX_CHARACTERS + 1), PROXIED)


def test_formulas_and_callouts_are_marked_for_the_page() -> None:
    links = ImageLinks(bytes(32))
    assert html_of("So $a_b$ of $5 and $6", links) == (
        '<p>So <code class="math inline">a_b</code> of $5 and $6</p>\n'
    )
    assert html_of("$$\n\\frac{a}{b}\n$$", links) == (
        '<pre><code class="math block">\\frac{a}{b}</code></pre>\n'
    )
    assert html_of("$$<script>x</script>$$", links).count("<script") == 0
    assert html_of("> [!WARNING]\n> Do *not*.", links) == (
        '<blockquote class="callout warning">\n<p>Do <em>not</em>.</p>\n</blockquote>\n'
    )
    assert "class" not in html_of("> [!OTHER] x", links)


def test_breaks_of_lines_as_editors_write_them() -> None:
    assert html_of("| a | b |\n| - | - |\n| x<br />y | <BR> |", PROXIED).count("<br>") == 2
    assert "&lt;br onclick" in html_of('a <br onclick="alert(1)"> b', PROXIED)
