"""`zonal sql`: from arguments, files and the standard input, as tables, CSV and JSON."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.clients.cli.conftest import Run
from tests.clients.front import Front

ESCAPE = "SELECT E'a\\x1b[2Jb\\u202ec' AS text, E'\\u009b' AS csi"


def test_a_table_shows_data_but_never_obeys_it(alice: Run) -> None:
    shown = alice("sql", "-c", ESCAPE, "-c", "SELECT 1 AS n, NULL AS nothing, '日本' AS text")
    assert shown.status == 0
    assert shown.out == (
        "text              csi\n"
        "────────────────  ────\n"
        "a\\x1b[2Jb\\u202ec  \\x9b\n"
        "n  nothing  text\n"
        "─  ───────  ────\n"
        "1        ∅  日本\n"
    )
    rows = alice("sql", "--json", "-c", ESCAPE).out
    assert "\x9b" not in rows
    assert json.loads(rows) == [{"text": "a\x1b[2Jb\u202ec", "csi": "\x9b"}]


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


def test_an_error_shows_its_place(alice: Run) -> None:
    outcome = alice("sql", "-c", "SELECT 1,\n  nothing FROM missing")
    assert outcome.status == 1
    assert '42P01: relation "missing" does not exist\n  nothing FROM missing\n' in outcome.err
    assert f"\n{' ' * 15}^\n" in outcome.err
    cut = alice("sql", "-c", "SELECT 1", "-c", "SELECT 1/0", "-c", "CREATE TABLE unreached ()")
    assert cut.status == 1
    assert "42P01" in alice("sql", "-c", "SELECT * FROM unreached").err


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
    path = {"PYTHONPATH": str(Path(__file__).resolve().parents[3] / "clients/python")}
    done = subprocess.run(
        ["bash", "-c", command], env=os.environ | path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("n\n1\n0\n", "")
