"""The synchronous client; written by `make clients` from zonal/_async."""
