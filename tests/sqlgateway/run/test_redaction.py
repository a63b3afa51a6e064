"""What the history keeps of a text that mentions a secret, whether it ran or failed."""

from collections.abc import Callable

from sqlgateway.models import ALL_REMOVED, REMOVED
from tests.cast import Caller
from tests.sqlgateway.run.test_history import queries_of, run

SignIn = Callable[[str], Caller]
SECRET = "hunter2"
TEXTS = [
    "ALTER ROLE CURRENT_USER PASSWORD 'hunter2'",
    "alter role x password E'hunt\\'er2' -- hunter2",
    "ALTER ROLE x PASSWORD 'it''s hunter2'",
    "ALTER ROLE x PASSWORD U&'hunter2'",
    "ALTER ROLE x PASSWORD $a$hunter2'$$$a$",
    "DO $$ BEGIN EXECUTE 'ALTER ROLE x PASSWORD ''hunter2'''; END $$",
    "SELECT \"odd'name\", 'hunter2' AS password",
    "SELECT /* it's */ crypt('hunter2', gen_salt('bf'))",
    "SELECT E'a\\\\'\n'b\\'hunter2', 'password'",
    "SELECT e'\\'', 'hunter2' AS secret",
    "SELECT 'postgres://bob:hunter2@example.com/'",
    "INSERT INTO users (name, password) VALUES ('bob', 'hunter2",
    "SELECT $x$password$y$ hunter2 $x$, 'hunter2'",
    "SELECT pgp_sym_encrypt('x', 'hunter2')",
    "UPDATE t SET api_key = 'hunter2' /* hunter2",
    "SET standard_conforming_strings = off; SELECT '\\', password 'hunter2'",
    "SELECT /* a /* b */ ' */ 'hunter2' AS password",
    "SELECT 'password', E'a' -- goes on\n'\\' hunter2'",
]


def kept_of(caller: Caller, text: str) -> str:
    """Run a text; return what the history keeps of it."""
    run(caller, text)
    return queries_of(caller)[0]


def test_a_secret_is_removed(signed_in_as: SignIn) -> None:
    admin = signed_in_as("admin")
    for text in TEXTS:
        kept = kept_of(admin, text)
        assert SECRET not in kept
        assert REMOVED in kept or kept == ALL_REMOVED, text


def test_what_is_no_literal_stays(signed_in_as: SignIn) -> None:
    text = 'SELECT "password", a$b, $1 FROM users WHERE id = 5 AND name = '

    assert kept_of(signed_in_as("admin"), text + "'bob'") == text + REMOVED


def test_a_text_without_secrets_is_kept(signed_in_as: SignIn) -> None:
    text = "SELECT 'hello' /* why */ FROM authors"

    assert kept_of(signed_in_as("admin"), text) == text
