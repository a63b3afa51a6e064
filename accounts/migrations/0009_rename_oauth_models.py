"""Rename the models of external sign-in to the terms of OAuth."""

from django.db import migrations


class Migration(migrations.Migration):
    """Only names change; the rows live for ten minutes at most."""

    dependencies = [("accounts", "0008_signup_links")]

    operations = [
        migrations.RenameModel("ProviderVisit", "OAuthTransaction"),
        migrations.RenameField("OAuthTransaction", "state", "state_digest"),
        migrations.RenameField("OAuthTransaction", "ticket", "ticket_digest"),
        migrations.RenameField("OAuthTransaction", "binding", "browser_digest"),
        migrations.RenameField("OAuthTransaction", "sealed", "encrypted_session"),
        migrations.RenameModel("ProviderGrant", "OAuthGrant"),
        migrations.RenameField("OAuthGrant", "profile", "encrypted_profile"),
    ]
