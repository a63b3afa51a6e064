"""What the other side said when something failed, for operators: logs, doctor and commands.

Never for a tenant or a client: it names hosts, roles and databases of the platform.
"""

import re
import ssl
from typing import Any, Final

MAX_CHARS: Final = 300
# Patterns take a time that grows with the square of the text.
READ_CHARS: Final = 1000
HIDDEN: Final = "…"
# A client puts credentials into a URL, providers into its query; texts of mail servers name
# recipients, texts of SMS services numbers.
SECRETS: Final = (
    # A password may have blanks; a port, and what follows it, is none.
    (re.compile(r"(?<=://)[^\s'\"<>/@:]*:(?![0-9]{1,5}\b)[^'\"<>/@]*@"), f"{HIDDEN}@"),
    (re.compile(r"(?<=://)[^\s'\"<>]*@"), f"{HIDDEN}@"),
    (re.compile(r"(?<=[^\s?])\?[^\s'\")<>]+"), f"?{HIDDEN}"),
    (re.compile(r"[^\s'\"<>(){},;:=@/…]+@[^\s'\"<>(){},;:]+"), HIDDEN),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]+"), rf"\1 {HIDDEN}"),
    # With a digit, or long: "the token is wrong" is left.
    (
        re.compile(
            r"(?i)\b(token|digest|api-?key)\s+(?=[\w.~+/=-]*[0-9]|[\w.~+/=-]{20})[\w.~+/=-]+"
        ),
        rf"\1 {HIDDEN}",
    ),
    (
        re.compile(
            r"(?i)([\w-]*(?:password|passwd|passphrase|secret|token|signature|credential|api_?key|"
            r"access_?key|authorization)[\w-]*['\"]?\s*[=:]\s*)(?:'[^']*'?|\"[^\"]*\"?|[^,;&)]+?(?=\s+[\w-]+=|[,;&)]|$))"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\+[0-9]{8,15}\b"), HIDDEN),
    # Keys of services, as Stripe's, GitHub's and Slack's, and our own tokens.
    (
        re.compile(
            r"\b(?:sk|rk|pk|whsec|pat|gh[oprsu]|github_pat|glpat|xox[a-z]|[a-z]+_dev)[_-]"
            r"(?=\w*[0-9])[\w-]{8,}|\bSG\.[\w.-]{16,}"
        ),
        HIDDEN,
    ),
    (re.compile(r"AGE-SECRET-KEY-\w+|eyJ[\w-]+\.[\w-]+\.?[\w-]*"), HIDDEN),
)
# libpq quotes parts of a URL that it cannot read, wherever they belong.
MALFORMED: Final = re.compile(r"\bURI\b|percent-encoded|connection (?:info|option)")
QUOTED: Final = re.compile(r'"[^"]*"')
# `<urllib3.connection.HTTPSConnection object at 0x7f…>: `, and the place in OpenSSL's source.
NOISE: Final = re.compile(r"<[^<>]* object at 0x[0-9a-f]+>:? ?|\s*\(_ssl\.c:\d+\)")


def reason(exc: BaseException) -> str:
    """Return the first line of what a driver or a server said, with PostgreSQL's SQLSTATE.

    The innermost error counts, where a library wraps another one's. Passwords, tokens, queries of
    URLs and addresses of mail are hidden; at most MAX_CHARS characters. Without a text it is the
    name of the class.
    """
    found = _innermost(exc)
    text = NOISE.sub("", _text(found)[:READ_CHARS])
    if MALFORMED.search(text):
        text = QUOTED.sub(f'"{HIDDEN}"', text)
    for shape, put in SECRETS:
        text = shape.sub(put, text)
    text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
    text = text or type(found).__name__
    if len(text) > MAX_CHARS:
        text = f"{text[: MAX_CHARS - 1]}{HIDDEN}"
    state = getattr(found, "sqlstate", None)
    return f"{text} (SQLSTATE {state})" if state else text


def _innermost(exc: BaseException) -> BaseException:
    """Return the error that an error carries: as its reason or its argument, or psycopg's."""
    for _ in range(8):
        arguments = [one for one in exc.args if isinstance(one, BaseException)]
        carried = getattr(exc, "reason", None)
        if not isinstance(carried, BaseException):
            carried = arguments[-1] if arguments else None
        cause = exc.__cause__
        if carried is None and cause is not None and (hasattr(cause, "sqlstate") or not str(exc)):
            carried = cause
        if carried is None:
            return exc
        exc = carried
    return exc


def _text(exc: BaseException) -> str:
    replies: Any = getattr(exc, "recipients", None)
    if isinstance(replies, dict) and replies:
        # smtplib: the replies by recipient.
        return _reply(*next(iter(replies.values())))
    if hasattr(exc, "smtp_code"):
        return _reply(exc.smtp_code, getattr(exc, "smtp_error", ""))
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {exc.verify_message}"
    text = str(exc).strip()
    if isinstance(exc, TimeoutError) and not (exc.strerror or text):
        return "no answer in time"
    if getattr(exc, "sqlstate", None):
        # Further lines show the statement and its values.
        return text.partition("\n")[0]
    return text


def _reply(code: Any, text: bytes | str) -> str:
    shown = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    return f"{code} {shown}"
