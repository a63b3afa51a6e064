"""A platform with one of every kind, its keys, and a store for backups."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import connection
from pytest_django.fixtures import Settings

from edgecache.brain.conf.stores import StoreSettings
from environments.models import Organization
from tests.operations.backup.fill import fill
from tests.operations.backup.keys import Keys
from tests.sqlgateway.conftest import _take_back


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Return the keys of the operator."""
    return Keys(tmp_path)


@pytest.fixture
def store(tmp_path: Path, keys: Keys, settings: Settings) -> Path:
    """Return the folder that backups go to."""
    folder = tmp_path / "store"
    folder.mkdir()
    settings.BACKUP = replace(
        settings.BACKUP, store=StoreSettings(url=f"file://{folder}"), recipients=(keys.public,)
    )
    settings.DATA_DIR = tmp_path / "data"
    settings.BRAIN = replace(settings.BRAIN, data_dir=tmp_path / "data" / "brain")
    return folder


@pytest.fixture
def home(store: Path, transactional_db: None) -> Iterator[Organization]:
    """Return Alice's organization, with one of every kind."""
    yield fill()
    _take_back()
    # Django empties the tables of its own models alone.
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE procrastinate_jobs, procrastinate_workers, procrastinate_periodic_defers"
            " CASCADE"
        )
