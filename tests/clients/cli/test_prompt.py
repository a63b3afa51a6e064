"""What is asked at a terminal: a password, a code, and statements at the prompt."""

import codecs
import hashlib
import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import cast
from tests.clients.cli.conftest import Run
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.twofactor.holder import with_totp
from tests.waiting import LIMIT_S, wait_until

pytestmark = pytest.mark.slow

# The prompt has ended: pasted text has no brackets any more.
SENT = "\x1b[?2004l"
PACKAGE = Path(__file__).resolve().parents[3] / "clients/python"


class Terminal:
    """A terminal with the command in it."""

    def __init__(self, process: "subprocess.Popen[bytes]", handle: int) -> None:
        self.process = process
        self.handle = handle
        self.shown = ""
        self._seen = 0
        # What is read may end within a character.
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def until(self, text: str) -> str:
        """Return what is shown from the last text that was waited for to this one."""
        at = self._seen
        while text not in self.shown[at:]:
            ready, _, _ = select.select([self.handle], [], [], LIMIT_S)
            assert ready, self.shown
            try:
                self.shown += self._decoder.decode(os.read(self.handle, 65_536))
            except OSError:
                raise AssertionError(self.shown) from None
        self._seen = self.shown.index(text, at) + len(text)
        return self.shown[at : self._seen]

    def press(self, keys: str) -> None:
        """Press keys without Enter."""
        os.write(self.handle, keys.encode())

    def type(self, text: str) -> None:
        """Type a line."""
        self.press(f"{text}\n")

    def answer(self) -> str:
        """Return what is shown between the end of the input and the next prompt."""
        self.until(SENT)
        return self.until("live=>")


