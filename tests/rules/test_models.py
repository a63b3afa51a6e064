"""Tenant models are read through a scope; an exception gives its reason."""

import re

import pytest
from django.apps import apps
from django.db.models import ForeignKey, Model

from common.scoping import TenantModel
from tests.packages import PACKAGES, ROOT, sources

OURS = [model for model in apps.get_models() if model.__module__.partition(".")[0] in PACKAGES]
UNSCOPED = re.compile(r"\b(unscoped\.|_base_manager|_default_manager)")
WRITTEN = [path for path in sources() if "migrations" not in path.parts]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.label)
def test_every_tenant_model_is_scoped(model: type[Model]) -> None:
    keys = {
        field.related_model
        for field in model._meta.get_fields()
        if isinstance(field, ForeignKey) and field.name in {"organization", "environment"}
    }
    if not keys:
        return
    assert issubclass(model, TenantModel)
    with pytest.raises(TypeError, match="scoped"):
        model.objects.all()
    with pytest.raises(TypeError, match="needs a scope"):
        model.scoped.all()


def test_a_use_of_unscoped_gives_its_reason() -> None:
    bare = []
    for path in WRITTEN:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if not UNSCOPED.search(line) or path.name == "scoping.py":
                continue
            near = " ".join(lines[max(0, number - 2) : number + 2])
            if "# unscoped:" not in near:
                bare.append(f"{path.relative_to(ROOT)}:{number + 1} {line.strip()}")
    assert not bare, "\n".join(bare)


def test_an_exemption_gives_its_reason() -> None:
    bare = []
    for path in (*WRITTEN, *sorted((ROOT / "tests").rglob("*.py"))):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            mark = re.search(r"# (noqa: [A-Z0-9, ]+|type: ignore\[[\w, -]+\])(.*)", line)
            is_bare = re.search(r"# (noqa|type: ignore)\s*$", line)
            if is_bare or (mark and len(mark[2].strip(" -#")) < 6):
                bare.append(f"{path.relative_to(ROOT)}:{number}")
    assert not bare, "\n".join(bare)
