"""One HTTP server and one client, for brain and workers.

Door: addresses, client, exchange, files, headers, outgoing, response_head, scope, server.
Imports: runtime.
"""
