"""Which parts of a client's request go to the origin, and which are part of the key.

A header that goes to the origin can change its response, so it belongs in the key; otherwise one
client could decide what all others get (cache poisoning). By default these go there:

- Accept-Encoding, reduced to the codings that clients know; keyed if the response is encoded, or
  its Vary says so.
- Accept and Accept-Language, once Vary of the URL's response has named them; then keyed.

A bucket may list more headers (``forwarded_headers``): each one goes to the origin and is keyed,
whatever Vary says. ``*`` sends all end-to-end headers except those withheld, and only Vary keys
them: use it for origins that are known to send Vary. Authorization is never keyed; RFC 9111 §3.5
applies.

A request that is forwarded (``forwards_writes``) has all of the client's end-to-end headers but
those withheld, and the listed ones.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from edgecache.brain.http_caching.caching_rules import HOP_BY_HOP, Pairs, end_to_end, names_of

EVERYTHING: Final = "*"
ENCODING: Final = "accept-encoding"
AUTHORIZATION: Final = "authorization"
COOKIE: Final = "cookie"
# Sent where Vary has named them. Both are case-insensitive.
NEGOTIATED: Final = frozenset({"accept", "accept-language"})
CODINGS: Final = ("zstd", "br", "gzip")
# Of a body, and conditions: the cache's own business when it reads.
OF_THE_MESSAGE: Final = frozenset(
    {
        "content-encoding",
        "content-type",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "range",
    }
)
# A bucket cannot list these.
RESERVED: Final = HOP_BY_HOP | OF_THE_MESSAGE | {"cdn-loop", "expect", "host", "via"}
# Headers that identify the client, or that frameworks build links and routes from; ``*`` omits
# them.
WITHHELD: Final = RESERVED | {
    AUTHORIZATION,
    COOKIE,
    "cookie2",
    "forwarded",
    "front-end-https",
    "proxy",
    "true-client-ip",
    "cf-connecting-ip",
    "client-ip",
    "fastly-client-ip",
    "x-cluster-client-ip",
    "user-agent",
    "x-host",
    "x-real-ip",
    "x-client-ip",
    "x-wap-profile",
}
# What is forwarded is not kept, and has the client's own of these.
FORWARDED: Final = OF_THE_MESSAGE | {AUTHORIZATION, "user-agent"}
WITHHELD_PREFIXES: Final = ("x-forwarded", "x-original-", "x-rewrite-", "x-http-", "x-method-")
TOKEN: Final = re.compile(r"[a-z0-9!#$%&'+.^_`|~-]+")
# Characters that a path may contain unencoded (RFC 3986, pchar), and the slash.
SAFE: Final = "/-._~!$&'()*+,;=:@"
# A longer query is named by its digest: the names are in an index of PostgreSQL.
QUERY_NAME_CHARS: Final = 512
DIGEST: Final = "sha256:"
# Parameters of signed links begin so, in any case: no origin gets one, and no key has one.
LINK_PARAMETER: Final = "zonal-"


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """A bucket's rules. listed: header names that it added. is_open: all headers go."""

    listed: frozenset[str]
    is_open: bool = False

    @classmethod
    def of(cls, names: Iterable[str], *, is_shared_host: bool = False) -> "KeyPolicy":
        """Return the policy of a bucket's list.

        is_shared_host: of a request to the host that all public buckets share, where a browser
        sends what other buckets' pages have set.
        """
        wanted = frozenset(names)
        if is_shared_host:
            wanted -= {COOKIE}
        return cls(wanted - {EVERYTHING}, EVERYTHING in wanted)

    def sent(self, fields: Mapping[str, str], learned: Collection[str]) -> dict[str, str]:
        """Return the client's headers that go to the origin.

        fields: the client's, lower-case names. learned: what Vary of this URL has named.
        """
        sent = {}
        for name, value in fields.items():
            if name in self.listed:
                sent[name] = value
            elif name in NEGOTIATED:
                if self.is_open or name in learned:
                    sent[name] = _in_lower_case(_without_blanks(value))
            elif self.is_open and not _is_withheld(name):
                sent[name] = value
        if ENCODING not in self.listed:
            sent[ENCODING] = codings(fields.get(ENCODING, ""))
        return sent

    def forwarded(self, headers: Pairs) -> list[tuple[str, str]]:
        """Return the client's headers that go on with a request that is forwarded."""
        return [
            (name, value)
            for name, value in end_to_end(headers)
            if name in self.listed or name in FORWARDED or not _is_withheld(name)
        ]

    def names(self, headers: Pairs) -> tuple[str, ...]:
        """Return the request headers that a response depends on, beyond the listed ones."""
        fields = dict(headers)
        varying = {name for key, value in headers if key == "vary" for name in names_of(value)}
        if fields.get("content-encoding", "identity").lower() != "identity":
            varying.add(ENCODING)
        return tuple(sorted(name for name in varying if self._can_be_sent(name)))

    def variant(self, target: "Target", sent: Mapping[str, str], learned: Collection[str]) -> str:
        """Return the secondary key: the query, the keyed headers, and the path's spelling.

        Never empty: '' is an object that was read through S3.
        """
        named = sorted((self.listed | frozenset(learned)) - {AUTHORIZATION})
        digest = ""
        if named:
            # Two spellings that the origin can distinguish have two keys.
            lines = (f"{name}:{self._compared(name, sent.get(name, ''))}" for name in named)
            digest = digest_of("\n".join(lines))
        return f"{query_name(target.query)}#{digest}#{target.spelling}"

    def _compared(self, name: str, value: str) -> str:
        """Return a header as the key has it: what Vary names, without blanks around commas.

        RFC 9111 §4.1. Within quotes they would be text; a listed header is taken as it is.
        """
        return value if name in self.listed or '"' in value else _without_blanks(value)

    def _can_be_sent(self, name: str) -> bool:
        if name in self.listed:
            return False
        return name in NEGOTIATED or name == ENCODING or (self.is_open and not _is_withheld(name))


