"""The table of sizes in docs/scaling.md is the one that ``benchmarks.sizes`` prints."""

import pytest

from benchmarks import sizes
from tests.documents.blocks import ROOT


def test_the_page_shows_what_the_script_prints(capsys: pytest.CaptureFixture[str]) -> None:
    sizes.main([])
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) > 20
    page = (ROOT / "docs/scaling.md").read_text()
    assert "".join(f"    {line}\n" for line in printed.splitlines()) in page


def test_an_option_changes_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--organizations", "10", "--environments", "100", "--objects", "1000"]
    words += ["--requests-per-second", "10"]
    sizes.main(words)
    usual = capsys.readouterr().out
    sizes.main([*words, "--core-hour", "0.08"])
    dearer = capsys.readouterr().out
    assert _money(dearer, "money: cores") == pytest.approx(2 * _money(usual, "money: cores"), abs=1)
    assert _money(dearer, "money: disk") == _money(usual, "money: disk")


def _money(table: str, name: str) -> int:
    (line,) = (line for line in table.splitlines() if line.startswith(name))
    return int(line.removeprefix(name).replace(",", ""))
