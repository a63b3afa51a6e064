"""How far repeated tasks have come. The row's lock lets one process at a time go on."""

from edgecache.billing.models import Progress


def lock_progress(name: str) -> Progress:
    """Return a task's progress, locked until the transaction ends; others wait."""
    Progress.objects.bulk_create([Progress(name=name)], ignore_conflicts=True)
    return Progress.objects.select_for_update().get(pk=name)
