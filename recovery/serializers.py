"""Recovery in JSON, with the published field names."""

from collections.abc import Mapping
from typing import Any, Final

from rest_framework import serializers

from accounts.serializers import PasswordField
from common.api.views import StrictSerializer
from common.emails import AddressField
from recovery.models import Method, Purpose
from recovery.questions import ASKED

TOKEN_INPUT_CHARS: Final = 64

MAX_BIGINT = 2**63 - 1


class RecoveryInitiateSerializer(StrictSerializer):
    """The claimed account, what was lost, and the method."""

    org_id = serializers.IntegerField(
        min_value=1,
        max_value=MAX_BIGINT,
        required=False,
        help_text="Not needed: the address decides. With another organization's number it is as "
        "if there were no account.",
    )
    email = AddressField()
    method = serializers.ChoiceField(choices=Method.values)
    purpose = serializers.ChoiceField(
        choices=Purpose.values, required=False, default=Purpose.PASSWORD.value
    )


class RecoveryQuestionSerializer(serializers.Serializer[Any]):
    """A security question."""

    question_id = serializers.CharField()
    question = serializers.CharField()


class RecoveryInitiatedSerializer(serializers.Serializer[Any]):
    """A recovery, whether or not there is an account; `questions` only for that method."""

    recovery_id = serializers.CharField()
    expires_at = serializers.IntegerField()
    questions = RecoveryQuestionSerializer(many=True, required=False)


class ChannelTokenField(serializers.CharField):
    """A mailed or texted token; ``channel_tokens.canonical`` validates it, with its own error."""

    def __init__(self) -> None:
        super().__init__(max_length=TOKEN_INPUT_CHARS)


class CancelTokenField(ChannelTokenField):
    """The token of a notice; ``channel_tokens.canonical_long`` checks it."""


class RecoveryVerifySerializer(StrictSerializer):
    """The token that was delivered."""

    recovery_id = serializers.CharField(max_length=64)
    token = ChannelTokenField()


class RecoveryVerifiedSerializer(serializers.Serializer[Any]):
    """The response to a correct token; `next` says what completing requires."""

    reset_token = serializers.CharField()
    expires_at = serializers.IntegerField()
    next = serializers.ChoiceField(choices=["password", "password_and_challenge", "first_factor"])
    methods = serializers.ListField(child=serializers.CharField())
    new_account_offered = serializers.BooleanField(
        help_text="The account never verified the address: completing with `new_account` needs no "
        "second factor, and opens a new account in a new organization instead. If `next` is "
        "`password`, completing always does."
    )


class ResetTokenField(serializers.CharField):
    """A reset token."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=4096, **options)


class RecoveryChallengeRequestSerializer(StrictSerializer):
    """A request for a challenge; without `method` it uses the first allowed one."""

    reset_token = ResetTokenField()
    method = serializers.CharField(max_length=20, required=False, allow_blank=True, default="")


class RecoveryProofSerializer(StrictSerializer):
    """A proof of a factor: the challenge, and `code`, or `credential` for a passkey."""

    reset_token = ResetTokenField()
    challenge_id = serializers.CharField(
        max_length=64, required=False, allow_blank=True, default=""
    )
    code = serializers.CharField(
        max_length=64, required=False, trim_whitespace=False, allow_blank=True, default=""
    )
    credential = serializers.DictField(required=False, default=dict)


class RecoveryCompleteSerializer(RecoveryProofSerializer):
    """The new password, and a second factor if there is one; neither for a lost factor."""

    password = PasswordField(required=False)
    new_account = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Take a new account with this address, where `new_account_offered` was true; "
        "the other account goes on without the address.",
    )


class RecoveryProveSerializer(RecoveryProofSerializer):
    """The password or a passkey's response."""

    password = PasswordField(required=False, allow_blank=True, default="")


class RecoveryDelayedSerializer(serializers.Serializer[Any]):
    """The delay has begun: complete with `reset_token` between both times."""

    status = serializers.ChoiceField(choices=["delayed"])
    reset_token = serializers.CharField()
    effective_at = serializers.IntegerField()
    expires_at = serializers.IntegerField()


class RecoveryCancelSerializer(StrictSerializer):
    """The token of a notice."""

    token = CancelTokenField()


class AnswerField(serializers.CharField):
    """An answer; like a password, it appears in no log or response."""

    def __init__(self) -> None:
        super().__init__(max_length=256, write_only=True)


class AnswersField(serializers.DictField):
    """Answers by question id."""

    child = AnswerField()

    def to_internal_value(self, data: Any) -> dict[str, str]:
        """Validate at most as many answers as questions are asked."""
        if isinstance(data, Mapping) and len(data) > ASKED:
            raise serializers.ValidationError(f"At most {ASKED} answers.", code="too_many")
        return super().to_internal_value(data)


class RecoveryAnswersSerializer(StrictSerializer):
    """Answers to the asked questions, by question id."""

    recovery_id = serializers.CharField(max_length=64)
    answers = AnswersField()


class RecoveryAnsweredSerializer(serializers.Serializer[Any]):
    """The same for right and wrong answers: if they are right, a mail was sent."""

    expires_at = serializers.IntegerField()


class RecoveryQuestionsUpdateSerializer(StrictSerializer):
    """Three answers by question id, or none to remove them."""

    answers = AnswersField()


class RecoveryQuestionsSerializer(serializers.Serializer[Any]):
    """The available questions, and which of them have an answer."""

    enabled = serializers.BooleanField()
    catalogue = RecoveryQuestionSerializer(many=True)
    answered = serializers.ListField(child=serializers.CharField())


class ResetFactorsSerializer(StrictSerializer):
    """The reason, for the notice to the member and for the audit trail."""

    reason = serializers.CharField(max_length=300)
