"""Find the events of production keys by the index of backups."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0017_sessions_ended'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='auditevent',
            name='audit_of_backups',
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(condition=models.Q(('tag__in', ['cli:backup:create', 'cli:backup:drill', 'system:key:see'])), fields=['tag', '-at'], name='audit_of_backups'),
        ),
    ]
