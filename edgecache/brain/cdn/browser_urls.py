"""URL references as browsers read them (WHATWG URL Standard §4.4), of http and https.

RFC 3986 does not say where a browser goes: it leaves tabs and line breaks out, takes a backslash
for a slash, and skips any number of slashes before a host. Hosts are compared as they are spelled:
one that only a browser takes for another counts as a different one.
"""

import re
from typing import Final, NamedTuple

PORTS: Final = {"http": 80, "https": 443}
# Left out at both ends (C0 controls and the blank), and everywhere.
ENDS: Final = "".join(map(chr, range(0x21)))
LEFT_OUT: Final = str.maketrans("", "", "\t\n\r")
SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
PORT: Final = re.compile(r"[0-9]{0,5}")
MAX_PORT: Final = 2**16 - 1


class BrowserUrl(NamedTuple):
    """A URL. port: None for the scheme's own. query, fragment: None if absent."""

    scheme: str
    user: str
    host: str
    port: int | None
    path: str
    query: str | None = None
    fragment: str | None = None

    def __str__(self) -> str:
        """Return the URL as text."""
        user = f"{self.user}@" if self.user else ""
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{user}{self.host}{port}{self.target}"

    @property
    def target(self) -> str:
        """Return what follows the host."""
        query = "" if self.query is None else f"?{self.query}"
        fragment = "" if self.fragment is None else f"#{self.fragment}"
        return self.path + query + fragment

    def join(self, reference: str) -> "BrowserUrl | None":
        """Return the URL that a reference means on this one's page.

        None for one that is invalid, or has another scheme: it means the same everywhere.
        """
        text = reference.strip(ENDS).translate(LEFT_OUT)
        scheme, found = self.scheme, SCHEME.match(text)
        is_absolute = False
        if found is not None:
            scheme, text = found[1].lower(), text[found.end() :]
            # http:x on a page of http is relative.
            is_absolute = scheme != self.scheme or text.startswith("//")
        if scheme not in PORTS:
            return None
        text, hash_mark, fragment = text.partition("#")
        text, question_mark, query = text.partition("?")
        path = text.replace("\\", "/")
        new_query = query if question_mark else None
        mark = fragment if hash_mark else None
        if is_absolute or path.startswith("//"):
            return _at_host(scheme, path.lstrip("/"), new_query, mark)
        if not path:
            new_query = new_query if question_mark else self.query
            return self._replace(query=new_query, fragment=mark)
        folder = "" if path.startswith("/") else self.path.rpartition("/")[0] + "/"
        return self._replace(path=_without_dots(folder + path), query=new_query, fragment=mark)


def parse(url: str) -> BrowserUrl | None:
    """Return an absolute URL, None for an invalid one."""
    return NOWHERE.join(url)


NOWHERE: Final = BrowserUrl("https", "", "nowhere.invalid", None, "/")


def _at_host(scheme: str, rest: str, query: str | None, fragment: str | None) -> BrowserUrl | None:
    authority, slash, path = rest.partition("/")
    user, _, place = authority.rpartition("@")
    host, port = place, ""
    if ":" in place and not place.endswith("]"):
        host, _, port = place.rpartition(":")
    if not host or PORT.fullmatch(port) is None or int(port or 0) > MAX_PORT:
        return None
    number = int(port) if port else None
    number = None if number == PORTS[scheme] else number
    path = _without_dots(slash + path) if path else "/"
    # Bytes of UTF-8 are no letters.
    host = host.lower() if host.isascii() else host
    return BrowserUrl(scheme, user, host, number, path, query, fragment)


def _without_dots(path: str) -> str:
    """Return a path, which begins with a slash, without the segments '.' and '..'."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for number, segment in enumerate(segments, 1):
        plain = segment.lower().replace("%2e", ".")
        if plain == "..":
            kept = kept[:-1]
        elif plain != ".":
            kept.append(segment)
        if plain in {".", ".."} and number == len(segments):
            kept.append("")
    return "/" + "/".join(kept)
