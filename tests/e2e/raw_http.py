"""HTTP as bytes, for what no client's library would send, and for answers as they are."""

import dataclasses
import http.client
import io
import json
import socket

Headers = dict[str, str] | list[tuple[str, str]] | tuple[()]

QUESTION = [{"role": "user", "content": "go"}]


@dataclasses.dataclass
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    @property
    def error(self) -> dict:
        """OpenAI's error object, which every refusal must be."""
        error = self.json["error"]
        assert error.keys() == {"message", "type", "param", "code"} and error["message"] and error["type"], error
        return error

    def events(self) -> list[str]:
        """The data of the stream's events, which must be UTF-8 and nothing but data."""
        assert self.headers["content-type"].startswith("text/event-stream")
        frames = self.body.decode().split("\n\n")
        assert frames.pop() == "", "the last event has its end"
        lines = [line for frame in frames for line in frame.split("\n") if not line.startswith(":")]
        assert all(line.startswith("data: ") for line in lines), lines
        return [line.removeprefix("data: ") for line in lines]


class _Bytes(io.BytesIO):
    def makefile(self, mode: str) -> "_Bytes":
        return self

    def close(self) -> None:
        """Whoever has read one answer reads the next, too."""


def pairs(headers: Headers) -> list[tuple[str, str]]:
    return list(headers.items() if isinstance(headers, dict) else headers)


def head(method: str, target: str, headers: Headers = (), version: str = "HTTP/1.1") -> bytes:
    lines = [f"{method} {target} {version}", "Host: x", *(f"{name}: {value}" for name, value in pairs(headers)), "", ""]
    return "\r\n".join(lines).encode()


def chat_bytes(headers: Headers = (), version: str = "HTTP/1.1", **fields) -> bytes:
    """A whole request for a chat."""
    body = json.dumps({"model": "local", "messages": QUESTION, **fields}).encode()
    framing = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    return head("POST", "/v1/chat/completions", [*framing, *pairs(headers)], version) + body


def open_chat(server, headers: Headers = (), **fields) -> socket.socket:
    """A chat on a connection of its own, which nobody reads yet."""
    connection = server.connect()
    connection.sendall(chat_bytes(headers, **fields))
    return connection


def read_until(connection: socket.socket, ending: bytes) -> bytes:
    read = b""
    while ending not in read:
        piece = connection.recv(65536)
        if not piece:
            break
        read += piece
    return read


def send_all(connection, content: bytes) -> None:
    """As far as the server takes it."""
    try:
        connection.sendall(content)
    except (BrokenPipeError, ConnectionResetError):
        pass


def read_all(connection) -> bytes:
    """Until the server closes."""
    read = b""
    while True:
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return read
        if not piece:
            return read
        read += piece


def replies_in(read: bytes, method: str = "GET") -> list[Reply]:
    source, replies = _Bytes(read), []
    while source.tell() < len(read):
        answer = http.client.HTTPResponse(source, method=method)
        answer.begin()
        replies.append(Reply(answer.status, answer.headers, answer.read()))
    return replies


def replies(server, sent: bytes) -> list[Reply]:
    """What a connection of its own gets until the server closes it."""
    with server.connect() as connection:
        send_all(connection, sent)
        return replies_in(read_all(connection))


def ask(server, method: str, target: str, body: bytes | str | dict | None = None, headers: Headers = ()) -> Reply:
    """One request on a connection of its own."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
    fields = [*pairs(headers), ("Connection", "close")]
    if content is not None:
        fields.append(("Content-Length", str(len(content))))
    with server.connect() as connection:
        send_all(connection, head(method, target, fields) + (content or b""))
        (reply,) = replies_in(read_all(connection), method)
    return reply


def post(server, path: str, body: bytes | str | dict, headers: Headers = ()) -> Reply:
    fields = pairs(headers)
    if not any(name.lower() == "content-type" for name, _ in fields):
        fields.append(("Content-Type", "application/json"))
    return ask(server, "POST", path, body, fields)


def chat(server, headers: Headers = (), **fields) -> Reply:
    return post(server, "/v1/chat/completions", {"model": "local", "messages": QUESTION, **fields}, headers)


def chat_with(server, member: str, **fields) -> Reply:
    """A chat whose last member is spelled out, since json.dumps would not write it so."""
    body = json.dumps({"model": "local", "messages": QUESTION, **fields})
    return post(server, "/v1/chat/completions", f"{body[:-1]},{member}}}")
