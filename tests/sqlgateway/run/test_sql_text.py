"""Texts are split where PostgreSQL splits them, in one pass."""

import pytest

from sqlgateway.run.boundaries import first_control, may_commit

MEBIBYTE = 2**20
FUNCTION = "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC {}; END"


@pytest.mark.parametrize(
    "text",
    [
        "/* a /* b */ ; */",
        "-- a ; b",
        "'it''s ;'",
        r"'a\'",
        r"E'it\'s ;'",
        "e'a' -- b\n \t'\\' ;'",
        "$$ ' ; $a$ $$",
        "$é1$ ; $$ ; $é1$",
        '"a"";"',
    ],
)
def test_a_control_after_what_belongs_together_is_found(text: str) -> None:
    assert first_control(f"SELECT 1 {text}\n; COMMIT") == 2


@pytest.mark.parametrize("text", ["/* a /* b */ ;", r"E'a\' ;", "$a$ ;"])
def test_a_control_within_what_is_open_is_none(text: str) -> None:
    assert first_control(f"SELECT 1 {text}\n; COMMIT") == 0


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT '\\'; COMMIT --'", 2),
        ("SELECT E'a' '\\'; COMMIT; --'", 2),
        ("SELECT a$b$ ; END; $b$", 2),
        ("SELECT 1$a$; END; $a$", 0),
        ('SELECT "begin"; ; /* ; */ commit', 2),
        (FUNCTION.format("SELECT CASE WHEN true THEN 1 END; SELECT 2"), 0),
        (FUNCTION.format("SELECT CASE WHEN true THEN 1 END; SELECT 2") + "; COMMIT", 2),
        ("SELECT 1 AS begin, 2, 3 AS atomic; ROLLBACK", 2),
        ("ROLLBACK WORK TO SAVEPOINT a; ROLLBACK WORK", 2),
    ],
)
def test_the_first_transaction_control_is_found(text: str, number: int) -> None:
    assert first_control(text) == number


@pytest.mark.parametrize(
    "text",
    [
        " ".join(f"$a{number}$" for number in range(MEBIBYTE // 8)),
        "/*" * (MEBIBYTE // 2),
        "E'a'\n" * (MEBIBYTE // 5),
        "E''" + "\n" * MEBIBYTE,
        "E'" + "\\'" * (MEBIBYTE // 2),
    ],
    ids=["tags", "comments", "literals", "lines", "escapes"],
)
def test_a_hostile_text_is_read_in_one_pass(text: str) -> None:
    """Each of them would take minutes if what was read in vain were read again."""
    assert first_control(f"{text} COMMIT") == 0


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("DO $$ BEGIN COMMIT; END $$", True),
        ("SELECT 1; call p()", True),
        ("DO $$ BEGIN CALL p(); END $$", True),
        ("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING; SELECT 'COMMIT'", False),
        ("DO $$ BEGIN PERFORM 1; END $$", False),
        ("SELECT '" + "DO " * (MEBIBYTE // 3) + "'", False),
    ],
    ids=["do", "call", "nested", "conflict", "none", "many"],
)
def test_a_routine_that_may_commit_is_found_in_one_pass(text: str, may: bool) -> None:
    assert may_commit(text) is may
