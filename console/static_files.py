"""Static files: hashed names and compressed copies, collected when their sources change."""

import hashlib
from pathlib import Path
from typing import Final

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from whitenoise.storage import (  # type: ignore[import-untyped]  # it ships no types
    CompressedManifestStaticFilesStorage,
)

# Maximum depth of imports between modules; each level requires a pass.
IMPORT_DEPTH: Final = 12
MODULE_IMPORTS: Final = (
    (
        r"""(?m)^(?P<matched>(?P<names>(?:import|export)\b[^"';]*?)"(?P<url>\.[^"]+)";)""",
        '%(names)s"%(url)s";',
    ),
    (r"""(?P<matched>await import\("(?P<url>\.[^"]+)"\))""", 'await import("%(url)s")'),
)
STAMP: Final = "collected-from"


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # as above
    """Files whose names contain their hashes, so that browsers can cache them permanently.

    The imports of modules are rewritten as the URLs of style sheets are. Django's own patterns also
    match ``import()`` of types in comments, with which modules may refer to each other in cycles.
    """

    support_js_module_import_aggregation = True
    _js_module_import_aggregation_patterns = ("*.js", MODULE_IMPORTS)
    max_post_process_passes = IMPORT_DEPTH


def collect_if_changed() -> bool:
    """Collect the files into STATIC_ROOT if they have changed; True if they were collected.

    Without STATIC_ROOT there is nothing to do: they are served from where the packages keep them.
    """
    if not settings.STATIC_ROOT:
        return False
    stamp = Path(settings.STATIC_ROOT) / STAMP
    current = _fingerprint()
    if stamp.is_file() and stamp.read_text() == current:
        return False
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(current)
    return True


def _fingerprint() -> str:
    """Return a hash of the names, sizes and times of all sources."""
    found = hashlib.sha256()
    for finder in finders.get_finders():
        for name, storage in finder.list(None):
            facts = Path(storage.path(name)).stat()
            found.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return found.hexdigest()
