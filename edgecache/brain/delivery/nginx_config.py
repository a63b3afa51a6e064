"""The configuration of nginx before the object API: ``manage.py gatewayconfig``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from edgecache.brain.delivery import nginx_offload

HEAD: Final = """\
# Made by `manage.py gatewayconfig`; it holds a secret: keep it from others (0600).
# Belongs into the http block (conf.d). After workers came or went make it anew, then
# `nginx -s reload`; until then the brain itself moves what they hold.
"""
BRAIN: Final = """\
upstream zonal_brain {{
    server {brain};
    keepalive 64;
}}
"""
WORKER: Final = """\
upstream {name} {{
    server {server} max_fails=0;
    keepalive 64;
}}
"""
# Paths and hosts go on byte for byte: signatures cover them.
SERVER: Final = """\
server {{
{listen}
    server_name {server_name};
{tls}
    client_max_body_size 0;
    client_header_timeout 15s;
    client_body_timeout 30s;
    send_timeout 60s;
    keepalive_timeout 75s;
    large_client_header_buffers 8 16k;
    merge_slashes off;
    server_tokens off;
    proxy_http_version 1.1;
    proxy_next_upstream off;

    location / {{
        proxy_pass http://zonal_brain;
        proxy_request_buffering off;
        proxy_buffering on;
        proxy_buffers 16 64k;
        proxy_buffer_size 16k;
        proxy_busy_buffers_size 128k;
        proxy_max_temp_file_size 0;
        proxy_read_timeout 120s;
        proxy_set_header Host $http_host;
        proxy_set_header Connection "";
        proxy_set_header {token_header} "{token}";
        proxy_set_header {client_header} $remote_addr;
        proxy_set_header {mover_header} "";
        proxy_set_header {stores_header} "{stores}";
    }}
{store_locations}
    # Only the brain leads here, with a ticket in the query.
    location ~ "^{internal}/(?<zonal_node>{pattern})(?<zonal_object>/o/[0-9a-f]{{64}})$" {{
        internal;
        set $zonal_range $upstream_http_{range_variable};
{carried_set}
        proxy_pass {scheme}://$zonal_node$zonal_object$is_args$args;
        proxy_method GET;
        proxy_pass_request_headers off;
        proxy_pass_request_body off;
        proxy_set_header Host $zonal_node;
        proxy_set_header Connection "";
        proxy_set_header Range $zonal_range;
        proxy_connect_timeout 2s;
        proxy_read_timeout 10s;
        proxy_buffering on;
        proxy_buffers 16 64k;
        proxy_buffer_size 16k;
        proxy_busy_buffers_size 128k;
        proxy_max_temp_file_size 0;
{hidden}
{carried_add}
        # A worker that does not do it: the brain does, from the beginning.
        proxy_intercept_errors on;
        error_page 400 403 404 408 416 429 500 502 503 504 = @zonal_built_in;
    }}

    location @zonal_built_in {{
        proxy_pass http://zonal_brain$request_uri;
        proxy_method GET;
        proxy_buffering on;
        proxy_buffers 16 64k;
        proxy_buffer_size 16k;
        proxy_busy_buffers_size 128k;
        proxy_max_temp_file_size 0;
        proxy_read_timeout 120s;
        proxy_set_header Host $http_host;
        proxy_set_header Connection "";
        proxy_set_header {token_header} "{token}";
        proxy_set_header {client_header} $remote_addr;
        proxy_set_header {mover_header} "built-in";
    }}
}}
"""
# A worker's files as they are: their names are hashes, so that one that is open never changes.
STORE: Final = """
    # Only the brain leads here, to a file that a worker on this machine holds.
    location {prefix}/{name}/ {{
        internal;
        alias "{objects}/";
        sendfile on;
        tcp_nopush on;
        open_file_cache max=10000 inactive=30s;
        open_file_cache_valid 30s;
        disable_symlinks on from="{objects}";
        # The brain has judged conditions and ranges.
        etag off;
        if_modified_since off;
        max_ranges 0;
        # Nobody else was asked since: what the brain said is still at hand.
{carried_on}
        error_page 403 404 500 = @zonal_built_in;
    }}
"""
NODE_PATTERN: Final = "zonal_[0-9a-f]{32}"
# What a worker says of a blob is nothing that a client should hear of an object.
OF_WORKERS: Final = ("etag", "last-modified", "content-type", "x-zonal-node", "cache-control")


@dataclass(frozen=True, slots=True)
class Worker:
    """A node that nginx may fetch from. store: its folder, where nginx may read it."""

    node_id: UUID
    endpoint: str
    store: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the configuration is to be for. listen: as nginx takes it, ``443 ssl`` too.

    brain: address and port of the object API. tls: certificate and key.
    """

    token: str
    brain: str
    listen: Sequence[str]
    server_name: str
    workers: Sequence[Worker]
    tls: tuple[Path, Path] | None = None


def configuration(wanted: Wanted) -> str:
    """Give the text of the file.

    Workers behind TLS are left to the brain: nginx would not check their certificates by itself.
    """
    plain = [row for row in wanted.workers if row.endpoint.startswith("http://")]
    workers = [
        WORKER.format(
            name=nginx_offload.upstream_name(row.node_id),
            server=nginx_offload.host_and_port(row.endpoint),
        )
        for row in plain
    ]
    return "\n".join([HEAD, BRAIN.format(brain=wanted.brain), *workers, _server(wanted)])


def _server(wanted: Wanted) -> str:
    variables = {name: name.replace("-", "_") for name in nginx_offload.CARRIED}
    carried_set = "\n".join(
        f"        set $zonal_{variable} $upstream_http_{variable};"
        for variable in variables.values()
    )
    carried_add = "\n".join(
        f"        add_header {name} $zonal_{variable};" for name, variable in variables.items()
    )
    carried_on = "\n".join(
        f"        add_header {name} $upstream_http_{variable};"
        for name, variable in variables.items()
    )
    stores = {
        nginx_offload.upstream_name(row.node_id): row.store for row in wanted.workers if row.store
    }
    return SERVER.format(
        listen="\n".join(f"    listen {text};" for text in wanted.listen),
        server_name=wanted.server_name,
        tls=_tls(wanted.tls),
        token=wanted.token,
        token_header=nginx_offload.TOKEN_HEADER,
        client_header=nginx_offload.CLIENT_HEADER,
        mover_header=nginx_offload.MOVER_HEADER,
        internal=nginx_offload.INTERNAL_PATH.replace(".", r"\."),
        pattern=NODE_PATTERN,
        range_variable=nginx_offload.RANGE_HEADER.replace("-", "_"),
        scheme="http",
        carried_set=carried_set,
        hidden="\n".join(f"        proxy_hide_header {name};" for name in OF_WORKERS),
        carried_add=carried_add,
        stores_header=nginx_offload.STORES_HEADER,
        stores=" ".join(stores),
        store_locations="".join(
            STORE.format(
                prefix=nginx_offload.STORE_PATH,
                name=name,
                objects=folder / "objects",
                carried_on=carried_on,
            )
            for name, folder in stores.items()
        ),
    )


def _tls(tls: tuple[Path, Path] | None) -> str:
    if tls is None:
        return ""
    certificate, key = tls
    return (
        f"    ssl_certificate {certificate};\n    ssl_certificate_key {key};\n"
        "    ssl_protocols TLSv1.2 TLSv1.3;"
    )
