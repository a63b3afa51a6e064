"""Whether a request comes from a page of this very origin."""

from django.http import HttpRequest


def is_same_origin(request: HttpRequest) -> bool:
    """Say whether the browser vouches for it: by ``Sec-Fetch-Site``, by ``Origin``, or by both.

    What is there must agree; a request with neither is no browser's, or too old a one's. Scripts
    can set neither (Fetch §2.2.2, forbidden request-headers).
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is None and origin is None:
        return False
    if site not in {None, "same-origin"}:
        return False
    return origin in {None, f"{request.scheme}://{request.get_host()}"}
