"""Whole reports: the specification of W&B's clients as our blocks, and the other way, with nothing lost.

What a client sent is kept beside our blocks. As long as a block is unchanged, clients get back what was sent
for it, also what our pages cannot show.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from runvitals.model import json_values
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.reports import panels, texts

MAX_SPEC_BYTES: Final = 2 * 1024 * 1024
_PARAGRAPH: Final = {"type": "paragraph", "children": [{"text": ""}]}
_VERSION: Final = 5
_WIDTHS: Final = ("readable", "fixed", "fluid")


@dataclass(frozen=True, slots=True)
class SentSpec:
    """What a client sent for a report.

    Attributes:
        revision: of the report that was made of it.
        blocks: the client's blocks, each with the id of ours; None for those that we have no block of.
        rest: the other members of the specification.
    """

    revision: int
    blocks: Sequence[tuple[str | None, Mapping[str, Any]]]
    rest: Mapping[str, Any]

    def as_json(self) -> str:
        """Return it as it is stored."""
        return json.dumps({"revision": self.revision, "blocks": list(self.blocks), "rest": dict(self.rest)})

    @classmethod
    def from_json(cls, text: str) -> SentSpec:
        """Return what was stored."""
        stored = json.loads(text)
        return cls(stored["revision"], [(own, sent) for own, sent in stored["blocks"]], stored["rest"])


def parsed_spec(text: str) -> dict[str, Any]:
    """Return a specification.

    Raises:
        InvalidArgument: too long, not JSON, or not an object with a list of blocks.
    """
    if len(text.encode("utf-8", "replace")) > MAX_SPEC_BYTES:
        raise InvalidArgument(f"the spec of a report is larger than {MAX_SPEC_BYTES // 1024 // 1024} MB")
    try:
        spec = json_values.decode(text)
    except ValueError as error:
        raise InvalidArgument(f"invalid spec of a report: {error}") from None
    if not isinstance(spec, dict) or not isinstance(spec.get("blocks"), list):
        raise InvalidArgument("invalid spec of a report: expected an object with a list of blocks")
    for index, block in enumerate(spec["blocks"]):
        if not isinstance(block, dict):
            raise InvalidArgument(f"invalid spec of a report: block {index + 1} is not an object")
    return spec


def received(
    spec: Mapping[str, Any],
    entity: str,
    project: str,
    client_blocks: Sequence[tuple[str | None, Mapping[str, Any]]],
    present: Mapping[str, Mapping[str, Any]],
) -> tuple[list[dict[str, Any]], list[tuple[str | None, Mapping[str, Any]]]]:
    """Return our blocks for a specification, and the client's blocks with the ids of ours.

    Blocks that the client got from us and did not change keep our block and its id, so that comments stay and
    changes of others are merged.

    Args:
        entity, project: those of the report.
        client_blocks: what clients get for the present report, as `shown_blocks` returns it.
        present: our present blocks by id.

    Raises:
        InvalidArgument: something of a panel grid that ours cannot express.
    """
    sent = _flattened(spec["blocks"], 0)
    blocks: list[dict[str, Any]] = []
    pairs: list[tuple[str | None, Mapping[str, Any]]] = []
    ids = set(present)
    for index, (block, shown_index) in enumerate(zip(sent, _shown_indices(sent, client_blocks), strict=True)):
        own_id = None if shown_index is None else client_blocks[shown_index][0]
        is_same = shown_index is not None and _normal(client_blocks[shown_index][1]) == _normal(block)
        own = dict(present[own_id]) if is_same and own_id else _own_block(block, entity, project)
        if own is not None:
            own["id"] = own_id or _new_id(block, index, ids)
            ids.add(own["id"])
            blocks.append(own)
        pairs.append((None if own is None else own["id"], block))
    return blocks, pairs


def _shown_indices(
    sent: Sequence[Mapping[str, Any]], client_blocks: Sequence[tuple[str | None, Mapping[str, Any]]]
) -> list[int | None]:
    """Return which of the shown blocks each sent one is: the same, or the same one changed; None: a new one.

    A changed block is of the same type, between the same neighbours.
    """
    same: dict[str, deque[int]] = {}
    for index, (_, block) in enumerate(client_blocks):
        same.setdefault(_normal(block), deque()).append(index)
    shown_indices: list[int | None] = []
    for block in sent:
        equal = same.get(_normal(block))
        shown_indices.append(equal.popleft() if equal else None)
    free = set(range(len(client_blocks))) - {index for index in shown_indices if index is not None}
    following = [len(client_blocks)] * len(sent)
    for index in range(len(sent) - 2, -1, -1):
        shown_index = shown_indices[index + 1]
        following[index] = following[index + 1] if shown_index is None else shown_index
    previous = -1
    for index, block in enumerate(sent):
        shown_index = shown_indices[index]
        if shown_index is None:
            between = range(previous + 1, following[index])
            kind = block.get("type")
            shown_index = next(
                (at for at in between if at in free and client_blocks[at][1].get("type") == kind), None
            )
            shown_indices[index] = shown_index
            free.discard(-1 if shown_index is None else shown_index)
        previous = previous if shown_index is None else shown_index
    return shown_indices


def shown_blocks(
    blocks: Sequence[Mapping[str, Any]],
    spec: SentSpec | None,
    at_spec: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str | None, Mapping[str, Any]]]:
    """Return the blocks that clients get, each with the id of ours.

    Args:
        blocks: our present blocks.
        spec: what a client sent last; None if no client wrote the report.
        at_spec: our blocks as they were then, by id.
    """
    before: dict[str, list[tuple[str | None, Mapping[str, Any]]]] = {}
    rest: list[tuple[str | None, Mapping[str, Any]]] = []
    for own_id, sent in spec.blocks if spec is not None else ():
        rest.append((own_id, sent))
        if own_id is not None:
            before[own_id] = rest
            rest = []
    if spec is None:
        rest = [(None, _PARAGRAPH)]
    client_blocks: list[tuple[str | None, Mapping[str, Any]]] = (
        [] if spec is not None else [(None, _PARAGRAPH)]
    )
    for block in blocks:
        if block["id"] in before and at_spec.get(block["id"]) == block:
            client_blocks += before[block["id"]]
        else:
            client_blocks.append((block["id"], _wandb_block(block)))
    return [*client_blocks, *rest]


def spec_text(
    client_blocks: Sequence[tuple[str | None, Mapping[str, Any]]],
    spec: SentSpec | None,
    settings: Mapping[str, Any] | None = None,
) -> str:
    """Return the specification that clients get.

    Args:
        settings: added to `panelSettings`, which clients send back.
    """
    rest = spec.rest if spec is not None else {"version": _VERSION, "width": _WIDTHS[0]}
    specification = {"authors": [], "discussionThreads": [], "panelSettings": {}, **rest}
    sent_settings = specification["panelSettings"] if isinstance(specification["panelSettings"], dict) else {}
    specification |= {
        "panelSettings": {**sent_settings, **(settings or {})},
        "blocks": [block for _, block in client_blocks],
    }
    return json.dumps(specification, ensure_ascii=False)


def rest_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a specification has beside its blocks."""
    return {name: value for name, value in spec.items() if name != "blocks"}


