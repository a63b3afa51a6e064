"""The pages under /console, the landing page, the reference under /v1/docs.

Door: api_reference, public_pages, static_files, urls.
Imports: accounts, common, outbox, twofactor.
"""

# docs/errors.md lists the loaded error classes, and routes do not import the middleware.
from console.errors import CsrfFailed as CsrfFailed
