"""Every command of the documentation works as it is printed."""

import ast
import gzip
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from accounts.models import User
from tests import cast
from tests.cast import PASSWORD
from tests.documents.blocks import blocks, pages, shell_blocks
from tests.documents.conftest import Terminal
from tests.documents.not_run import NOT_RUN, reason
from tests.documents.scripts import script_of
from tests.edgecache.cluster import until
from tests.twofactor.holder import with_totp

pytestmark = pytest.mark.slow

TUTORIAL, SQL, CACHE = "docs/tutorial.md", "docs/sql.md", "docs/cache.md"
# The request that one of the commands on SQL cancels.
CANCELLED = "report-2026-11"
WEBHOOKS, CLIENTS = "docs/webhooks.md", "docs/clients.md"
PREPARED_SQL = """
CREATE TABLE items (id int PRIMARY KEY, name text, n int DEFAULT 1);
CREATE TABLE orders (id int GENERATED ALWAYS AS IDENTITY, item int);
INSERT INTO items VALUES (7, 'seventh'), (42, 'answer')
"""
RUN = [TUTORIAL, SQL, CACHE, "docs/api-keys.md", "docs/authentication.md", "docs/earnings.md"]
RUN += ["docs/teams.md", "README.md", WEBHOOKS, CLIENTS]
# By tests/deploy/walk, from its first command to its last.
RUN += ["docs/running.md"]


def test_every_command_is_run_or_listed_with_its_reason() -> None:
    found = [each for page in pages() for each in shell_blocks(page)]
    forgotten = [each for each in found if not (each.page in RUN or reason(each.page, each.text))]
    assert forgotten == []
    used = [
        key for key in NOT_RUN if any(key[0] == each.page and key[1] in each.text for each in found)
    ]
    assert used == [*NOT_RUN]
    assert all(script_of(page) for page in RUN)


@pytest.mark.parametrize("page", ["docs/authentication.md", "docs/teams.md", "README.md"])
def test_the_commands_of_a_page_work(terminal: Terminal, page: str) -> None:
    token = terminal.sign_up()
    terminal.paste(script_of(page), ZONAL_TOKEN=token, BASE=terminal.site, ACCESS=token)


def test_the_tutorial_works(terminal: Terminal) -> None:
    program = next(each.text for each in blocks(TUTORIAL) if each.language == "python")
    (terminal.folder / "notes.py").write_text(program)
    said = terminal.paste(script_of(TUTORIAL))
    assert re.search(r"^1 Water the plants$\n^2 Dinner$", said, re.MULTILINE), said
    address = re.search(r"^  (http\S+recipe\.txt\S+)$", said, re.MULTILINE)
    assert address is not None, said
    assert requests.get(address[1], timeout=30).content == b"tomatoes, basil, salt\n"
    assert re.findall(r"^(\w+) has (\d) tables$", said, re.MULTILINE) == [
        ("sandbox", "0"),
        ("live", "1"),
    ]


def test_the_tutorials_program_asks_for_a_second_factor(terminal: Terminal) -> None:
    program = next(each.text for each in blocks(TUTORIAL) if each.language == "python")
    (terminal.folder / "notes.py").write_text(program)
    terminal.sign_up()
    holder = with_totp(User.objects.get(email="reader@example.com"))
    login = "python3 notes.py login reader@example.com"
    typed = f"{holder.wrong_code()}\n{holder.code()}\n"
    said = terminal.paste(login, stdin=typed, PASSWORD=PASSWORD)
    assert said == "Code (totp): Code (totp): "
    assert terminal.paste("python3 notes.py tables live") == "live has 0 tables\n"


