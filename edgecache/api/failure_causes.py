"""What the words mean that name why a bucket's response failed, in sentences for its owner.

The words are those of the table "Why a response failed" in docs/cache.md.
"""

from typing import Final

STATUS: Final = "status-"
MEANINGS: Final = {
    "name-unresolved": "The origin's name has no address in the DNS.",
    "name-timeout": "The DNS did not answer in time for the origin's name.",
    "address-forbidden": "The origin's address is one that the cache does not connect to.",
    "port-forbidden": "The origin's port is one that the cache does not connect to.",
    "connection-refused": "The origin refused the connection: no server listens there.",
    "connection-reset": "The origin, or something before it, cut the connection.",
    "unreachable": "No way leads to the origin's address.",
    "certificate-invalid": "The origin's certificate is not trusted, or is for another name.",
    "tls-failed": "The TLS handshake with the origin failed.",
    "too-many-connections": "All connections that the origin may have were in use.",
    "closed-early": "The origin closed the connection before it answered.",
    "body-cut-short": "The origin closed the connection before the end of the body.",
    "answer-malformed": "What the origin answered is not HTTP.",
    "chunk-malformed": "The origin's body is not divided into chunks as HTTP says.",
    "request-malformed": "The request to the origin cannot be written in HTTP.",
    "head-too-long": "The head of the origin's answer has more than 64 KiB.",
    "answer-too-large": "The origin's list of objects is larger than the cache reads.",
    "length-unclear": "The origin's answer does not say where its body ends.",
    "length-wrong": "The origin's body has another length than was announced.",
    "xml-malformed": "What the S3 origin answered is not what S3 answers.",
    "bucket-elsewhere": "The S3 origin's bucket has another region or endpoint.",
    "redirect-loop": "The origin redirected too often.",
    "redirect-refused": "The origin redirected to where the cache does not go.",
    "origin-denied": "The origin refused the credentials, or wants some.",
    "credentials-unreadable": "The origin's credentials cannot be read: enter them again.",
    "origin-deleted": "The bucket's origin was deleted.",
    "origin-changed": "The object changed at the origin while it was read.",
    "origin-failed": "The origin failed.",
    "connect-timeout": "The connection to the origin was not made in time.",
    "first-byte-timeout": "The origin did not begin to answer in time.",
    "idle-timeout": "The origin stopped sending in the middle of the body.",
    "origin-timeout": "A read from the origin took more than six hours.",
    "forward-timeout": "The origin did not answer a forwarded request within 300 seconds.",
    "access-log-lost": "Lines of the access log could not be written: its bucket is gone or full.",
    "loop": "The request came back to the cache: the origin leads to this bucket.",
}


def meaning_of(cause: str) -> str:
    """Return what a word means; '' for one that a newer brain has."""
    if cause.startswith(STATUS):
        return f"The origin answered with status {cause.removeprefix(STATUS)}."
    return MEANINGS.get(cause, "")
