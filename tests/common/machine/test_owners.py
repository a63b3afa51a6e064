"""The system user of PostgreSQL when root starts it, also if users cannot be created."""

import pytest

from common.machine import owners
from common.machine.errors import ClusterError
from common.machine.owners import SystemUser, owner_of

POSTGRES = SystemUser("postgres", 101, 104)


@pytest.fixture
def read_only_etc(monkeypatch: pytest.MonkeyPatch) -> dict[str, SystemUser]:
    """Pretend to be root on a machine whose users are the ones in this dictionary."""
    users: dict[str, SystemUser] = {}
    monkeypatch.setattr(owners, "is_root", lambda: True)
    monkeypatch.setattr(owners, "_existing", users.get)
    monkeypatch.setattr(owners, "_create", lambda _name: False)
    return users


def test_an_ordinary_user_runs_postgresql_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "is_root", lambda: False)

    assert owner_of("control") is None


def test_if_users_cannot_be_created_an_existing_one_is_shared_with_a_warning(
    read_only_etc: dict[str, SystemUser], capsys: pytest.CaptureFixture[str]
) -> None:
    read_only_etc["postgres"] = POSTGRES

    assert owner_of("tenants") == POSTGRES
    assert "zonal-tenants cannot be created" in capsys.readouterr().err


@pytest.mark.usefixtures("read_only_etc")
def test_without_any_user_the_error_says_what_to_do() -> None:
    with pytest.raises(ClusterError, match="start as an ordinary user"):
        owner_of("tenants")
