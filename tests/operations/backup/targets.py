"""Empty platforms to restore into: a control database, a cluster and a data folder of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings

from tests.edgecache.databases import ROOT
from tests.operations.backup.keys import Keys


class BytesRestore:
    """An installation beside the one that the test runs on."""

    def __init__(self, folder: Path, control_url: str, cluster_url: str, keys: Keys) -> None:
        self.data_dir = folder / "restored"
        self.data_dir.mkdir()
        self.control_url = control_url
        self.keys = keys
        self.variables = {
            "ZSECRET_KEYS": ",".join(settings.SECRET_KEYS),
            "ZMFA_SECRET": settings.ACCOUNTS.mfa_keys[0],
            "DATABASE_URL": control_url,
            "ZSQL_CLUSTER_URL": cluster_url,
            "ZDATA_DIR": str(self.data_dir),
            "ZBACKUP_URL": settings.BACKUP.store.url,
            "ZBACKUP_RECIPIENTS": keys.public,
            # Where the former platform had them in its data folder.
            "ZBRAIN_STORE_URL": f"file://{folder}/objects",
        }
        (folder / "objects").mkdir()

    def start(self, *words: str, **variables: str) -> "subprocess.Popen[str]":
        """Start a management command."""
        return subprocess.Popen(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env={**os.environ, **self.variables, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, status: int = 0) -> str:
        """Run a management command; return its output."""
        running = self.start(*words)
        output, errors = running.communicate(timeout=300)
        assert running.returncode == status, errors
        return output

    def restore(self, *, status: int = 0, **variables: str) -> Any:
        """Restore; return the facts, or the error that --json prints."""
        identity = ("--identity", str(self.keys.file))
        running = self.start("restore", *identity, "--json", **variables)
        output, errors = running.communicate(timeout=300)
        assert running.returncode == status, errors
        return json.loads(output)

    def refusal(self, **variables: str) -> str:
        """Restore, and be refused; return the code."""
        return str(self.restore(status=1, **variables)["error"]["code"])

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Ask its control database."""
        return rows(self.control_url, statement, *values)


def rows(url: str, statement: str, *values: Any) -> list[Any]:
    """Ask a database."""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode(), values).fetchall()
