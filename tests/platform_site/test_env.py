"""Settings: parsed once, refused with a sentence that names the variable."""

from pathlib import Path

import pytest

from platform_site.env import Env, SettingError, is_production


def env(**variables: str) -> Env:
    return Env(variables, {"FROM_FILE": "fallback", "N": "7"})


def test_the_variable_wins_over_the_file_and_the_file_over_the_default() -> None:
    assert env(N="9").integer("N", 1, help_text="") == 9
    assert env().integer("N", 1, help_text="") == 7
    assert env().integer("M", 1, help_text="") == 1
    assert env(N="").integer("N", 1, help_text="") == 7


@pytest.mark.parametrize("value", ["x", "1.5", "", " ", "1e3", "٣", "-1", "101", "9" * 30])
def test_integers_are_whole_ascii_and_within_bounds(value: str) -> None:
    reader = Env({"N": value})
    if not value.strip():
        assert reader.integer("N", 5, help_text="", maximum=100) == 5
        return
    with pytest.raises(SettingError, match=r"zonal: N must be"):
        reader.integer("N", 5, help_text="", maximum=100)


def test_flags_take_the_usual_words_and_no_other() -> None:
    for word, value in {"true": True, "1": True, "ON": True, "no": False, "False": False}.items():
        assert env(F=word).flag("F", default=not value, help_text="") is value
    with pytest.raises(SettingError, match="F must be true or false"):
        env(F="maybe").flag("F", default=True, help_text="")


def test_short_secrets_are_refused_without_being_shown() -> None:
    with pytest.raises(SettingError, match="S must have at least 32 characters") as caught:
        env(S="hunter2").secret("S", help_text="")
    assert "hunter2" not in str(caught.value)


def test_a_secret_may_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_text("s" * 40 + "\n")
    assert env(S_FILE=str(path)).secret("S", help_text="") == "s" * 40
    with pytest.raises(SettingError, match="S_FILE cannot be read"):
        env(S_FILE=str(tmp_path / "absent")).secret("S", help_text="")


def test_a_second_name_of_a_secret_works() -> None:
    reader = env(BRAIN_SECRET="b" * 40)
    secret = reader.secret("ZCACHE_BRAIN_SECRET", help_text="", aliases=("BRAIN_SECRET",))
    assert secret == "b" * 40


def test_urls_need_a_known_scheme_and_are_not_shown() -> None:
    with pytest.raises(SettingError, match="U must be a URL starting with postgresql://") as caught:
        env(U="mysql://user:hunter2@db/x").url("U", help_text="", schemes=("postgresql",))
    assert "hunter2" not in str(caught.value)


def test_choices_name_their_options() -> None:
    with pytest.raises(SettingError, match="C must be one of a, b"):
        env(C="c").choice("C", "a", ("a", "b"), help_text="")


@pytest.mark.parametrize(
    "variables",
    [
        {"PRODUCTION": "true"},
        {"PRODUCTION": "1"},
        {"NODE_ENV": "production"},
        {"DJANGO_ENV": "Production"},
        {"DYNO": "web.1"},
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        {"VERCEL": "1"},
        {"AWS_EXECUTION_ENV": "AWS_ECS_FARGATE"},
    ],
)
def test_production_is_recognized(variables: dict[str, str]) -> None:
    assert is_production(variables)


@pytest.mark.parametrize("variables", [{}, {"PRODUCTION": "false"}, {"NODE_ENV": "development"}])
def test_a_laptop_is_not_production(variables: dict[str, str]) -> None:
    assert not is_production(variables)
