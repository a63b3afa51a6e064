"""Write zonal/types.py from docs/openapi.yaml: a frozen dataclass for each answer."""

import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

import yaml

HERE: Final = Path(__file__).resolve().parent.parent
DOCUMENT: Final = HERE.parent.parent / "docs/openapi.yaml"
TARGET: Final = HERE / "zonal/types.py"
# What the client's methods return; what these refer to follows by itself.
ANSWERS: Final = (
    "TokenPair",
    "LoginAnswer",
    "TerminalStarted",
    "Challenge",
    "Whoami",
    "Permissions",
    "SqlAnswer",
    "Usage",
    "Schema",
    "Transaction",
    "Import",
    "Environment",
    "EnvironmentDetail",
    "Member",
    "ChangedMember",
    "RemovedMember",
    "Invitation",
    "Bucket",
    "ListedObject",
    "Object",
    "Version",
    "VersionId",
    "DownloadUrl",
    "SignedLink",
    "UploadForm",
    "UploadUrls",
    "AccessKey",
    "NewAccessKey",
    "ApiKey",
    "NewApiKey",
    "CacheStatus",
    "CacheMetrics",
    "Purge",
    "OrganizationUsage",
)
# Names that Python has for something else.
RENAMED: Final = {"Version": "ObjectVersion", "Warning": "SignInWarning"}
SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
FORMATS: Final = {"date-time": "datetime", "date": "date"}
# Left out of what a dataclass prints: it ends in logs.
SECRET: Final = re.compile(r"token$|secret|password|^urls?$|^query$|^key$|^fields$")
HEAD: Final = '''"""The API's answers; written by `make clients` from docs/openapi.yaml.

A later release may add fields: they are ignored. Fields that an answer may lack are None then.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, Optional

'''


def written(schemas: dict[str, Any]) -> str:
    """Return the module's text."""
    order = closure(schemas)
    listed = "\n".join(f'    "{_class(name)}",' for name in sorted(order, key=_class))
    classes = "\n\n".join(_dataclass(name, schemas[name]) for name in order)
    return _formatted(f"{HEAD}__all__ = [\n{listed}\n]\n\n\n{classes}")


def _formatted(text: str) -> str:
    ruff = str(Path(sys.executable).with_name("ruff"))
    return subprocess.run(  # noqa: S603 - our own text
        [ruff, "format", "--quiet", "--stdin-filename", str(TARGET), "-"],
        input=text,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def closure(schemas: dict[str, Any]) -> list[str]:
    """Return the names of the answers and of all that they refer to, these first."""
    order: list[str] = []
    for name in ANSWERS:
        _visit(name, schemas, order)
    return order


def _class(name: str) -> str:
    return RENAMED.get(name, name)


def _visit(name: str, schemas: dict[str, Any], order: list[str]) -> None:
    """Add a schema after all that it refers to."""
    if name in order:
        return
    for referred in re.findall(r"'#/components/schemas/(\w+)'", str(schemas[name])):
        _visit(referred, schemas, order)
    order.append(name)


def _dataclass(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    first = str(schema.get("description") or "An answer of the API.").partition("\n\n")[0]
    text = textwrap.fill(" ".join(first.split()), 93, subsequent_indent="    ")
    lines = ["@dataclass(frozen=True)", f"class {_class(name)}:", f'    """{text}"""', ""]
    # Fields without a default come first.
    fields = sorted(schema["properties"].items(), key=lambda item: item[0] not in required)
    for key, value in fields:
        lines.extend(_field(key, value, is_required=key in required))
    return "\n".join(lines) + "\n"


def _field(key: str, schema: dict[str, Any], *, is_required: bool) -> list[str]:
    if not key.isidentifier() or keyword.iskeyword(key):
        raise ValueError(f"{key!r} cannot be a field's name.")
    kind = _kind(schema)
    if not is_required and kind != "Any" and not kind.startswith("Optional["):
        kind = f"Optional[{kind}]"
    options = ([] if is_required else ["default=None"]) + (
        ["repr=False"] if SECRET.search(key) else []
    )
    ending = f" = field({', '.join(options)})" if options[-1:] == ["repr=False"] else ""
    ending = ending or ("" if is_required else " = None")
    comment = " ".join(str(schema.get("description", "")).split())
    noted = [] if not comment or comment.startswith("*") else textwrap.wrap(comment, 94)
    return [*(f"    # {line}" for line in noted), f"    {key}: {kind}{ending}"]


def _kind(schema: dict[str, Any]) -> str:
    """Return a schema's annotation."""
    if "$ref" in schema:
        return _class(str(schema["$ref"]).rpartition("/")[2])
    if "allOf" in schema:
        return _kind(schema["allOf"][0])
    alternatives = schema.get("oneOf") or schema.get("anyOf") or []
    if {"type": "null"} in alternatives and len(alternatives) == 2:
        (one,) = (each for each in alternatives if each != {"type": "null"})
        return f"Optional[{_kind(one)}]"
    declared = schema.get("type")
    if isinstance(declared, list):
        (one,) = (each for each in declared if each != "null")
        return f"Optional[{_kind({**schema, 'type': one})}]"
    if "enum" in schema:
        values = ", ".join(f'"{value}"' for value in schema["enum"] if value is not None)
        return f"Literal[{values}]"
    if declared == "array":
        return f"list[{_kind(schema['items'])}]"
    if declared == "object":
        return f"dict[str, {_kind(schema.get('additionalProperties') or {})}]"
    if "format" in schema and schema["format"] in FORMATS:
        return FORMATS[schema["format"]]
    return SCALARS.get(str(declared), "Any")


def schemas() -> Any:
    """Return the document's schemas."""
    with DOCUMENT.open() as document:
        # Ten times as fast as safe_load.
        return yaml.load(document, yaml.CSafeLoader)["components"]["schemas"]


def main() -> int:
    """Write the module."""
    TARGET.write_text(written(schemas()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
