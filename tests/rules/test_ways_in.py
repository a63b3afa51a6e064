"""Sessions are opened at one place, behind the stages: no way in goes around the second factor."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The gateway has sessions of its own, with PostgreSQL; it may not import ours (see below).
APPS = ("accounts", "environments", "twofactor", "recovery", "platform_site")


def callers(name: str) -> set[str]:
    """Give the modules that call a function."""
    found = set()
    for folder in APPS:
        for path in (ROOT / folder).rglob("*.py"):
            if re.search(rf"(?<!def )\b{name}\(", path.read_text()):
                found.add(str(path.relative_to(ROOT)))
    return found


def test_only_the_gate_opens_sessions() -> None:
    assert callers("open_session") == {"accounts/signin.py"}


def test_sessions_are_made_by_sign_in_and_switch_alone() -> None:
    assert callers("Session") <= {"accounts/sessions.py", "accounts/models.py"}


def test_tokens_are_made_from_sessions_alone() -> None:
    assert callers("pair_for") == {"accounts/signin.py", "accounts/views.py"}


def test_the_sql_gateway_knows_no_sign_in() -> None:
    for path in (ROOT / "sqlgateway").rglob("*.py"):
        assert not re.search(r"accounts\.(sessions|signin|tokens)", path.read_text()), path
