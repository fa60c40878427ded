"""`requests` over the product's own HTTP client, for packages that bring `requests` with them."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from registry.access.egress import parse_connection
from registry.access.outgoing import Limits, OutgoingClient
from registry.errors import SchemadeskError

LIMITS = Limits(connect_seconds=5, read_seconds=10, total_seconds=15, max_bytes=1024 * 1024)
#: what the client sets itself
OWN_HEADERS = frozenset({"host", "user-agent", "accept-encoding", "connection", "content-length"})


class PolicedTransport(BaseAdapter):
    """Sends each request by `OutgoingClient`: the egress policy decides where to, and nothing is redirected."""

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """The answer. Raises requests.ConnectionError, with the reason in words, for whatever goes wrong."""
        url = request.url or ""
        parts = urlsplit(url)
        headers = {name: str(value) for name, value in request.headers.items() if name.lower() not in OWN_HEADERS}
        body = request.body.encode() if isinstance(request.body, str) else request.body
        if not isinstance(body, bytes | None):
            raise requests.RequestException("a body that comes in pieces is not sent", request=request)
        try:
            connection = parse_connection(f"{parts.scheme}://{parts.netloc}")
            with OutgoingClient(connection, limits=LIMITS) as client:
                answer = client.call(request.method or "GET", request.path_url, body=body, headers=headers)
        except SchemadeskError as error:
            raise requests.ConnectionError(error.message, request=request) from error
        response = requests.Response()
        response.status_code = answer.status
        response.headers = CaseInsensitiveDict(answer.headers)
        response.raw = BytesIO(answer.body)
        response.url = url
        response.request = request
        return response

    def close(self) -> None:
        """Nothing is kept open."""
