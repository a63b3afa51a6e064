"""Names in the environment that look like settings of the platform and are none: mistyped ones."""

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Final, NamedTuple

# Variables of the platform that are no settings, and of other programs whose names begin with Z.
OTHERS: Final = re.compile(
    r"Z(?:ONAL|FUZZ|SH|DOTDIR|LE|PFX|PLUG|PROF|INIT|IM|GEN|COMET|ELLIJ|ED|FS|K|OOKEEPER|"
    r"OO|ABBIX|IPKIN|EPPELIN|EPHYR|ENDESK|OOM|EEBE|ITI|OPE|CTL|STD|LIB|IG|END)(?:_.*)?",
    re.ASCII,
)
NAME: Final = re.compile(r"Z[A-Z0-9_]+", re.ASCII | re.IGNORECASE)
ALIKE: Final = 0.8


class UnknownName(NamedTuple):
    """closest: the setting whose name is most alike; '' if none is."""

    name: str
    closest: str

    def sentence(self) -> str:
        """Return what is wrong, for an operator."""
        meant = f" Did you mean {self.closest}?" if self.closest else ""
        return f"{self.name} is set, but is no setting.{meant}"


def unknown_names(given: Iterable[str], known: Collection[str]) -> Iterator[UnknownName]:
    """Yield the names that begin with Z and are no setting, also by NAME_FILE, in order.

    The prefix is the platform's own, of which only other programs' variables are known exceptions.
    """
    accepted = {*known, *(f"{name}_FILE" for name in known)}
    for name in sorted(given):
        if name in accepted or not NAME.fullmatch(name) or OTHERS.fullmatch(name):
            continue
        if name != name.upper() and name.upper() not in accepted:
            continue
        closest = get_close_matches(name.upper(), sorted(accepted), n=1, cutoff=ALIKE)
        yield UnknownName(name, closest[0] if closest else "")
