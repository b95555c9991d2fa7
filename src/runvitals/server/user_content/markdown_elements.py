"""The elements of a Markdown text at its top level: headings, paragraphs, lists, tables, fences."""

from __future__ import annotations


def elements_of(markdown: str) -> list[str]:
    r"""Return the source of each element, in their order.

    Example:
        >>> elements_of("# Result\n\n- a\n- b\n")
        ['# Result', '- a\n- b']
    """
    from markdown_it import MarkdownIt  # takes 30 ms: not when a server starts

    parser = MarkdownIt("commonmark").enable("table").disable("inline")
    lines = markdown.splitlines()
    tokens = parser.parse("\n".join(lines))
    ends = [token.map[1] for token in tokens if token.level == 0 and token.map and token.nesting >= 0]
    # From the end of the element before: definitions of links are no elements, and must not be lost.
    starts = [0, *ends]
    elements = ["\n".join(lines[first:end]) for first, end in zip(starts, [*ends, len(lines)], strict=True)]
    return [element.strip("\n").rstrip() for element in elements if element.strip()]
