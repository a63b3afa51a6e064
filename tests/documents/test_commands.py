"""Every command of the documentation works as it is printed."""

import re

import pytest
import requests

from tests.documents.blocks import blocks, pages, shell_blocks
from tests.documents.conftest import Terminal
from tests.documents.not_run import NOT_RUN, reason

TUTORIAL, SQL, CACHE = "docs/tutorial.md", "docs/sql.md", "docs/cache.md"
# These pages print a gap in the place of the reader's token.
GAPS = ("Bearer …", "Bearer zonal_dev_…")
PREPARED_SQL = """
CREATE TABLE items (id int PRIMARY KEY, name text, n int DEFAULT 1);
CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY, item int);
INSERT INTO items VALUES (7, 'seventh'), (42, 'answer')
"""
RUN = [TUTORIAL, SQL, CACHE, *("docs/api-keys.md", "docs/authentication.md", "docs/earnings.md")]
RUN += ["docs/external-sign-in.md", "README.md"]


def script_of(page: str) -> str:
    """Return the page's commands in their order, without those that are not run."""
    chosen = [each.text for each in shell_blocks(page) if not reason(page, each.text)]
    script = "\n".join(chosen)
    for gap in GAPS:
        script = script.replace(f"'Authorization: {gap}'", '"Authorization: Bearer $TOKEN"')
    return script


def test_every_command_is_run_or_listed_with_its_reason() -> None:
    found = [each for page in pages() for each in shell_blocks(page)]
    forgotten = [each for each in found if not (each.page in RUN or reason(each.page, each.text))]
    assert forgotten == []
    used = [
        key for key in NOT_RUN if any(key[0] == each.page and key[1] in each.text for each in found)
    ]
    assert used == [*NOT_RUN]
    assert all(script_of(page) for page in RUN)


@pytest.mark.parametrize(
    "page", ["docs/authentication.md", "docs/earnings.md", "docs/external-sign-in.md", "README.md"]
)
def test_the_commands_of_a_page_work(terminal: Terminal, page: str) -> None:
    token = terminal.sign_up()
    terminal.paste(script_of(page), TOKEN=token, BASE=terminal.site, ACCESS=token)


def test_the_tutorial_works(terminal: Terminal) -> None:
    program = next(each.text for each in blocks(TUTORIAL) if each.language == "python")
    (terminal.folder / "notes.py").write_text(program)
    said = terminal.paste(script_of(TUTORIAL))
    assert re.search(r"^1 Water the plants$\n^2 Dinner$", said, re.MULTILINE), said
    address = re.search(r"^  (http\S+recipe\.txt\S+)$", said, re.MULTILINE)
    assert address is not None, said
    assert requests.get(address[1], timeout=30).content == b"tomatoes, basil, salt\n"
    assert '"rows":[{"count":0}]' in said


def test_the_commands_of_sql_work(terminal: Terminal) -> None:
    token = terminal.sign_up()
    terminal.post("/v1/sql", {"query": PREPARED_SQL}, token)
    (terminal.folder / "items.csv").write_text("id,name\n1,first\n2,second\n")
    said = terminal.paste(script_of(SQL), TOKEN=token)
    assert '"row_count":2' in said
    assert '"state":"committed"' in said


def test_the_commands_of_the_cache_work(terminal: Terminal) -> None:
    token = terminal.sign_up()
    key = terminal.post("/v1/cache/access-keys", {"label": "reader"}, token)
    (terminal.folder / "picture.png").write_bytes(b"picture")
    terminal.paste(
        script_of(CACHE),
        TOKEN=token,
        AWS_ACCESS_KEY_ID=key["access_key_id"],
        AWS_SECRET_ACCESS_KEY=key["secret_access_key"],
        AWS_DEFAULT_REGION="us-east-1",
    )


def test_the_command_of_api_keys_works(terminal: Terminal) -> None:
    wanted = {"name": "reader", "role": "reader"}
    key = terminal.post("/v1/api-keys", wanted, terminal.sign_up())["key"]
    said = terminal.paste(script_of("docs/api-keys.md"), ZONAL_API_KEY=key)
    assert '"rows":[{"answer":42}]' in said
