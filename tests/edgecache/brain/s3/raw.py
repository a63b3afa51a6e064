"""Raw requests to the object API, signed as AWS specifies, or wrong in one chosen place."""

import hashlib
import hmac
import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from tests.edgecache.cluster import Keys

UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """Return the error's code."""
        return self.text("Code")

    def text(self, element: str) -> str:
        """Return the text of the first element of this name."""
        found = re.search(f"<{element}>(.*?)</{element}>".encode(), self.body, re.DOTALL)
        return found[1].decode() if found else ""


def md5(body: bytes) -> bytes:
    """Return the digest that ETags are made of."""
    return hashlib.md5(body, usedforsecurity=False).digest()


def send(
    url: str,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
) -> Answer:
    """Send a request as it is."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        given = {"host": parts.netloc, **(headers or {})}
        if body or method in {"PUT", "POST"}:
            given.setdefault("content-length", str(len(body)))
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders(body or None)
        answer = connection.getresponse()
        content = answer.read()
        found = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, found, content)
    finally:
        connection.close()


@dataclass(frozen=True)
class Signer:
    """Signs for a pair of keys. Source: AWS, "Signature Calculations for the Authorization Header".

    Written apart from the server's code on purpose.
    """

    keys: Keys
    url: str
    region: str = "us-east-1"
    service: str = "s3"

    def key(self, date: str) -> bytes:
        """Derive the signing key of a day."""
        secret = f"AWS4{self.keys.secret_key}".encode()
        for part in (date, self.region, self.service, "aws4_request"):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        return secret

    def sign(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str] | None = None,
        *,
        payload: str = EMPTY,
        now: datetime | None = None,
    ) -> dict[str, str]:
        """Return the headers of a signed request."""
        moment = now or datetime.now(UTC)
        amz_date = moment.strftime("%Y%m%dT%H%M%SZ")
        signed = {name.lower(): value for name, value in (headers or {}).items()}
        signed |= {
            "host": urlsplit(self.url).netloc,
            "x-amz-date": amz_date,
            "x-amz-content-sha256": payload,
        }
        path, _, query = target.partition("?")
        pairs = sorted(pair.partition("=")[::2] for pair in query.split("&") if pair)
        names = sorted(signed)
        canonical = "\n".join(
            [
                method,
                path,
                "&".join(f"{name}={value}" for name, value in pairs),
                *(f"{name}:{signed[name].strip()}" for name in names),
                "",
                ";".join(names),
                payload,
            ]
        )
        scope = f"{amz_date[:8]}/{self.region}/{self.service}/aws4_request"
        text = "\n".join(
            ["AWS4-HMAC-SHA256", amz_date, scope, hashlib.sha256(canonical.encode()).hexdigest()]
        )
        signature = hmac.new(self.key(amz_date[:8]), text.encode(), hashlib.sha256).hexdigest()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.keys.access_key}/{scope},"
            f"SignedHeaders={';'.join(names)},Signature={signature}"
        )
        return signed

    def send(
        self,
        method: str,
        target: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        **options: object,
    ) -> Answer:
        """Sign and send."""
        payload = str(options.pop("payload", hashlib.sha256(body).hexdigest()))
        now = options.pop("now", None)
        signed = self.sign(
            method,
            target,
            headers,
            payload=payload,
            now=now if isinstance(now, datetime) else None,
        )
        return send(self.url, method, target, signed, body)

    def presign(
        self,
        method: str,
        path: str,
        *,
        expires: int = 300,
        now: datetime | None = None,
        query: Mapping[str, str] | None = None,
    ) -> str:
        """Return a presigned target. query: more parameters, of names in lower case."""
        moment = now or datetime.now(UTC)
        amz_date = moment.strftime("%Y%m%dT%H%M%SZ")
        scope = f"{amz_date[:8]}/{self.region}/{self.service}/aws4_request"
        signed = "&".join(
            [
                "X-Amz-Algorithm=AWS4-HMAC-SHA256",
                f"X-Amz-Credential={quote(f'{self.keys.access_key}/{scope}', safe='')}",
                f"X-Amz-Date={amz_date}",
                f"X-Amz-Expires={expires}",
                "X-Amz-SignedHeaders=host",
                *(
                    f"{name}={quote(value, safe='')}"
                    for name, value in sorted((query or {}).items())
                ),
            ]
        )
        host = urlsplit(self.url).netloc
        canonical = f"{method}\n{path}\n{signed}\nhost:{host}\n\nhost\n{UNSIGNED}"
        text = "\n".join(
            ["AWS4-HMAC-SHA256", amz_date, scope, hashlib.sha256(canonical.encode()).hexdigest()]
        )
        signature = hmac.new(self.key(amz_date[:8]), text.encode(), hashlib.sha256).hexdigest()
        return f"{path}?{signed}&X-Amz-Signature={signature}"
