"""The configuration of nginx in front of the object API: ``manage.py gatewayconfig``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from edgecache.brain.delivery import nginx_offload
from edgecache.protocol.names import OBJECTS

HEAD: Final = """\
# Written by `manage.py gatewayconfig`. It contains a secret: only nginx may read it (0600).
# It belongs in the http block (conf.d).
"""
BRAIN: Final = """\
upstream zonal_brain {{
    server {brain};
    keepalive 64;
}}
"""
# Paths and hosts are passed on byte for byte: signatures cover them.
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
    large_client_header_buffers 8 32k;
    underscores_in_headers on;
    ignore_invalid_headers off;
    merge_slashes off;
    server_tokens off;
    proxy_http_version 1.1;
    proxy_next_upstream off;
    proxy_redirect off;
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
    proxy_set_header {stores_header} $zonal_stores;

    location / {{
        set $zonal_stores "{stores}";
        proxy_pass http://zonal_brain;
        proxy_request_buffering off;
    }}
{store_locations}
    # A store without the file: the brain sends the object itself.
    location @zonal_brain {{
        set $zonal_stores "";
        proxy_pass http://zonal_brain$request_uri;
        proxy_method GET;
    }}
}}
"""
# Each file is opened again: the brain has just checked the file of this name.
STORE: Final = """
    # Reached only by the brain's X-Accel-Redirect, to a file of a worker on this machine.
    location {prefix}/{name}/ {{
        internal;
        alias "{objects}/";
        sendfile on;
        tcp_nopush on;
        disable_symlinks on from="{objects}";
        # The brain has applied conditions and ranges.
        etag off;
        if_modified_since off;
        max_ranges 0;
{passed_on}
        error_page 403 404 500 = @zonal_brain;
    }}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the configuration is for.

    listen: as nginx takes it, also ``443 ssl``. brain: address and port of the object API, or
    ``unix:FILE``. stores: by node, the folder of a worker on nginx's machine. tls: certificate and
    key.
    """

    token: str
    brain: str
    listen: Sequence[str]
    server_name: str
    stores: Mapping[UUID, Path]
    tls: tuple[Path, Path] | None = None


def configuration(site: Site) -> str:
    """Return the text of the file."""
    return "\n".join([HEAD, BRAIN.format(brain=site.brain), _server(site)])


def _server(site: Site) -> str:
    stores = {nginx_offload.store_name(node): folder for node, folder in site.stores.items()}
    return SERVER.format(
        listen="\n".join(f"    listen {text};" for text in site.listen),
        server_name=site.server_name,
        tls=_tls(site.tls),
        token=site.token,
        token_header=nginx_offload.TOKEN_HEADER,
        client_header=nginx_offload.CLIENT_HEADER,
        stores_header=nginx_offload.STORES_HEADER,
        stores=" ".join(
            nginx_offload.store_entry(node, folder) for node, folder in site.stores.items()
        ),
        store_locations="".join(_store(name, folder) for name, folder in stores.items()),
    )


def _store(name: str, folder: Path) -> str:
    return STORE.format(
        prefix=nginx_offload.STORE_PATH,
        name=name,
        objects=folder / OBJECTS,
        passed_on="\n".join(
            f"        add_header {header} $upstream_http_{header.replace('-', '_')};"
            for header in nginx_offload.PASSED_ON
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