@dataclass(frozen=True, slots=True)
class Target:
    """The key that a URL names, and the path and query that name it.

    path: the key's path, as the client sent it.
    spelling: '' for the usual one, otherwise a digest, because an origin may tell ``%2F`` from
    ``/``.
    """

    key: str
    path: str
    query: str
    spelling: str = ""


def target_of(key: str, path: str, query: str) -> Target:
    """Return the target of a URL. path: how it spells the key."""
    spelling = "" if path == quote(key, safe=SAFE) else digest_of(path)
    return Target(key, path, query, spelling)


def is_of_link(pair: str) -> bool:
    """True if a pair of a query is a parameter of a signed link."""
    return unquote(pair.partition("=")[0]).lower().startswith(LINK_PARAMETER)


def without_link(query: str) -> str:
    """Return a query without the parameters of a signed link."""
    return "&".join(pair for pair in query.split("&") if not is_of_link(pair))


def query_name(query: str) -> str:
    """Return what names a query in the directory."""
    is_digested = len(query) > QUERY_NAME_CHARS or query.startswith(DIGEST)
    return f"{DIGEST}{digest_of(query)}" if is_digested else query


def codings(accepted: str) -> str:
    """Return the content codings that a client accepts, limited to those that have a variant."""
    members = accepted_members(accepted)
    wanted = [coding for coding in CODINGS if coding in members]
    return ", ".join(wanted) or "identity"


def accepted_members(text: str) -> frozenset[str]:
    """Return the members of an Accept or Accept-Encoding that are not refused, in lower case."""
    weights: dict[str, str] = {}
    for member in text.lower().split(","):
        name, _, parameters = member.partition(";")
        weights[name.strip()] = parameters.replace(" ", "")
    return frozenset(
        name for name, weight in weights.items() if weight.rstrip("0") not in {"q=", "q=0."}
    )


def is_forwardable(name: str) -> bool:
    """True if a bucket may list a header (lower case)."""
    return TOKEN.fullmatch(name) is not None and name not in RESERVED


def _is_withheld(name: str) -> bool:
    return name in WITHHELD or name.startswith(WITHHELD_PREFIXES)


def _without_blanks(value: str) -> str:
    return ",".join(part.strip(" \t") for part in value.split(","))


def _in_lower_case(value: str) -> str:
    # Its other bytes are no letters (RFC 9110 §5.5).
    return value.encode("latin-1").lower().decode("latin-1")


def digest_of(text: str) -> str:
    """Return 32 digits that name a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