def test_the_command_of_webhooks_works(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its host is nobody's; the platform is to find that it is no address of an internal network.
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
    real = socket.getaddrinfo

    def look_up(host: Any, *given: Any, **options: Any) -> Any:
        return found if host == "hooks.example.com" else real(host, *given, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    assert "whsec_" in terminal.paste(script_of(WEBHOOKS), ZONAL_TOKEN=terminal.sign_up())


def test_the_commands_of_zonal_work(terminal: Terminal) -> None:
    """Where standard input is no terminal, a statement is read from it in place of a prompt."""
    token = terminal.sign_up()
    terminal.post("/v1/sql", {"query": "CREATE TABLE items (id int, name text)"}, token)
    reader = User.objects.get(email="reader@example.com")
    cast.member(reader.organization, "bob@example.com", role="reader")
    for name, text in (
        ("schema.sql", "CREATE TABLE more (id int)"),
        ("items.csv", "id,name\n42,answer\n"),
        ("logo.png", "picture"),
    ):
        (terminal.folder / name).write_text(text)
    (terminal.folder / "rows.csv.gz").write_bytes(gzip.compress(b"7,seventh\n"))
    login = f"zonal login reader@example.com --password-stdin --url {terminal.site}"
    terminal.paste(login, stdin=f"{PASSWORD}\n")
    said = terminal.paste(script_of(CLIENTS), stdin="SELECT 1")
    assert (terminal.folder / "copy.png").read_text() == "picture"
    assert "img/logo.png" in said
    assert "zk_" in said


def test_the_commands_of_sql_work(terminal: Terminal) -> None:
    token = terminal.sign_up()
    terminal.post("/v1/sql", {"query": PREPARED_SQL}, token)
    (terminal.folder / "items.csv").write_text("id,name\n1,first\n2,second\n")
    said = terminal.paste(script_of(SQL, but=CANCELLED), ZONAL_TOKEN=token)
    assert '"row_count":2' in said
    assert '"state":"committed"' in said


def test_the_command_that_cancels_ends_a_statement_that_runs(terminal: Terminal) -> None:
    """Its count would take longer than a test may."""
    token = terminal.sign_up()
    rows = "INSERT INTO items SELECT n, 'many' FROM generate_series(100, 100000) AS n"
    terminal.post("/v1/sql", {"query": f"{PREPARED_SQL}; {rows}"}, token)
    slow, cancel = script_of(SQL, only=CANCELLED).split(" &\n")

    def refused_by_curl(command: str) -> str:
        return terminal.paste(f"{command.strip()} || test $? = 22", ZONAL_TOKEN=token)

    with ThreadPoolExecutor(1) as first_terminal:
        slow_answer = first_terminal.submit(refused_by_curl, slow)
        # As the page says: the call is repeated while no such request runs yet.
        until(lambda: "request_not_running" not in refused_by_curl(cancel))
        assert '"code":"query_cancelled"' in slow_answer.result().replace(": ", ":")


def with_access_key(terminal: Terminal) -> dict[str, str]:
    """Sign up; return the variables with a token and an access key."""
    token = terminal.sign_up()
    key = terminal.post("/v1/cache/access-keys", {"label": "reader"}, token)
    return {
        "ZONAL_TOKEN": token,
        "AWS_ACCESS_KEY_ID": key["access_key_id"],
        "AWS_SECRET_ACCESS_KEY": key["secret_access_key"],
        "AWS_DEFAULT_REGION": "us-east-1",
    }


def test_the_commands_of_the_cache_work(terminal: Terminal) -> None:
    (terminal.folder / "picture.png").write_bytes(b"picture")
    (terminal.folder / "app.js").write_text("one line again\n" * 1000)
    said = terminal.paste(script_of(CACHE), **with_access_key(terminal))
    assert "content-encoding: br" in said


def test_the_presigned_links_of_the_cache_work(terminal: Terminal) -> None:
    program = "".join(each.text for each in blocks(CACHE) if each.language == "python")
    variables = with_access_key(terminal)
    lines = terminal.paste(f"python3 - <<'END'\n{program}END", **variables).splitlines()
    upload, download, form = lines
    assert requests.put(upload, data=b"second", timeout=30).ok
    assert requests.get(download, timeout=30).content == b"second"
    url, _, fields = form.partition(" ")
    files = {"file": ("c.txt", b"third")}
    sent = requests.post(
        url, data=ast.literal_eval(fields), files=files, timeout=30, allow_redirects=False
    )
    assert sent.headers["location"].startswith("https://app.example.com/thanks?bucket=papers&")


def test_the_commands_of_api_keys_work(terminal: Terminal) -> None:
    token, wanted = terminal.sign_up(), {"name": "reader", "role": "reader"}
    key = terminal.post("/v1/api-keys", wanted, token)["key"]
    said = terminal.paste(script_of("docs/api-keys.md"), ZONAL_TOKEN=token, ZONAL_API_KEY=key)
    assert '"rows":[{"answer":42}]' in said
    assert '"key":"zk_' in said
