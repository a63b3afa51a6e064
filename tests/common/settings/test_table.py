"""Settings: parsed once, refused with a sentence that names the variable."""

from dataclasses import Field, dataclass
from pathlib import Path

import pytest

from common.settings.env import Env, SettingError
from common.settings.table import (
    ROW,
    SettingRow,
    choice,
    flag,
    integer,
    load,
    secret,
    secret_list,
    text,
    url,
)


def value(made: Field[object], **variables: str) -> object:
    """Read the row of a field."""
    row: SettingRow = made.metadata[ROW]
    return row.read(Env(variables, {"FROM_FILE": "fallback", "N": "7"}))


def test_the_variable_precedes_the_file_and_the_file_the_default() -> None:
    assert value(integer("N", "", default=1), N="9") == 9
    assert value(integer("N", "", default=1)) == 7
    assert value(integer("M", "", default=1)) == 1
    assert value(integer("N", "", default=1), N="") == 7
    assert value(integer("M", "", default=2, scale=1024)) == 2048
    assert value(integer("M", "", default=2, scale=1024), M="3") == 3072


@pytest.mark.parametrize("given", ["x", "1.5", "", " ", "1e3", "٣", "-1", "101", "9" * 30])
def test_integers_are_whole_ascii_and_within_bounds(given: str) -> None:
    made = integer("M", "", default=5, maximum=100)
    if not given.strip():
        assert value(made, M=given) == 5
        return
    with pytest.raises(SettingError, match=r"zonal: M must be"):
        value(made, M=given)


def test_flags_take_the_usual_words_and_no_other() -> None:
    for word, expected in {
        "true": True,
        "1": True,
        "ON": True,
        "no": False,
        "False": False,
    }.items():
        assert value(flag("F", "", default=not expected), F=word) is expected
    with pytest.raises(SettingError, match="F must be true or false"):
        value(flag("F", "", default=True), F="maybe")


def test_short_secrets_are_refused_without_being_shown() -> None:
    with pytest.raises(SettingError, match="S must have at least 32 characters") as caught:
        value(secret("S", ""), S="hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("s" * 40 + "\n")
    assert value(secret("S", ""), S_FILE=str(path)) == "s" * 40
    with pytest.raises(SettingError, match="S_FILE cannot be read"):
        value(secret("S", ""), S_FILE=str(tmp_path / "absent"))


def test_an_alias_of_a_secret_works() -> None:
    row = secret_list("ZCACHE_BRAIN_SECRET", "", aliases=("BRAIN_SECRET",))
    assert value(row, BRAIN_SECRET="b" * 40) == ("b" * 40,)


def test_urls_need_a_known_scheme_and_are_not_shown() -> None:
    with pytest.raises(SettingError, match="U must be a URL starting with postgresql://") as caught:
        value(url("U", "", schemes=("postgresql",)), U="mysql://user:hunter2@db/x")
    assert "hunter2" not in str(caught.value)


def test_choices_name_their_options() -> None:
    with pytest.raises(SettingError, match="C must be one of a, b"):
        value(choice("C", "", default="a", options=("a", "b")), C="c")


def test_a_table_has_the_defaults_without_an_environment_and_does_not_show_its_secrets() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Table:
        limit_bytes: int = integer("L", "", default=2, scale=1024)
        title: str = text("T", "", default="zonal", parse=str.upper)
        key: str = secret("S", "")

    assert (Table().limit_bytes, Table().title) == (2048, "ZONAL")
    assert "s" * 40 not in repr(load(Table, Env({"S": "s" * 40})))
