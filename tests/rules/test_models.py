"""Tenant models are read through a scope; an exception gives its reason."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.apps import apps
from django.db.models import ForeignKey, Model
from django.shortcuts import get_object_or_404

from common.scoping import (
    OutsideScope,
    TenantModel,
    across_environments,
    outside,
    unscoped,
    within_organization,
)
from environments.models import Environment
from tests.packages import PACKAGES, ROOT, sources

OURS = [model for model in apps.get_models() if model.__module__.partition(".")[0] in PACKAGES]
TENANTS = [model for model in OURS if issubclass(model, TenantModel)]
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


@pytest.mark.parametrize("model", TENANTS, ids=lambda model: model._meta.label)
def test_a_tenant_model_outside_of_a_scope_returns_no_row(model: type[TenantModel]) -> None:
    assert model._default_manager is model.objects
    with outside():
        for query in (
            model.objects.all,
            model.objects.create,
            lambda: across_environments(model),
            lambda: get_object_or_404(model),
        ):
            with pytest.raises(OutsideScope):
                query()


def test_a_scope_holds_in_its_block_alone() -> None:
    with outside():
        with within_organization(1), unscoped("a test"):
            Environment.objects.all()
        with pytest.raises(OutsideScope):
            Environment.objects.all()
        with within_organization(1), ThreadPoolExecutor() as threads:
            found = threads.submit(Environment.objects.all)
            assert isinstance(found.exception(), OutsideScope)


def test_only_the_scoping_module_goes_around_the_managers() -> None:
    bare = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in WRITTEN
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if re.search(r"\b_(base|default)_manager\b", line)
    ]
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
