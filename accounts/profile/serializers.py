"""The caller's own password and e-mail in JSON; times in Unix seconds."""

from typing import Any, Final

from rest_framework import serializers

from accounts.mailed_secrets import MAX_TOKEN_CHARS
from accounts.profile.mailbox import State
from accounts.serializers import PasswordField
from common.api.views import StrictSerializer
from common.emails import AddressField

MAX_CODE_CHARS: Final = 64


class PasswordStateSerializer(serializers.Serializer[Any]):
    """Whether the account has a password; it may use other sign-in methods only."""

    has_password = serializers.BooleanField()


class PasswordChangeSerializer(StrictSerializer):
    """A change of password; an account without a password omits the present one."""

    current_password = PasswordField(required=False, default="")
    password = PasswordField()
    end_other_sessions = serializers.BooleanField(required=False, default=True)


class EmailSerializer(serializers.Serializer[State]):
    """The state of the account's mailbox.

    email: null for an account that has to add an address.
    pending_email: the new address, used once its code is given; null without a change.
    code_expires_at: when the last mailed code expires; null without one.
    """

    email = serializers.EmailField(allow_null=True)
    email_verified = serializers.BooleanField()
    pending_email = serializers.EmailField(allow_null=True)
    code_expires_at = serializers.IntegerField(allow_null=True)


class EmailChangeSerializer(StrictSerializer):
    """The address to change to."""

    email = AddressField()


class EmailCodeField(serializers.CharField):
    """A mailed code; ``mailed_secrets.canonical_code`` checks it, with its own error."""

    def __init__(self) -> None:
        super().__init__(max_length=MAX_CODE_CHARS)


class EmailCodeSerializer(StrictSerializer):
    """The code that was mailed: `ABCD-EFGH`; case, blanks and dashes are ignored."""

    code = EmailCodeField()


class EmailCancelSerializer(StrictSerializer):
    """The token that was mailed to the present address."""

    token = serializers.CharField(max_length=MAX_TOKEN_CHARS)
