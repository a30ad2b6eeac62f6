"""What the server answers, and to whom: this machine, with the token in the address, or nobody.

The token is the first part of every path, so that links of the page carry it without being told.
A page of another site cannot guess it; a name that an attacker points at this machine (DNS
rebinding) is refused by its Host header; and nothing but numbers leads to a file.
"""

from __future__ import annotations

import hmac
import json
from typing import TYPE_CHECKING, Any

from pubc.errors import DataError, EnvironmentFailure, MissingExtraError, PubcError
from pubc.review.desk import Desk
from pubc.review.page_view import (
    episode_view,
    page_policy,
    progress_view,
    proposals_view,
    render_review,
)

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
    from starlette.routing import Route
except ImportError:  # pragma: no cover - the extra is installed wherever this is tested
    raise MissingExtraError("The review page", "review") from None

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Guard", "make_app"]

_LARGEST = 8 << 20
"""Bytes of a request; marks of a hundred thousand trajectories fit."""
_TYPES = {".mp4": "video/mp4", ".webm": "video/webm", ".mkv": "video/x-matroska"}


def make_app(desk: Desk, token: str, port: int) -> Guard:
    """The server's answers for one desk."""
    routes = _Answers(desk)
    base = f"/{token}"
    app = Starlette(
        routes=[
            Route(f"{base}/", routes.page),
            Route(f"{base}/plots/{{number:int}}", routes.plots),
            Route(f"{base}/episode/{{at:int}}", routes.episode),
            Route(f"{base}/video/{{at:int}}/{{camera:int}}", routes.video),
            Route(f"{base}/marks", routes.marks, methods=["POST"]),
            Route(f"{base}/proposals", routes.proposals),
            Route(f"{base}/run", routes.progress, methods=["GET"]),
            Route(f"{base}/run", routes.start, methods=["POST"]),
            Route(f"{base}/stop", routes.stop, methods=["POST"]),
        ],
    )
    return Guard(app, token, port)


class Guard:
    """Turns away whoever is not this machine's browser with the token."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._policy = page_policy()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        answer = self._app if refusal is None else PlainTextResponse(refusal, status_code=403)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *self._headers()]
            await send(message)

        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> str | None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value.lower())
        hosts = headers.get(b"host", [])
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "Refused: this page answers to 127.0.0.1 and localhost only.\n"
        origins = headers.get(b"origin", [])
        if any(origin.removeprefix(b"http://") not in self._hosts for origin in origins):
            return "Refused: another site asked.\n"
        first = scope["path"].encode("utf-8", "surrogatepass").split(b"/")[1:2]
        if not first or not hmac.compare_digest(first[0], self._token):
            return "Refused: open the whole address that `pubc review` printed.\n"
        return None

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [
            (b"content-security-policy", self._policy.encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]


class _Answers:
    """One answer for each address."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def page(self, request: Request) -> Response:
        text = await run_in_threadpool(render_review, self._desk)
        return Response(text, media_type="text/html; charset=utf-8")

    async def plots(self, request: Request) -> Response:
        number = request.path_params["number"]
        raw = await run_in_threadpool(lambda: self._desk.plots.chunk(number))
        return Response(raw, media_type="application/octet-stream", status_code=200 if raw else 404)

    async def episode(self, request: Request) -> Response:
        at = request.path_params["at"]
        if not 0 <= at < len(self._desk.trajectories):
            return _said("There is no such trajectory.", 404)
        return await self._answer(episode_view, self._desk, at)

    async def video(self, request: Request) -> Response:
        at, camera = request.path_params["at"], request.path_params["camera"]
        try:
            clip = await run_in_threadpool(self._desk.videos.open, at, camera)
        except PubcError as error:
            return _said(str(error), 404)
        if clip is None:
            return _said("There is no such video.", 404)
        kind = _TYPES.get(clip.path.suffix.lower(), "application/octet-stream")
        return FileResponse(clip.path, media_type=kind)

    async def proposals(self, request: Request) -> Response:
        return await self._answer(proposals_view, self._desk)

    async def progress(self, request: Request) -> Response:
        return await self._answer(progress_view, self._desk)

    async def start(self, request: Request) -> Response:
        def begin() -> dict[str, Any]:
            self._desk.start_run()
            return progress_view(self._desk)

        return await self._answer(begin)

    async def stop(self, request: Request) -> Response:
        def end() -> dict[str, Any]:
            self._desk.job.stop()
            return progress_view(self._desk)

        return await self._answer(end)

    async def marks(self, request: Request) -> Response:
        body = b""
        async for block in request.stream():
            body += block
            if len(body) > _LARGEST:
                return _said("That is too much for one change.", 413)

        def change() -> dict[str, Any]:
            self._desk.set_marks(_changes(body))
            return {"saved": len(self._desk.labels)}

        return await self._answer(change)

    async def _answer(self, work: Any, *arguments: Any) -> Response:
        try:
            return JSONResponse(await run_in_threadpool(work, *arguments))
        except EnvironmentFailure as error:
            return _said(str(error), 500)
        except PubcError as error:
            return _said(str(error), 400)


def _changes(body: bytes) -> list[tuple[int, list[Any]]]:
    """The changes that a request asks for, checked as far as their form goes."""
    wrong = DataError(
        'Expected {"episodes": [{"at": NUMBER, "marks": [...]}, ...]}.', code="bad_labels"
    )
    try:
        document = json.loads(body)
        entries = document["episodes"]
        found = [(entry["at"], entry["marks"]) for entry in entries]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise wrong from None
    for at, marks in found:
        if not isinstance(at, int) or isinstance(at, bool) or not isinstance(marks, list):
            raise wrong
    return found


def _said(text: str, status: int) -> Response:
    return JSONResponse({"error": text}, status_code=status)
