"""What the cache does when an account goes to its address's owner (settings.LIFECYCLE_HOOKS)."""

from uuid import UUID

from django.utils import timezone

from accounts.models import User
from edgecache import tasks


def on_user_stripped(user_id: UUID) -> None:
    """Queue the end of the access keys that the account's maker has, in the caller's transaction.

    Those that its owner makes from now on stay.
    """
    user = User.unscoped.only("organization_id").get(pk=user_id)  # unscoped: by its own key
    tasks.revoke_keys_of_maker.defer(
        organization_id=user.organization_id,
        user_id=str(user_id),
        until=timezone.now().isoformat(),
    )
