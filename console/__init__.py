"""The console: pages under /console, and the cookies by which they call the public API."""

# docs/errors.md lists the loaded error classes, and routes do not import the middleware.
from console.errors import CsrfFailed as CsrfFailed
