"""An S3-compatible server on this machine, for every test that needs one (the fixture `s3`)."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SECRET = "anything-but-do-not-tell"


@dataclass
class S3Server:
    """The server's address; makes buckets on demand."""

    host: str
    port: int
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def options(self) -> dict[str, str]:
        """Options for `open_store`: the address, and keys that the server ignores."""
        return {
            "endpoint": f"http://{self.host}:{self.port}",
            "access_key_id": "anyone",
            "secret_access_key": SECRET,
            "region": "us-east-1",
        }

    def settings(self) -> dict[str, str]:
        """The same options as a job's settings."""
        return {
            "s3.endpoint": f"http://{self.host}:{self.port}",
            "s3.access-key": "anyone",
            "s3.secret-key": SECRET,
            "s3.endpoint.region": "us-east-1",
            "s3.path.style.access": "true",
        }

    def new_bucket(self) -> str:
        """Make an empty bucket and return its URL."""
        name = f"bucket-{next(self._numbers)}"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("PUT", f"/{name}")
        assert connection.getresponse().status == 200
        connection.close()
        return f"s3://{name}"


@contextlib.contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run the server inside the block."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = DomainDispatcherApplication(create_backend_app)
    # moto checks for an object and then writes it, which S3 does atomically: so requests are served one at a time.
    one_at_a_time = threading.Lock()

    def serve(environ: Any, start_response: Any) -> Any:
        with one_at_a_time:
            return application(environ, start_response)

    server = make_server("127.0.0.1", 0, serve, threaded=True, request_handler=MotoRequestHandler)
    thread = threading.Thread(target=server.serve_forever, name="s3 for tests", daemon=True)
    thread.start()
    try:
        yield S3Server("127.0.0.1", server.port)
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
