"""Accounts without an address: their unverified one went to the owner of the mailbox."""

from django.db import migrations, models
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_audit_retention"),
        ("environments", "0002_recovery_questions"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="user", name="user_email_unique"),
        migrations.AddField(
            model_name="user",
            name="address_released_at",
            field=models.DateTimeField(blank=True, db_index=True, null=True),
        ),
        migrations.AlterField(
            model_name="user",
            name="email",
            field=models.EmailField(blank=True, max_length=254),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(
                Upper("email"), condition=~models.Q(email=""), name="user_email_unique"
            ),
        ),
    ]
