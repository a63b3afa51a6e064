"""Name the creators of access keys, origins and nodes."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brain', '0017_response_age'),
    ]

    operations = [
        migrations.AddField(
            model_name='accesskey',
            name='created_by',
            field=models.CharField(blank=True, db_default='', max_length=254),
        ),
        migrations.AddField(
            model_name='accesskey',
            name='creator_id',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='node',
            name='created_by',
            field=models.CharField(blank=True, db_default='', max_length=254),
        ),
        migrations.AddField(
            model_name='node',
            name='creator_id',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='origin',
            name='created_by',
            field=models.CharField(blank=True, db_default='', max_length=254),
        ),
        migrations.AddField(
            model_name='origin',
            name='creator_id',
            field=models.UUIDField(null=True),
        ),
    ]
