"""Asking a review server like a browser, or like somebody who means harm."""

import http.client
import json
import time
from urllib.parse import urlsplit


def ask(address, path="", *, method=None, body=None, host=None, headers=None, token=True):
    """Status, headers and raw body of one request."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    raw = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Host": host or parts.netloc, **(headers or {})}
    if raw is not None:
        given["Content-Length"] = str(len(raw))
    where = (parts.path if token else "/") + path
    connection.putrequest(
        method or ("GET" if raw is None else "POST"),
        where,
        skip_host=True,
        skip_accept_encoding=True,
    )
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders(raw)
    answer = connection.getresponse()
    try:
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def told(address, path, body=None):
    """The JSON answer of a request that must succeed."""
    status, _, raw = ask(address, path, body=body)
    assert status == 200, raw
    return json.loads(raw)


def mark(address, label, *positions):
    marks = [{"label": label, "start": None, "stop": None}]
    told(address, "marks", {"episodes": [{"at": at, "marks": marks} for at in positions]})


def until(address, *states, seconds=240):
    """Poll the run until it is in one of these states."""
    end = time.monotonic() + seconds
    while (now := told(address, "run"))["state"] not in states:
        assert now["state"] != "failed", now["error"]
        assert time.monotonic() < end, now
        time.sleep(0.2)
    return now
