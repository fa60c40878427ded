"""An endpoint of Apicurio Registry's API for our registry, so that its Avro converter for Kafka Connect can use it.

Confluent's converter isn't on Maven Central, Apicurio's is. With `as-confluent=true` it writes the usual framing (a
zero byte, four bytes of schema id), but it registers by `POST /apis/registry/v2/groups/GROUP/artifacts`. This forwards
that as `POST /subjects/ARTIFACT/versions` with the caller's Authorization header. It supports nothing else.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, urlsplit

LOOPBACK = "127.0.0.1"
BASE = "/apis/registry/v2"
ARTIFACTS = re.compile(rf"{BASE}/groups/[^/]+/artifacts")
LARGEST = 8 * 1024 * 1024
PATIENCE = 30.0  # seconds for the registry to answer
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Endpoint(ThreadingHTTPServer):
    """Listens on the loopback address; port 0 means a free one.

    `registry` is the base URL of an API in Confluent's dialect.
    """

    daemon_threads = True

    def __init__(self, registry: str, port: int = 0) -> None:
        self.registry = registry.rstrip("/")
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def url(self) -> str:
        """The converter's `apicurio.registry.url`."""
        return f"http://{LOOPBACK}:{self.server_port}{BASE}"


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_POST(self) -> None:
        """Register the schema in the body under the artifact's name."""
        length = self.headers.get("Content-Length", "")
        subject = self.headers.get("X-Registry-ArtifactId", "")
        if not length.isdecimal() or int(length) > LARGEST:
            self._refuse(413, f"Send a body of at most {LARGEST} bytes with its Content-Length.")
            return
        body = self.rfile.read(int(length))
        if not ARTIFACTS.fullmatch(urlsplit(self.path).path) or not subject:
            self._refuse(404, f"Only POST {BASE}/groups/GROUP/artifacts with X-Registry-ArtifactId is supported.")
            return
        try:
            schema = body.decode()
        except UnicodeDecodeError as error:
            self._refuse(400, f"The schema of {subject} isn't UTF-8: {error}.")
            return
        status, content = self._register(subject, schema)
        if status != 200:
            self._refuse(status, f"{subject}: {content.get('message', 'the registry gave no reason')}")
            return
        number = content["id"]
        kind = self.headers.get("X-Registry-ArtifactType", "AVRO")
        self._respond(200, {"id": subject, "type": kind, "version": "1", "globalId": number, "contentId": number})

    def _register(self, subject: str, schema: str) -> tuple[int, dict[str, object]]:
        """Return the registry's status and answer; 502 if it can't be reached."""
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        if login := self.headers.get("Authorization"):
            headers["Authorization"] = login
        address = f"{self.server.registry}/subjects/{quote(subject, safe='')}/versions"
        data = json.dumps({"schema": schema}).encode()
        try:
            request = urllib.request.Request(address, data, headers)  # noqa: S310  the address is the operator's
            with WITHOUT_PROXY.open(request, timeout=PATIENCE) as response:
                return response.status, _object(response.read(LARGEST))
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _object(error.read(LARGEST))
        except OSError as error:
            return 502, {"message": f"{self.server.registry} can't be reached: {error}"}

    def _refuse(self, status: int, message: str) -> None:
        # The unread rest of a body would be taken for the next request.
        self.close_connection = True
        self._respond(status, {"error_code": status, "message": message, "name": "SchemadeskError"})

    def _respond(self, status: int, content: dict[str, object]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the registry logs registrations."""


def _object(body: bytes) -> dict[str, object]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


@contextmanager
def apicurio_endpoint(registry: str) -> Iterator[str]:
    """Answer in a thread during the block; yield the converter's `apicurio.registry.url`."""
    with Endpoint(registry) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    """Run `python -m dashboard.demo.apicurio_endpoint --port N --registry URL` until it is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--registry", required=True)
    arguments = parser.parse_args()
    with Endpoint(arguments.registry, arguments.port) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
