"""The application: pages from the package, models by name, one computation at a time."""

import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import torch
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from spectrakan.config import read_yaml
from spectrakan.errors import ConfigError
from spectrakan.runs import as_json as plain
from spectrakan.runs import package_version
from spectrakan.serve.guard import Guard, Turns
from spectrakan.serve.predict import NPZ, as_json, as_npz, parse_json, parse_npz, predict
from spectrakan.serve.scenes import compare
from spectrakan.serve.shown import GivenRun, Known, known_models

STATIC = Path(__file__).parent / "static"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
RAW = "application/octet-stream"
T = TypeVar("T")


class Server:
    """The handlers of all routes; files are read once, so that no path of a client reaches the disk."""

    def __init__(self, runs: Sequence[GivenRun] = ()) -> None:
        self.known = known_models(runs)
        self.files = {path.name: path.read_bytes() for path in STATIC.iterdir() if path.suffix in TYPES}
        self.turns = Turns()
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def compute(self, function: Callable[[], T]) -> T:
        """Run a computation in a thread, one at a time."""
        return await anyio.to_thread.run_sync(function, limiter=self._one_at_a_time)

    def find(self, name: Any) -> Known:
        """The model of that name."""
        if not isinstance(name, str) or name not in self.known:
            raise HTTPException(404, f"unknown model; known are {', '.join(self.known)}")
        return self.known[name]

    def run(self, request: Request) -> GivenRun:
        """The run that a path names."""
        found = self.find(request.path_params["name"])
        if not isinstance(found, GivenRun):
            raise HTTPException(404, "expected the name of a run that the server was started with")
        return found

    async def page(self, request: Request) -> Response:
        """The page, or one of its files."""
        name = request.path_params.get("file", "index.html")
        if name not in self.files:
            raise HTTPException(404)
        return Response(self.files[name], media_type=TYPES[Path(name).suffix])

    async def health(self, request: Request) -> Response:
        """Whether the server answers."""
        return JSONResponse({"status": "ok", "models": len(self.known)})

    async def openapi(self, request: Request) -> Response:
        """The description of the API."""
        document = read_yaml(Path(__file__).with_name("openapi.yaml"))
        return JSONResponse(document | {"info": {**document["info"], "version": package_version("spectrakan")}})

    async def models(self, request: Request) -> Response:
        """Every model with what is known of it."""
        kinds = {name: "run" if isinstance(item, GivenRun) else "shipped" for name, item in self.known.items()}
        return JSONResponse(plain({name: {"kind": kinds[name], **item.facts} for name, item in self.known.items()}))

    async def predict(self, request: Request) -> Response:
        """Predicted frames of arrays that a client sends."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind not in ("application/json", NPZ):
            raise HTTPException(415, f"expected application/json or {NPZ}")
        wants_npz = NPZ in request.headers.get("accept", "")
        async with self.turns.body(request) as body:

            def work() -> Response:
                asked = (parse_json if kind == "application/json" else parse_npz)(body)
                name = asked.get("model") or request.query_params.get("model")
                values, seconds = predict(self.find(name).model, asked)
                if wants_npz:
                    return Response(as_npz(values), media_type=NPZ)
                return Response(as_json(values, str(name), seconds), media_type="application/json")

            return await self.compute(work)

    async def compare(self, request: Request) -> Response:
        """The solver and a model from the same state."""
        known = self.find(request.query_params.get("model"))
        cells = request.query_params.get("cells", "32")
        if not cells.isdecimal() or len(cells) > 4:
            raise HTTPException(422, "expected cells to be a number")
        async with self.turns.body(request) as body:
            content, times = await self.compute(lambda: compare(known.model, known.task, int(cells), body))
        timing = ", ".join(f"{name};dur={spent:.3f}" for name, spent in times.items())
        return Response(content, media_type=RAW, headers={"server-timing": timing})

    async def sample(self, request: Request) -> Response:
        """A sample of a run."""
        run, index = self.run(request), request.path_params["index"]
        if index >= len(run.samples):
            raise HTTPException(404, f"the run has samples 0 to {len(run.samples) - 1}")
        parts, error = await self.compute(lambda: run.sample(index))
        shapes = {name: list(part.shape) for name, part in parts.items()}
        content = b"".join(part.astype("<f4").tobytes() for part in parts.values())
        headers = {"x-shapes": json.dumps({"arrays": shapes, "relative_l2": error})}
        return Response(content, media_type=RAW, headers=headers)

    async def inside(self, request: Request) -> Response:
        """The curves and gates of a run's model."""
        run = self.run(request)
        return JSONResponse(await self.compute(lambda: run.inside))

    def routes(self) -> list[Route]:
        """All paths."""
        return [
            Route("/", self.page),
            Route("/healthz", self.health),
            Route("/api/openapi.json", self.openapi),
            Route("/api/v1/models", self.models),
            Route("/api/v1/predict", self.predict, methods=["POST"]),
            Route("/api/v1/compare", self.compare, methods=["POST"]),
            Route("/api/v1/runs/{name}/samples/{index:int}", self.sample),
            Route("/api/v1/runs/{name}/inside", self.inside),
            Route("/{file}", self.page),
        ]


def build_app(runs: Sequence[GivenRun] = (), host: str = "127.0.0.1") -> Starlette:
    """The ASGI application with the shipped models, which are read now, and some runs."""
    server = Server(runs)

    async def refused(request: Request, problem: Any) -> Response:
        status = problem.status_code
        if status == 404 and not request.url.path.startswith("/api/"):
            return Response(server.files["404.html"], 404, media_type="text/html")
        extra = {"retry-after": "1"} if status == 503 else None
        return JSONResponse({"error": problem.detail}, status, headers=extra)

    return Starlette(
        routes=server.routes(),
        middleware=[Middleware(Guard, host=host)],
        exception_handlers={HTTPException: refused},
    )


def server_config(app: Starlette, host: str, port: int) -> uvicorn.Config:
    """Uvicorn's settings: quiet, and with bounds on headers and connections."""
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",
        ws="none",
        log_level="warning",
        server_header=False,
        limit_concurrency=256,
        timeout_keep_alive=5,
        h11_max_incomplete_event_size=16384,
    )


def serve(runs: Sequence[GivenRun], host: str, port: int, started: Callable[[str], None]) -> None:
    """Answer requests until the process is stopped; `started` is called with the page's address."""
    # Fields this small gain nothing from a second thread, which the browser needs.
    torch.set_num_threads(1)
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = socket.create_server((host, port), family=family, backlog=256)
    except OSError as problem:
        reason = str(problem.strerror).partition(" (")[0]
        raise ConfigError(f"cannot listen on port {port} of {host}: {reason}; --port 0 takes a free one") from None

    server = uvicorn.Server(server_config(build_app(runs, host), host, port))
    name = f"[{host}]" if ":" in host else host
    started(f"http://{name}:{bound.getsockname()[1]}/")  # whoever connects now is answered once the server runs
    server.run([bound])
