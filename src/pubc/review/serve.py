"""A server on this machine alone, from the first free port to Ctrl-C."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import Callable, Iterator

from pubc.errors import EnvironmentFailure, MissingExtraError
from pubc.review.app import make_app
from pubc.review.desk import Desk
from pubc.storage import lock
from pubc.storage.disk import disk_words

try:
    import uvicorn
except ImportError:  # pragma: no cover - the extra is installed wherever this is tested
    raise MissingExtraError("The review page", "review") from None

__all__ = ["serve", "serving"]

HOST = "127.0.0.1"


def serve(desk: Desk, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; a run at work is stopped and can go on later.

    Args:
        desk: What to serve.
        port: Where; 0 for any free port.
        ready: Called with the address once it answers.
    """
    with _alone(desk), _bound(port) as (listener, free):
        token = secrets.token_urlsafe(24)
        server = _server(desk, token, free)
        threading.Thread(
            target=_tell_when_up, args=(server, ready, _address(token, free)), daemon=True
        ).start()
        try:
            server.run(sockets=[listener])
        finally:
            desk.close()


@contextlib.contextmanager
def serving(desk: Desk, port: int = 0) -> Iterator[str]:
    """Serve from a thread while the block runs; gives the address."""
    with _alone(desk), _bound(port) as (listener, free):
        token = secrets.token_urlsafe(24)
        server = _server(desk, token, free)
        up = threading.Event()
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        threading.Thread(
            target=_tell_when_up, args=(server, lambda _: up.set(), ""), daemon=True
        ).start()
        try:
            if not up.wait(30):
                raise EnvironmentFailure("The server did not start within 30 seconds.")
            yield _address(token, free)
        finally:
            server.should_exit = True
            thread.join(30)
            desk.close()


@contextlib.contextmanager
def _alone(desk: Desk) -> Iterator[None]:
    """Two servers with the same labels would undo each other's marks."""
    with disk_words(desk.folder):
        desk.folder.mkdir(parents=True, exist_ok=True)
    with lock(desk.folder):
        yield


def _server(desk: Desk, token: str, port: int) -> uvicorn.Server:
    app = make_app(desk, token, port)
    config = uvicorn.Config(
        app,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def _bound(port: int) -> Iterator[tuple[socket.socket, int]]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError as error:
            raise EnvironmentFailure(
                f"Port {port} cannot be used ({error.strerror}). Choose another with --port, "
                "or leave it away for a free one."
            ) from None
        yield listener, listener.getsockname()[1]


def _address(token: str, port: int) -> str:
    return f"http://{HOST}:{port}/{token}/"


def _tell_when_up(server: uvicorn.Server, ready: Callable[[str], None], address: str) -> None:
    waiting = threading.Event()
    while not server.started and not server.should_exit:
        waiting.wait(0.02)
    if server.started:
        ready(address)
