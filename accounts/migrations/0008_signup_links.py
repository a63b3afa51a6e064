"""Sign-up by a mailed link."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("accounts", "0007_released_addresses")]

    operations = [
        migrations.CreateModel(
            name="SignupLink",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("email", models.EmailField(max_length=254)),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
