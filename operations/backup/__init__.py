"""``manage.py backup`` and ``manage.py restore``: all data that a platform must not lose.

In the store::

    backups/<id>/manifest.json     written last, authenticated: without it a backup is unfinished
    backups/<id>/default.dump.age  the control database (and ``brain.dump.age``), without rows that
                                   must not be restored (``control.OMITTED``)
    backups/<id>/contents.age      the environments, and where their dumps are
    backups/<id>/objects.age       SHA-256 and size of each object's bytes, a line each
    backups/<id>/objects.txt       the names of these bytes below, for ``--prune``
    backups/<id>/environments/     a dump of each environment's database
    objects/<ab>/<name>.age        bytes of objects, shared by all backups

Files are encrypted with age to public keys. The platform holds no key that opens them. Names of
bytes are keyed digests, so that the store's owner cannot find out which known files it contains.
"""
