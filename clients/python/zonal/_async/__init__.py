"""The asynchronous client, which the synchronous one is written from."""
