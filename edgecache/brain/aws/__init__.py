"""S3's requests, signatures, XML and errors, as a server and as a client.

Door: checksums, errors, post_policy, posted_form, requests, sigv2, sigv4, xml.
Imports: core, edgecache.http.
"""
