"""Build the TypeScript client: types from docs/openapi.yaml, JavaScript and declarations from src.

Needs Node.js with npm. What it makes is committed, with digests of what it was made from in
built.json, so that the gate finds stale results without Node.js.
"""

import hashlib
import json
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent.parent
BUILT: Final = HERE / "built.json"
TYPES: Final = HERE / "src/schema.ts"
PYTHON: Final = HERE.parent / "python/tools/write_types.py"
# What types depend on: a changed description makes nothing stale.
KEPT: Final = frozenset(
    {
        "$ref",
        "type",
        "enum",
        "items",
        "required",
        "oneOf",
        "anyOf",
        "allOf",
        "format",
        "additionalProperties",
    }
)


def stale() -> list[str]:
    """Return what has to be built again."""
    built = json.loads(BUILT.read_text()) if BUILT.exists() else {}
    present = digests()
    return [
        f"clients/typescript/{path}"
        for path, name in (("src/schema.ts", "document"), ("dist", "sources"))
        if built.get(name) != present[name]
    ]


def digests() -> dict[str, str]:
    """Return the digests of the document's part and of the sources."""
    sources = [*sorted((HERE / "src").glob("*.ts")), HERE / "tsconfig.json"]
    text = "".join(f"{path.name}\n{path.read_text()}" for path in sources)
    return {"document": _digest(json.dumps(document())), "sources": _digest(text)}


def document() -> dict[str, Any]:
    """Return the document with the clients' answers alone, without prose."""
    tool = runpy.run_path(str(PYTHON))
    schemas = tool["schemas"]()
    parts = {name: _bare(schemas[name]) for name in sorted(tool["closure"](schemas))}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Zonal", "version": "1"},
        "paths": {},
        "components": {"schemas": parts},
    }


def _bare(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_bare(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _bare(value) for name, value in schema.items() if name in KEPT}
    if "properties" in schema:
        fields = schema["properties"].items()
        kept["properties"] = {name: _bare(value) for name, value in fields}
    return kept


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _run(*command: str) -> None:
    subprocess.run(command, cwd=HERE, check=True)  # noqa: S603 - our own commands


def main() -> int:
    """Build what is stale."""
    if not stale():
        return 0
    if shutil.which("npm") is None:
        sys.stderr.write(f"{', '.join(stale())}: to build them, install Node.js with npm.\n")
        return 1
    _run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as reduced:
        json.dump(document(), reduced)
        reduced.flush()
        _run("npx", "openapi-typescript", reduced.name, "--output", str(TYPES))
    shutil.rmtree(HERE / "dist", ignore_errors=True)
    _run("npx", "tsc", "--project", ".")
    BUILT.write_text(json.dumps(digests(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
