"""Settings: parsed once, refused with a sentence that names the variable."""

from pathlib import Path

import pytest

from common.settings.env import Env, SettingError
from common.settings.table import Choice, Flag, Integer, Secret, SettingRow, Url


def value(row: SettingRow, **variables: str) -> object:
    """Read a row."""
    return row.read(Env(variables, {"FROM_FILE": "fallback", "N": "7"}))


def test_the_variable_precedes_the_file_and_the_file_the_default() -> None:
    assert value(Integer("N", "", default=1), N="9") == 9
    assert value(Integer("N", "", default=1)) == 7
    assert value(Integer("M", "", default=1)) == 1
    assert value(Integer("N", "", default=1), N="") == 7
    assert value(Integer("M", "", default=2, scale=1024)) == 2048
    assert value(Integer("M", "", default=2, scale=1024), M="3") == 3072


@pytest.mark.parametrize("text", ["x", "1.5", "", " ", "1e3", "٣", "-1", "101", "9" * 30])
def test_integers_are_whole_ascii_and_within_bounds(text: str) -> None:
    row = Integer("N", "", default=5, maximum=100)
    if not text.strip():
        assert row.read(Env({"N": text})) == 5
        return
    with pytest.raises(SettingError, match=r"zonal: N must be"):
        row.read(Env({"N": text}))


def test_flags_take_the_usual_words_and_no_other() -> None:
    for word, expected in {
        "true": True,
        "1": True,
        "ON": True,
        "no": False,
        "False": False,
    }.items():
        assert value(Flag("F", "", default=not expected), F=word) is expected
    with pytest.raises(SettingError, match="F must be true or false"):
        value(Flag("F", "", default=True), F="maybe")


def test_short_secrets_are_refused_without_being_shown() -> None:
    with pytest.raises(SettingError, match="S must have at least 32 characters") as caught:
        value(Secret("S", ""), S="hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("s" * 40 + "\n")
    assert value(Secret("S", ""), S_FILE=str(path)) == "s" * 40
    with pytest.raises(SettingError, match="S_FILE cannot be read"):
        value(Secret("S", ""), S_FILE=str(tmp_path / "absent"))


def test_an_alias_of_a_secret_works() -> None:
    row = Secret("ZCACHE_BRAIN_SECRET", "", aliases=("BRAIN_SECRET",))
    assert value(row, BRAIN_SECRET="b" * 40) == "b" * 40


def test_urls_need_a_known_scheme_and_are_not_shown() -> None:
    with pytest.raises(SettingError, match="U must be a URL starting with postgresql://") as caught:
        value(Url("U", "", schemes=("postgresql",)), U="mysql://user:hunter2@db/x")
    assert "hunter2" not in str(caught.value)


def test_choices_name_their_options() -> None:
    with pytest.raises(SettingError, match="C must be one of a, b"):
        value(Choice("C", "", default="a", options=("a", "b")), C="c")