@contextmanager
def terminal(*arguments: str, **variables: str) -> Iterator[Terminal]:
    """Run the command in a terminal of its own."""
    ours, theirs = pty.openpty()
    environ = os.environ | {"PYTHONPATH": str(PACKAGE), "TERM": "xterm", "PAGER": "cat"}
    # A terminal answers where the cursor is; this one does not.
    environ |= {"PROMPT_TOOLKIT_NO_CPR": "1"} | variables
    process = subprocess.Popen(
        [sys.executable, "-m", "zonal", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
        assert process.wait(timeout=LIMIT_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.usefixtures("folder")
def test_a_password_and_a_code_are_asked_for_and_not_shown(
    platform: Platform, front: Front
) -> None:
    holder = with_totp(cast.member(platform.home, "heidi@example.com", password=cast.PASSWORD))
    with terminal("login", "heidi@example.com", "--url", front.url) as screen:
        screen.until("Password: ")
        screen.type(cast.PASSWORD)
        screen.until("Code (totp): ")
        screen.type(holder.wrong_code())
        screen.until("Code (totp): ")
        code = holder.code()
        screen.type(code)
        screen.until("Signed in to")
    assert cast.PASSWORD not in screen.shown
    assert code not in screen.shown


def test_a_prompt_is_not_moved_to_another_environment(alice: Run) -> None:
    with terminal("sql") as screen:
        screen.until("live=>")
        assert alice("env", "use", "sandbox").status == 0
        screen.type("CREATE TABLE moved ();")
        screen.until("Another command has switched to another environment: begin again.")
        screen.until("live=>")
        screen.press("\x04")
    assert "42P01" in alice("sql", "-c", "SELECT * FROM moved").err
    assert alice("env", "use", "live").status == 0
    assert "42P01" in alice("sql", "-c", "SELECT * FROM moved").err


def test_the_prompt_runs_statements_describes_and_remembers(alice: Run, folder: Path) -> None:
    with terminal("sql") as screen:
        screen.until("live=>")
        screen.type("CREATE TABLE prompted (id int PRIMARY KEY,")
        screen.until("live->")
        screen.type("  name text DEFAULT ';');")
        screen.until("CREATE TABLE")
        screen.until("live=>")
        screen.type("SELECT 40 + 2 AS answer;")
        assert "42" in screen.until("(1 row)")
        screen.type("SELECT 1/0;")
        screen.until("22012")
        screen.type("SELEC 1;")
        screen.until("\r\nSELEC 1;\r\n^")
        screen.type("\\d prompted")
        assert "PRIMARY KEY (id)" in screen.until("prompted_pkey ON")
        screen.type("\\x")
        screen.until("One column a line: on.")
        screen.type("SELECT 1 AS one, 2 AS two;")
        assert "Row 1" in screen.until("(1 row)")
        screen.type("SELECT 'my password';")
        screen.until("(1 row)")
        screen.type("\\dn")
        screen.until("public")
        screen.type("\\d nothing")
        screen.until("There is no table")
        screen.type("\\?")
        screen.until("cancels a statement.")
        screen.type("\\q")
    history = (folder / "state/zonal/sql_history").read_text()
    assert "SELECT 40 + 2 AS answer;" in history
    assert "password" not in history
    assert (folder / "state/zonal/sql_history").stat().st_mode & 0o077 == 0


# PostgreSQL 18's manual, 4.1, and each statement that holds statements; between two an empty line.
TEXTS = r"""
SELECT 1, -- a comment; ends with its line
2;

SELECT 1 -- it's
; -- and more /* of it;

SELECT /* a /* nested; */ one; */ 1
, 2 /*/; */;

SELECT 'a;
b''; c\';

SELECT E'it\'s; ''
\\';

SELECT E'a'
-- a comment between the parts of a string;
'b\'; c';

SELECT e'a''\';
';

SELECT N'a;
', U&'\0061;
\' UESCAPE '!', B'1
';

SELECT 1 AS "a;
b""; c";

SELECT 1 AS U&"d!0061;
\" UESCAPE '!';

SELECT $$ a; '
; $x$; $$;

SELECT $x$ a; $$ ; $X$;
$x$;

SELECT $étiquette$ ;
$étiquette$;

PREPARE p AS SELECT $1::text || $$;
$$;

SELECT 1$$ ;
$$;

SELECT 1 AS a$b$, (2
);

CREATE RULE r AS ON INSERT TO ruled DO ALSO (DELETE FROM ruled WHERE i = 100;
DELETE FROM ruled WHERE i = 2;
);

CREATE FUNCTION a1(i int) RETURNS int BEGIN ATOMIC
SELECT i;
END;

create or replace function a2() returns void language sql begin/**/atomic
end;

CREATE FUNCTION a3(i int) RETURNS text BEGIN
ATOMIC
SELECT CASE WHEN i = 1 THEN 'one;'
WHEN i = 2 THEN CASE i WHEN 2 THEN 'two' END ELSE (SELECT 'many' AS atomic) END;
END;

CREATE FUNCTION a4() RETURNS int BEGIN ATOMIC
SELECT 1 AS end;
SELECT 1 end;
SELECT CASE WHEN true THEN atomic end FROM (SELECT 1 AS atomic) AS e;
SELECT e.end FROM (SELECT 1 AS end) AS e;
END; -- end;

CREATE PROCEDURE a5() BEGIN ATOMIC
DELETE FROM ruled;
INSERT INTO ruled VALUES (7);
END;

CREATE FUNCTION a6() RETURNS int LANGUAGE plpgsql AS $$ BEGIN
RETURN 1;
END; $$;

DO 'BEGIN
PERFORM 1;
END';

CREATE TABLE atomic_begin (begin int, atomic int);

SELECT begin atomic FROM atomic_begin;

SELECT 1 AS ending; SELECT
2;

BEGIN;
"""


def test_half_a_statement_waits_for_its_end(alice: Run, front: Front) -> None:
    assert (
        alice("sql", "-c", "CREATE TABLE ruled (i int); INSERT INTO ruled VALUES (2)").status == 0
    )
    with terminal("sql") as screen:
        screen.until("live=>")
        for lines in [text.split("\n") for text in TEXTS.strip().split("\n\n")]:
            front.seen.clear()
            for line in lines[:-1]:
                screen.type(line)
                screen.until("live->")
            assert front.seen == []
            screen.type(lines[-1])
            answer = screen.answer()
            assert front.seen == [("POST", "/v1/sql")], lines
            # None of them has a mistake that PostgreSQL's lexer finds, but the number before $$.
            assert ("42601" in answer) == ("1$$" in lines[0]), answer
        front.seen.clear()
        # Alt and Enter, and Ctrl-O, send what they are asked to in other programs.
        for keys in ("\x1b\r", "\x0f"):
            screen.press(f"TRUNCATE ruled{keys}")
            screen.until("not complete")
            screen.press("\x03")
            screen.until("live=>")
        assert front.seen == []
        screen.type("\\q")


def test_a_recalled_statement_is_the_one_that_was_sent(alice: Run) -> None:
    lines = ["SELECT md5(current_query()), -- the text's", "length($$a", "", "  b$$ || 'c", "d');"]
    digest = hashlib.md5("\n".join(lines).encode(), usedforsecurity=False).hexdigest()
    first, previous, literally = "\x1b<", "\x10", "\x11"
    with terminal("sql") as screen:
        screen.until("live=>")
        screen.type("SELECT 'of the beginning' AS line;")
        screen.until("(1 row)")
        screen.until("live=>")
        for line in lines[:-1]:
            screen.type(line)
            screen.until("live->")
        screen.type(lines[-1])
        assert digest in screen.until("(1 row)")
        screen.until("live=>")
        screen.type(previous)
        assert digest in screen.until("(1 row)")
        screen.until("live=>")
        screen.type(f"SELECT length('a{literally}\x01');")
        assert "2" in screen.until("(1 row)")
        screen.until("live=>")
        screen.type("\\q")
    for _time in range(2):
        with terminal("sql") as screen:
            screen.until("live=>")
            screen.type(first)
            assert "of the beginning" in screen.until("(1 row)")
            screen.until("live=>")
            screen.type(previous * 3)
            assert digest in screen.until("(1 row)")
            screen.until("live=>")
            screen.type("\\q")


def test_names_are_completed_and_described_as_sql_reads_them(alice: Run) -> None:
    made = 'CREATE TABLE completable (unmistakable int); CREATE TABLE "My.Tab" (i int)'
    assert alice("sql", "-c", made).status == 0
    with terminal("sql") as screen:
        screen.until("live=>")
        screen.press("SELECT unmis\t")
        screen.until("takable")
        screen.press(" FROM public.complet\t")
        screen.until("able")
        screen.type(";")
        screen.until("(0 rows)")
        screen.until("live=>")
        for name in ("COMPLETABLE", 'public . "completable"', "Public.Completable"):
            screen.type(f"\\d {name}")
            screen.until("takable")
            screen.until("live=>")
        for name in ('"My.Tab"', 'public."My.Tab"'):
            screen.type(f"\\d {name}")
            screen.until("table public.My.Tab")
            screen.until("live=>")
        for name in ("My.Tab", '"Completable"', '"public.completable"'):
            screen.type(f"\\d {name}")
            screen.until("There is no table")
            screen.until("live=>")
        screen.press('DROP TABLE "My.T\t')
        screen.until('ab"')
        screen.type(";")
        screen.until(f"{SENT}DROP TABLE\r\n")
        screen.until("live=>")
        screen.type("\\q")


def test_a_result_higher_than_the_terminal_goes_to_the_pager(alice: Run, folder: Path) -> None:
    kept = folder / "paged"
    with terminal("sql", PAGER=f"tee {kept}") as screen:
        screen.until("live=>")
        screen.type("SELECT 'few' AS v;")
        screen.until("(1 row)")
        screen.until("live=>")
        assert not kept.exists()
        screen.type("SELECT 'many' || n AS v FROM generate_series(1, 60) n;")
        screen.until("(60 rows)")
        screen.until("live=>")
        screen.type("\\q")
    assert "many60" in kept.read_text()


def test_an_interrupt_ends_the_statement_and_not_the_prompt(alice: Run, front: Front) -> None:
    assert (
        alice("sql", "-c", "CREATE TABLE slept (i int); INSERT INTO slept VALUES (1)").status == 0
    )
    probe = ("sql", "-c", "SELECT i FROM slept FOR UPDATE NOWAIT")
    with terminal("sql") as screen:
        screen.until("live=>")
        screen.type("SELECT 1,")
        screen.until("live->")
        screen.press("\x03")
        screen.until("live=>")
        screen.type("WITH held AS MATERIALIZED (SELECT i FROM slept FOR UPDATE)")
        screen.type("SELECT pg_sleep(600) FROM held;")
        wait_until(lambda: alice(*probe).status == 1)
        os.kill(screen.process.pid, signal.SIGINT)
        screen.until("Cancelled.")
        wait_until(lambda: alice(*probe).status == 0)
        assert any(method == "DELETE" for method, _path in front.seen)
        screen.type("SELECT 'still here';")
        screen.until("(1 row)")
        screen.type("\\q")
    assert alice("sql", "-c", "DROP TABLE slept").status == 0
