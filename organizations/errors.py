"""Errors of requests about an organization, its members and its invitations."""

from common.errors import (
    Conflict,
    Gone,
    InvalidRequest,
    NotFound,
    TooManyRequests,
    Unavailable,
)


class NameMismatch(InvalidRequest):
    """The name that was typed is not the organization's."""

    code = "name_mismatch"
    title = "Type the organization's name as it is shown."


class DeletionBlocked(Conflict):
    """Something has to be done first: ``detail`` says what."""

    code = "deletion_blocked"
    title = "The organization cannot be deleted yet."


class DeletionRequested(Conflict):
    """The deletion was requested before; it has to be cancelled first."""

    code = "deletion_requested"
    title = "The deletion was requested already."


class DeletionNotFound(NotFound):
    """No deletion was requested, or it was cancelled."""

    code = "deletion_not_found"
    title = "No deletion was requested."


class DeletionBegan(Conflict):
    """The delay is over, and the data is being deleted."""

    code = "deletion_began"
    title = "The deletion has begun and cannot be cancelled."


class RequestedTooOften(TooManyRequests):
    """Too many such requests today; each of them mails every admin."""

    code = "requested_too_often"
    title = "This was requested too often today."


class ExportNotFound(NotFound):
    """No export of the caller's organization has this id."""

    code = "export_not_found"
    title = "There is no such export."


class ExportUnderWay(Conflict):
    """An export of the organization is being written; there is one at a time."""

    code = "export_under_way"
    title = "An export is in progress."


class TooManyExports(Conflict):
    """An organization keeps two exports at a time."""

    code = "too_many_exports"
    title = "The organization has as many exports as it may have."


class ExportGone(Gone):
    """The export is not complete, or its file has expired."""

    code = "export_gone"
    title = "This export has no archive to download."


class ExportsFull(Unavailable):
    """The exports of all organizations have used up their disk space."""

    code = "exports_full"
    title = "There is no space for another export at the moment."


class MemberNotFound(NotFound):
    """The organization has no member with this id."""

    code = "member_not_found"
    title = "There is no such member."


class LastAdmin(Conflict):
    """The organization's last active admin cannot be removed, demoted or disabled."""

    code = "last_admin"
    title = "An organization needs an admin."


class InvitationNotFound(NotFound):
    """The organization has no open invitation with this id."""

    code = "invitation_not_found"
    title = "There is no such invitation."


class InvitationGone(Gone):
    """Unknown, expired, accepted, revoked or replaced; the response does not say which."""

    code = "invitation_gone"
    title = "This invitation can no longer be accepted."


class InvitingTooOften(TooManyRequests):
    """The organization invited too many addresses today (unverified: ten), or one too often."""

    code = "inviting_too_often"
    title = "Too many invitations today."


class AlreadyMember(Conflict):
    """The address is a present member's, who needs and can accept no invitation."""

    code = "already_member"
    title = "This person is a member already."


class TooManyInvitations(Conflict):
    """The organization has too many open invitations."""

    code = "too_many_invitations"
    title = "Too many invitations are open."
