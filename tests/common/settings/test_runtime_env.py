"""runtime.env: private, kept, and overridden by the environment."""

import base64
import stat
from pathlib import Path

import pytest

from common.settings.runtime_env import (
    FILE_NAME,
    complete_secrets,
    load_runtime_env,
    save_runtime_env,
)


def test_a_folder_without_the_file_gives_nothing(tmp_path: Path) -> None:
    assert load_runtime_env(tmp_path) == {}
    assert load_runtime_env(tmp_path / "absent") == {}


def test_saved_values_are_loaded_and_private(tmp_path: Path) -> None:
    values = {"DATABASE_URL": "postgresql://a:b=c@/d?host=%2Fe&port=1", "ZJWT_SECRET": "x" * 40}

    save_runtime_env(tmp_path, values)

    assert load_runtime_env(tmp_path) == values
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_value_of_two_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ZJWT_SECRET"):
        save_runtime_env(tmp_path, {"ZJWT_SECRET": "one\nPRODUCTION=false"})


def test_secrets_are_created_once_and_kept() -> None:
    first = complete_secrets({"ZJWT_SECRET": "kept"}, {})
    second = complete_secrets(first, {})

    assert second == first
    assert first["ZJWT_SECRET"] == "kept"
    assert len({value for value in first.values() if len(value) >= 32}) == len(first) - 1


def test_the_key_for_secrets_at_rest_is_a_fernet_key() -> None:
    assert len(base64.urlsafe_b64decode(complete_secrets({}, {})["ZSECRET_KEYS"])) == 32


@pytest.mark.parametrize("name", ["ZJWT_SECRET", "ZJWT_SECRET_FILE"])
def test_settings_of_the_environment_are_not_written(name: str) -> None:
    assert "ZJWT_SECRET" not in complete_secrets({"ZJWT_SECRET": "old"}, {name: "given"})


def test_an_empty_variable_counts_as_unset() -> None:
    assert "ZJWT_SECRET" in complete_secrets({}, {"ZJWT_SECRET": " "})


def test_the_brains_secret_has_an_alias() -> None:
    assert "ZCACHE_BRAIN_SECRET" in complete_secrets({}, {})
    for name in ("BRAIN_SECRET", "BRAIN_SECRET_FILE", "ZCACHE_BRAIN_SECRET"):
        assert "ZCACHE_BRAIN_SECRET" not in complete_secrets({}, {name: "given"})