def _flattened(blocks: Sequence[Any], depth: int) -> list[Mapping[str, Any]]:
    """The blocks, with those that are folded below a heading after it."""
    flat: list[Mapping[str, Any]] = []
    for block in blocks:
        if not isinstance(block, dict):
            raise InvalidArgument("invalid spec of a report: a block below a heading is not an object")
        inner = block.get("collapsedChildren")
        if block.get("type") == "heading" and isinstance(inner, list) and inner and depth < 8:
            flat.append({name: value for name, value in block.items() if name != "collapsedChildren"})
            flat += _flattened(inner, depth + 1)
        else:
            flat.append(block)
    return flat


def _own_block(block: Mapping[str, Any], entity: str, project: str) -> dict[str, Any] | None:
    if block.get("type") == "panel-grid":
        return panels.panels_of(block, entity, project)
    markdown = texts.markdown_of(block)
    return None if markdown is None else {"kind": "text", "text": markdown}


def _wandb_block(block: Mapping[str, Any]) -> Mapping[str, Any]:
    if block["kind"] == "panels":
        return panels.grid_of(block)
    if block["kind"] == "image":
        return texts.block_of(f"*{block['caption'] or block['alt'] or 'An image'}*")
    return texts.block_of(block["text"])


def _new_id(block: Mapping[str, Any], index: int, ids: set[str]) -> str:
    own_id = panels.report_id(f"{index} {_normal(block)}")
    number = 0
    while own_id in ids:
        number += 1
        own_id = panels.report_id(f"{index} {number} {_normal(block)}")
    return own_id


def _normal(block: Mapping[str, Any]) -> str:
    """Return a block in a form that is equal however a client writes its defaults."""
    return json.dumps(_without_empty(block), sort_keys=True, ensure_ascii=False)


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        pairs = ((name, _without_empty(part)) for name, part in value.items())
        return {name: part for name, part in pairs if part not in (None, "", [], {}, False)}
    if isinstance(value, list):
        return [_without_empty(part) for part in value]
    return value
