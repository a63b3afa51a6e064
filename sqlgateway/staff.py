"""In the admin: an organization's limits, and passwords and moves of its databases."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from django import forms
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from unfold.contrib.filters.admin import DropdownFilter

from audit import trail
from common.admin.actions import ConfirmedAction, StaffAction
from common.admin.forms import StaffForm, Values
from common.errors import Conflict
from sqlgateway.audit_tags import SqlTag
from sqlgateway.clusters import organization_limits
from sqlgateway.clusters.organization_limits import LIMITS, OwnLimit
from sqlgateway.databases import tasks
from sqlgateway.models import Cluster, Database, OrganizationLimits

WIDGET: Final = {"class": "staff-field", "inputmode": "numeric", "autocomplete": "off"}


class LimitField(forms.CharField):
    """A limit, in the format of ``setquota``; empty for the platform's default."""

    def __init__(self, limit: OwnLimit) -> None:
        super().__init__(
            label=f"{limit.label} ({limit.unit})" if limit.unit else limit.label,
            required=False,
            widget=forms.TextInput(WIDGET),
            help_text=f"{limit.help}. From {limit.lowest:,} to {limit.max_value:,}; empty is the "
            f"platform's default, {limit.default():,} ({limit.setting}).",
        )
        self.limit = limit

    def clean(self, value: Any) -> int | None:
        """Return the number, or None for the default."""
        text: str = super().clean(value)
        try:
            return self.limit.read(text) if text else None
        except ValueError as exc:
            raise forms.ValidationError(str(exc)) from None


class LimitsFields(forms.Form):
    """A field for each limit. seen: the own limits at the time when the form was opened."""

    seen = forms.CharField(max_length=1000, required=False, widget=forms.HiddenInput())

    def __init__(self, data: Any = None, *, own: organization_limits.Values) -> None:
        super().__init__(data, initial={**own, "seen": json.dumps(own)})
        for limit in LIMITS:
            self.fields[limit.name] = LimitField(limit)

    def clean_seen(self) -> organization_limits.Values:
        """Return the limits that the form showed; an empty dict if the value is not from a form.

        An empty dict differs from the limits of any organization.
        """
        try:
            seen = json.loads(self.cleaned_data["seen"])
        except (ValueError, RecursionError):
            return {}
        return seen if isinstance(seen, dict) else {}


class OwnLimitsFilter(DropdownFilter):  # type: ignore[misc]  # unfold ships no types
    """Filter organizations by whether they have limits of their own."""

    title = "limits"
    parameter_name = "own"

    def lookups(self, request: HttpRequest, model_admin: Any) -> tuple[tuple[str, str], ...]:
        """Return the choices."""
        return (("yes", "Some of its own"), ("no", "The platform's only"))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Apply the choice."""
        has_own = Q()
        for limit in LIMITS:
            has_own |= Q(quota__limits__has_key=limit.name)
        kept = {"yes": queryset.filter(has_own), "no": queryset.exclude(has_own)}
        return kept.get(self.value(), queryset)


def form_of(organization: OrganizationLimits) -> StaffForm:
    """Return the form that sets an organization's own limits."""
    own = organization_limits.own_of(getattr(organization, "quota", None))
    return StaffForm(
        "Set limits",
        partial(LimitsFields, own=own),
        partial(_describe, organization, own),
        partial(_set, organization),
    )


def exact(limit: OwnLimit, own: int | None) -> str:
    """Return the effective limit in full, and whether it is the organization's own."""
    if own is None:
        return f"{_amount(limit, limit.default())}, the platform's default"
    if own > limit.max_value:
        return f"{_amount(limit, limit.max_value)}, the platform's, which is below its own {own:,}"
    return f"{_amount(limit, own)}, its own"


def short(limit: OwnLimit, own: int | None) -> str:
    """Return the effective limit in a short form for a list."""
    number = limit.default() if own is None else min(own, limit.max_value)
    is_own = own is not None and own <= limit.max_value
    amount = filesizeformat(number) if limit.unit == "bytes" else _amount(limit, number)
    return f"{amount}, {'own' if is_own else 'default'}"


def _amount(limit: OwnLimit, number: int) -> str:
    return f"{number:,} {limit.unit}".rstrip()


def _describe(
    organization: OrganizationLimits, own: organization_limits.Values, values: Values
) -> str:
    """Describe the changes. Raises Conflict if the limits have changed since they were shown."""
    changed = organization_limits.checked(own, _given(values), seen=values["seen"])
    said = [
        f"{limit.label}: {exact(limit, values[limit.name])}; "
        f"until now {exact(limit, own[limit.name])}."
        for limit in LIMITS
        if limit.name in changed
    ]
    name = f"{organization} (organization {organization.pk})"
    return f"{name}. {' '.join(said)}" if said else f"{name} has these limits already."


def _set(organization: OrganizationLimits, confirmed: ConfirmedAction, values: Values) -> bool:
    with transaction.atomic():
        changed = organization_limits.set_own(organization.pk, _given(values), seen=values["seen"])
        if not changed:
            return False
        trail.record_staff(
            confirmed.request,
            SqlTag.ADMIN_QUOTA_SET,
            organization_id=organization.pk,
            changed=changed,
            reason=confirmed.reason,
        )
    return True


def _given(values: Values) -> organization_limits.Values:
    return {limit.name: values[limit.name] for limit in LIMITS}


def moves() -> Sequence[StaffAction]:
    """Return an action for each open cluster, if there are several."""
    clusters = list(Cluster.objects.filter(state=Cluster.State.OPEN).order_by("name"))
    if len(clusters) < 2:
        return ()
    return [
        StaffAction(
            f"move_{cluster.pk}",
            f"Move to {cluster.name}",
            f"These databases are copied to the cluster {cluster.name} in the background. Their "
            "requests wait while the copy is compared; on any error they stay where they are.",
            partial(_move, cluster),
        )
        for cluster in clusters
    ]


def _rotate(confirmed: ConfirmedAction, database: Database) -> bool:
    """Queue the rotation; False if one is queued already.

    Raises Conflict for a database that is not active.
    """
    if database.state != Database.State.ACTIVE or database.organization_id is None:
        raise Conflict(f"The database is {database.state}: only an active one gets new passwords.")
    with transaction.atomic():
        if not tasks.queue_rotation(database.pk):
            return False
        trail.record_staff(
            confirmed.request,
            SqlTag.ADMIN_DATABASE_ROTATE,
            organization_id=database.organization_id,
            database=database.pk,
            reason=confirmed.reason,
        )
    return True


ROTATE: Final = StaffAction(
    "rotate_passwords",
    "Rotate passwords",
    "The passwords of these databases' roles are replaced in the background. No request fails; "
    "sessions that somebody opened with the old ones end within minutes.",
    _rotate,
)


def _move(cluster: Cluster, confirmed: ConfirmedAction, database: Database) -> bool:
    """Queue the move; False if the database is there already, or its move is queued already.

    Raises Conflict for a database that is not active.
    """
    if database.cluster_id == cluster.pk:
        return False
    if database.state != Database.State.ACTIVE or database.organization_id is None:
        raise Conflict(f"The database is {database.state}: only an active one can be moved.")
    with transaction.atomic():
        if not tasks.queue_move(database, cluster):
            return False
        trail.record_staff(
            confirmed.request,
            SqlTag.ADMIN_DATABASE_MOVE,
            organization_id=database.organization_id,
            database=database.pk,
            cluster=cluster.name,
            reason=confirmed.reason,
        )
    return True
