"""Name the member who added a webhook by id."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0018_key_events_by_index'),
    ]

    operations = [
        migrations.AddField(
            model_name='webhookendpoint',
            name='creator_id',
            field=models.UUIDField(blank=True, null=True),
        ),
    ]
