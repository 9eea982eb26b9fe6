"""The bundled model behind OpenAI's HTTP API, on loopback, to try clients and harnesses offline.

    python -m gatekeeper.bundled.serve --port 8011

`GET /v1/models`, `POST /v1/chat/completions`, `/v1/completions` and `/v1/responses`, whole or as a
stream, with log-probabilities: of the raw distribution and with the end token, as vLLM returns
them. A chat prompt is the last user message; a prompt that exceeds the model's context of 512
tokens keeps its end. The same request with the same `seed` gets the same answer. `tool_calls` makes
a call of what the model writes; penalties, formats and keys are ignored. `connections` handles
broken, slow and many clients.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

from gatekeeper.adapters.bundled import BundledModel
from gatekeeper.bundled.chat import chat
from gatekeeper.bundled.completions import completions
from gatekeeper.bundled.connections import Json, JsonHandler, JsonServer, RefusalError, Stream
from gatekeeper.bundled.responses import LOGPROBS, responses
from gatekeeper.errors import GatekeeperError

__all__ = ["Server", "main"]

ROUTES: dict[str, Callable[[BundledModel, Json], Json | Stream]] = {
    "/v1/chat/completions": chat,
    "/v1/completions": completions,
    "/v1/responses": responses,
}


class Server(JsonServer):
    """Listens as soon as it is made; `serve_forever` answers.

    Parameters
    ----------
    port : int
        0 picks a free one.
    name : str
        Name of the model: a program that asks for "gpt-4o-mini" runs unchanged with that name.
    refuse_logprobs : bool
        Answer requests for log-probabilities with HTTP 400, as models without them do.
    **limits
        Those of `JsonServer`.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        name: str = BundledModel.name,
        refuse_logprobs: bool = False,
        **limits: Any,
    ) -> None:
        self.model = BundledModel(threads=1)  # each request has its own thread
        self.name, self.refuse_logprobs = name, refuse_logprobs
        super().__init__(port, _Handler, **limits)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(JsonHandler):
    server: Server

    def get(self, path: str) -> Json:
        if path != "/v1/models":
            raise _no_such(path)
        model = {"id": self.server.name, "object": "model", "created": 0, "owned_by": "bundled"}
        return {"object": "list", "data": [model]}

    def post(self, path: str, request: Json) -> Json | Stream:
        if path not in ROUTES:
            raise _no_such(path)
        if request.get("model") != self.server.name:
            wanted = f"The model {request.get('model')!r:.80} does not exist"
            raise RefusalError(
                f"{wanted}: this server has {self.server.name}", HTTPStatus.NOT_FOUND
            )
        if self.server.refuse_logprobs and _asks_for_logprobs(request):
            raise RefusalError("You are not allowed to request logprobs from this model")
        return ROUTES[path](self.server.model, request)


def _no_such(path: str) -> RefusalError:
    return RefusalError(f"no such path: {path:.80}", HTTPStatus.NOT_FOUND)


def _asks_for_logprobs(request: Json) -> bool:
    include = request.get("include")
    included = isinstance(include, list) and LOGPROBS in include
    return included or request.get("logprobs") not in (None, False)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m gatekeeper.bundled.serve",
        description="The bundled model behind OpenAI's HTTP API, on 127.0.0.1.",
    )
    parser.add_argument("--port", type=int, default=8011, help="0 picks a free one (default: 8011)")
    parser.add_argument(
        "--name",
        default=BundledModel.name,
        help="of the model, for programs that ask for another (default: %(default)s)",
    )
    parser.add_argument(
        "--refuse-logprobs",
        action="store_true",
        help="refuse requests for log-probabilities, as some models do",
    )
    args = parser.parse_args(argv)
    try:
        server = Server(args.port, name=args.name, refuse_logprobs=args.refuse_logprobs)
    except (OSError, OverflowError) as e:
        print(f"port={args.port}: the server cannot listen on it: {e}", file=sys.stderr)
        return 2
    except GatekeeperError as e:
        print(e, file=sys.stderr)
        return 2
    with server:
        print(f"serving on {server.base_url}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
