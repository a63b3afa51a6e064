"""`zonal sql`: from arguments, files and the standard input, as tables, CSV and JSON."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from tests.clients.cli.conftest import Run
from tests.clients.front import Front

PACKAGE = str(Path(__file__).resolve().parents[3] / "clients/python")
ESCAPE = "SELECT E'a\\x1b[2Jb\\u202ec' AS text, E'\\u009b' AS csi"


def test_a_table_shows_data_but_never_obeys_it(alice: Run) -> None:
    shown = alice("sql", "-c", ESCAPE, "-c", "SELECT 1 AS n, NULL AS nothing, '日本' AS text")
    assert shown.status == 0
    assert shown.out == (
        "text                    csi\n"
        "────────────────────── ──────────\n"
        "E'a\\u001b[2Jb\\u202ec'   E'\\u009b'\n"
        "n   nothing   text\n"
        "── ───────── ─────\n"
        "1         ∅   日本\n"
    )
    rows = alice("sql", "--json", "-c", ESCAPE).out
    assert "\x9b" not in rows
    assert json.loads(rows) == [{"text": "a\x1b[2Jb\u202ec", "csi": "\x9b"}]


# Each value looks like no other one: expressions, and below what is shown of them.
DIFFERENT = r"""
'true'::jsonb | true | 'null'::jsonb | NULL | '∅' | '' | ' ' | 'a' | 'a ' | E'a\n' | E'\u001b'
'\x1b' | '\u001b' | $$E'\u001b'$$ | 'E''' | E'a\x7f' | 'a\u007f' | 'é'
ARRAY['a, b'] | ARRAY['a', 'b'] | ARRAY['a', NULL] | ARRAY['a', 'null'] | '{}'::text[]
ARRAY[true] | ARRAY['t'] | '{a,b}' | ARRAY['null']::jsonb[] | ARRAY[NULL]::jsonb[]
'"x"'::jsonb | 'x' | 1.10 | 1.1 | '1e400'::json | '1e401'::json | '1e2'::json | '100'::jsonb
'{"a":1, "a":2}'::json | '{"a":2}'::json | 9007199254740993 | 9007199254740992
'-0'::float8 | 0::float8 | 'f' || 'alse' | false
"""
SHOWN = r"""
true | t | null | ∅ | E'∅' |  | E' ' | a | E'a ' | E'a\n' | E'\u001b'
\x1b | \u001b | E'E\'\\u001b\'' | E'E\'' | E'a\u007f' | a\u007f | é
["a, b"] | ["a", "b"] | ["a", null] | ["a", "null"] | []
[true] | ["t"] | {a,b} | ["null"] | [null]
"x" | x | 1.10 | 1.1 | 1e400 | 1e401 | 1e2 | 100
{"a":1, "a":2} | {"a":2} | 9007199254740993 | 9007199254740992
-0.0 | 0 | false | f
"""


def test_different_values_look_different_in_a_table(alice: Run) -> None:
    values = re.split(r" \| |\n", DIFFERENT.strip())
    expected = re.split(r" \| |\n", SHOWN.strip())
    assert len(set(expected)) == len(values)
    outcome = alice("sql", "-c", f"SELECT {', '.join(values)}")
    assert outcome.status == 0, outcome.err
    _names, rules, row, *_ = outcome.out.split("\n")
    cells = [row[found.start() : found.end()] for found in re.finditer("─+", rules)]
    assert [cell.strip() for cell in cells] == expected
    digits = f"1{'0' * 5000}"
    assert digits in alice("sql", "-c", f"SELECT '{digits}'::json AS v").out


def test_json_is_what_the_api_sent(alice: Run) -> None:
    texts = [f"1{'0' * 5000}", "1.10", "1e400", '{"b":1, "a":2, "a":[{"b":"]"}]}', "[]", "null"]
    columns = ", ".join(f"'{text}'::json AS c{at}" for at, text in enumerate(texts))
    rows = alice("sql", "--json", "-c", f"""SELECT {columns}, '"' AS "a""b", E'é\\u202e' AS e""")
    members = [f'"c{at}": {text}' for at, text in enumerate(texts)]
    expected = ", ".join([*members, r'"a\"b": "\""', r'"e": "é\u202e"'])
    assert rows.out == f"[{{{expected}}}]\n"
    assert alice("sql", "--json", "-c", "SELECT FROM generate_series(1, 2)").out == "[{},\n{}]\n"


def test_an_answer_that_cannot_be_shown_is_not_no_answer(alice: Run, front: Front) -> None:
    front.answer(200, b'{"columns": [], "rows": [], "row_count": 1%b}' % (b"0" * 5000))
    outcome = alice("sql", "-c", "INSERT INTO t VALUES (1)")
    assert outcome.status == 5
    assert "was carried out: do not repeat it" in outcome.err
    front.seen.clear()
    assert alice("sql", "-c", "SELECT '\udcff'").status == 2
    assert alice("sql", "-c", "SELECT $1", "-p", "\udcff").status == 2
    assert front.seen == []


def test_texts_come_from_files_and_the_input(alice: Run, tmp_path: Path) -> None:
    file = tmp_path / "made.sql"
    file.write_text("CREATE TABLE from_file (n int); INSERT INTO from_file VALUES (1), (2);")
    made = alice("sql", "-f", str(file))
    assert (made.status, made.err.split("\n")[:2]) == (0, ["CREATE TABLE", "INSERT 2"])
    assert alice("sql", "--csv", stdin="SELECT n FROM from_file").out == "n\n1\n2\n"
    one = alice("sql", "--json", "-c", "SELECT n FROM from_file WHERE n = $1", "-p", "2")
    assert json.loads(one.out) == [{"n": 2}]
    assert json.loads(alice("sql", "--json", "-c", "DELETE FROM from_file").out) == []
    assert alice("sql", "-f", str(tmp_path / "missing.sql")).status == 2
    assert alice("sql", "-c", "SELECT 1", "-f", "-").status == 2


def test_an_error_shows_its_place(alice: Run, tmp_path: Path) -> None:
    outcome = alice("sql", "-c", "SELECT 1,\n  nothing FROM missing")
    assert outcome.status == 1
    assert '42P01: relation "missing" does not exist\n  nothing FROM missing\n' in outcome.err
    assert f"\n{' ' * 15}^\n" in outcome.err
    assert re.search(r"\nRequest \S+\n", outcome.err)
    cut = alice("sql", "-c", "SELECT 1", "-c", "SELECT 1/0", "-c", "CREATE TABLE unreached ()")
    assert cut.status == 1
    assert "42P01" in alice("sql", "-c", "SELECT * FROM unreached").err
    text = "select 1;\r\nselect '日\u202e',\r\n  '日本' selec 3;\r\n"
    file = tmp_path / "long.sql"
    file.write_bytes(text.encode())
    mark = "\n  '日本' selec 3;\n               ^\n"
    for arguments, stdin, name in (
        (("-f", str(file)), "", str(file)),
        (("--json", "-f", str(file)), "", ""),
        (("-f", "-"), text, "The standard input"),
        ((), text, "The standard input"),
    ):
        outcome = alice("sql", *arguments, stdin=stdin)
        assert outcome.status == 1
        if name:
            assert f'zonal: {name}, line 3: 42601: syntax error at or near "3"' in outcome.err
            assert mark in outcome.err


def test_a_stream_that_was_cut_is_no_success(alice: Run, front: Front) -> None:
    query = "SELECT repeat('x', 100) FROM generate_series(1, 5000)"
    for option in ("--csv", "--json"):
        front.cut(after_bytes=20_000)
        assert alice("sql", option, "-c", query).status == 3


def test_a_reader_that_has_enough_is_no_failure(alice: Run) -> None:
    query = "SELECT n FROM generate_series(1, 200000) n"
    command = (
        f"{sys.executable} -m zonal sql --csv -c '{query}' | head -n 2; echo ${{PIPESTATUS[0]}}"
    )
    path = {"PYTHONPATH": PACKAGE}
    done = subprocess.run(
        ["bash", "-c", command], env=os.environ | path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("n\n1\n0\n", "")


def test_texts_are_read_as_other_tools_write_them(alice: Run, tmp_path: Path) -> None:
    query = "SELECT 'é' AS v"
    file = tmp_path / "marked.sql"
    for content in (f"\ufeff{query}".encode(), f"\ufeff{query}".encode("utf-16-le")):
        file.write_bytes(content)
        for outcome in (
            alice("sql", "--csv", "-f", str(file)),
            alice("sql", "--csv", stdin=content),
        ):
            assert (outcome.status, outcome.out) == (0, "v\né\n")
    assert alice("sql", "--csv", "-c", f"\ufeff{query}").out == "v\né\n"
    assert "not UTF-8" in alice("sql", stdin=b"SELECT '\xff'").err
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=lambda: pipe.write_text(query))
    writer.start()
    assert alice("sql", "--csv", "-f", str(pipe)).out == "v\né\n"
    writer.join()


def test_a_dump_with_copy_says_what_to_use(alice: Run) -> None:
    dump = "SELECT 1;\n\nCOPY public.items (id, name) FROM stdin;\n1\tfirst\n\\.\n"
    refused = alice("sql", stdin=dump)
    assert refused.status == 1
    assert "copy_not_supported" in refused.err
    assert "pg_dump --inserts" in refused.err
    connected = alice("sql", stdin="\\restrict x\nSELECT 1;")
    assert "commands of psql" in connected.err
    assert "copy" not in alice("sql", stdin=f"SELEC 1; {dump}").err


def test_notices_are_shown_beside_the_result(alice: Run) -> None:
    raised = (
        "DO $$ BEGIN RAISE NOTICE 'one' USING DETAIL = 'two'; RAISE WARNING E'a\\x1b[2J'; END $$"
    )
    shown = alice("sql", "-c", raised)
    assert "NOTICE: one\nDetail: two\nWARNING: a\\x1b[2J\n" in shown.err
    assert "NOTICE: one\nDetail: two\n" in alice("sql", "--json", "-c", raised).err


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.usefixtures("alice")
def test_a_terminal_with_another_code_page_shows_everything(encoding: str) -> None:
    def run(*arguments: str) -> str:
        path = {"PYTHONPATH": PACKAGE, "PYTHONIOENCODING": encoding}
        command = [sys.executable, "-m", "zonal", *arguments]
        done = subprocess.run(command, env=os.environ | path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode(encoding)

    query = r"SELECT NULL AS n, '∅' AS a, '\u2205' AS b, '日🔥' AS c, '(null)' AS d, 'x' AS é"
    names, rules, row = run("sql", "-c", query).splitlines()
    assert names.split()[-1] == ("é" if encoding == "cp1252" else r"\xe9")
    assert set(rules) == {"-", " "}
    cells = [row[found.start() : found.end()].strip() for found in re.finditer("-+", rules)]
    expected = ["(null)", r"E'\u2205'", r"\u2205", r"E'\u65e5\ud83d\udd25'", "E'(null)'", "x"]
    assert cells == expected
    (found,) = json.loads(run("sql", "--json", "-c", query))
    assert (found["c"], found["é"], found["n"]) == ("日🔥", "x", None)
    assert "live" in run("env", "list")
