"""PostgreSQL's messages without what is nobody's business: names of ours, folders, hosts."""

import re
from typing import Final

from sqlgateway.names import OPAQUE
from sqlgateway.placements import Login

TEMPLATES: Final = re.compile(r"\bzonal_(template_\d+|provisioner)\b")


def scrub(text: str, login: Login) -> str:
    """Give a message as the tenant may read it.

    Its own role is called by what it is (admin, operator, reader); every other opaque name, also
    one of another tenant, becomes a plain word.
    """
    text = text.replace(login.user, login.role).replace(login.dbname, "database")
    text = OPAQUE.sub(_word, text)
    text = TEMPLATES.sub("platform", text)
    for path in login.address.private_paths:
        text = text.replace(path, "…")
    return text


def _word(match: re.Match[str]) -> str:
    return "role" if match.group().startswith("zr_") else "database"
