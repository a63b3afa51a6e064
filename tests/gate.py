"""The part of the gate that needs Django: ``python -m tests.gate`` under the throw-away clusters.

Deployment checks with production's settings, no missing migration, documents as the code has them.
"""

import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.fernet import Fernet

ROOT = Path(__file__).resolve().parent.parent
CLIENTS = ROOT / "clients"
DOCUMENTS = (
    "settings.md",
    "errors.md",
    "audit.md",
    "commands.md",
    "cli.md",
    "permissions.md",
    "openapi.yaml",
)


def manage(*arguments: str, **variables: str) -> int:
    """Run one of Zonal's commands; return its exit status."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    return subprocess.run(command, check=False, env=os.environ | variables).returncode


def production() -> dict[str, str]:
    """Return the settings of a production installation."""
    names = (
        "SECRET_KEY",
        "ZJWT_SECRET",
        "ZJWT_REFRESH_SECRET",
        "ZMFA_SECRET",
        "ZCACHE_BRAIN_SECRET",
    )
    return {name: f"{name}-{'x' * 60}" for name in names} | {
        "PRODUCTION": "true",
        "ZSECRET_KEYS": Fernet.generate_key().decode(),
        "ZALLOWED_HOSTS": "zonal.example.com",
        "ZPUBLIC_URL": "https://zonal.example.com",
        "ZMAIL_URL": "smtp://mail.example.com",
        "ZTRUSTED_PROXIES": "127.0.0.0/8",
        "ZMAIL_FROM": "Zonal <zonal@example.com>",
        "ZAUTH_DEV_SECRET": "",
    }


def stale_documents() -> list[str]:
    """Return the documents that `manage.py writedocs` would change."""
    with tempfile.TemporaryDirectory() as folder:
        if manage("writedocs", "--to", folder) != 0:
            return list(DOCUMENTS)
        return [
            name
            for name in DOCUMENTS
            if Path(folder, name).read_text() != (ROOT / "docs" / name).read_text()
        ]


def stale_clients() -> list[str]:
    """Return the modules of clients that `make clients` would change."""
    types = runpy.run_path(str(CLIENTS / "python/tools/write_types.py"))
    sync = runpy.run_path(str(CLIENTS / "python/tools/write_sync.py"))
    texts = {types["TARGET"]: types["written"](types["schemas"]())} | {
        CLIENTS / "python/zonal/_sync" / name: text for name, text in sync["modules"]().items()
    }
    modules = [
        str(path.relative_to(ROOT)) for path, text in texts.items() if path.read_text() != text
    ]
    stale: list[str] = runpy.run_path(str(CLIENTS / "typescript/tools/build.py"))["stale"]()
    return modules + stale


def main() -> int:
    """Run all checks; return 0 if all pass."""
    failed = 0
    failed += manage("check", "--deploy", "--fail-level", "WARNING", **production())
    failed += manage("makemigrations", "--check", "--dry-run")
    for name in stale_documents():
        sys.stderr.write(f"docs/{name} is stale: run `manage.py writedocs`.\n")
        failed += 1
    for name in stale_clients():
        sys.stderr.write(f"{name} is stale: run `make clients`.\n")
        failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
