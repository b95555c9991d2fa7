"""Readable default names for runs: `brave-otter-417`."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

from runvitals.base.private_folders import make_private
from runvitals.journal import paths

_ADJECTIVES_TEXT = (
    "able agile airy amber ample apt azure bold bonny brave breezy bright brisk calm candid careful "
    "cheery chief civil clean clear clever cosy crisp curious daring dapper deft dewy eager early easy "
    "elated epic even exact fair famous fancy fast fine firm fleet fond frank free fresh frosty gentle "
    "glad golden good grand great happy hardy hasty hearty honest humble ideal jolly joyful keen kind "
    "known lasting level light lively loyal lucid lucky magic major mellow merry mighty mild modest mossy "
    "neat new nimble noble novel patient placid plain poised polite prime proud quick quiet rapid ready "
    "regal rich robust rosy round royal sharp shiny silent silver simple sleek smart smooth snowy soft "
    "solid spry steady stout sunny sure swift tame tidy vast vivid warm wise witty young"
)
_NOUNS_TEXT = (
    "acorn alder anchor antler apple arrow aspen aster badger bamboo basil beacon beech birch bison bloom "
    "bobcat breeze bridge brook cactus canyon carp cedar chestnut cliff cloud clover comet condor coral "
    "cove crane creek cricket dahlia dawn delta dolphin dove dune eagle elk elm ember falcon feather fern "
    "finch fjord flame flint forest fox galaxy garden gecko geyser glacier glade goose grove gull harbor "
    "hare hawk hazel heron hill ibis iris island ivy jay juniper kelp kestrel koala lagoon lake lantern "
    "larch lark leaf lemur lily lotus lynx magpie maple marmot marsh meadow meteor mint moon moose moss "
    "newt oak ocean olive orca orchid otter owl panda pebble pelican petal pine plover pond poppy prairie "
    "puffin quail quartz rabbit rain raven reef ridge river robin salmon seal shore sparrow spruce star "
    "stone stork stream summit sun swan tern thistle tiger trout tulip valley walnut wave willow wolf "
    "wren"
)
_ADJECTIVES, _NOUNS = _ADJECTIVES_TEXT.split(), _NOUNS_TEXT.split()
_NUMBERS = 999
_ATTEMPTS = 100


def names_of(run_id: str) -> Iterator[str]:
    """Yield candidate names for a run, in the same order in all its processes.

    Example:
        >>> next(names_of("k3j9x2ab"))
        'brave-otter-417'
    """
    for attempt in range(_ATTEMPTS):
        number = _number_of(run_id if not attempt else f"{run_id}.{attempt}")
        number, noun = divmod(number, len(_NOUNS))
        number, adjective = divmod(number, len(_ADJECTIVES))
        yield f"{_ADJECTIVES[adjective]}-{_NOUNS[noun]}-{1 + number % _NUMBERS}"


def _number_of(text: str) -> int:
    data = text.encode("utf-8", "replace")
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1] + b"/")


def free_name(run_id: str, project: str, directory: str) -> str:
    """Reserve a name that no other run of the project has in this data folder.

    A symbolic link in the data folder reserves it; creating one is atomic.
    """
    first = next(names_of(run_id))
    folder = os.path.join(directory, "names", f"{paths.safe_name(project)}-{_number_of(project):016x}")
    try:
        make_private(folder)
        for name in names_of(run_id):
            path = os.path.join(folder, name)
            try:
                os.symlink(run_id, path)
            except FileExistsError:
                if os.readlink(path) != run_id:
                    continue
            return name
    except (OSError, NotImplementedError):
        return first  # a full disk, or no support for links: the name is still very likely unique
    return first
