"""Routes of a sleeper: receive a pack, sleep on it, say how far it is, hand back the result, and delete it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request
from fastapi.responses import FileResponse, Response

from siesta.learner.pack import has_bottom
from siesta.service.deps import problems
from siesta.service.endpoints import SLEEP
from siesta.service.pack_schemas import BottomResponse, PackResponse, PackSleepRequest
from siesta.service.packs import PackQueue, ReceivedPack
from siesta.service.problems import Problem
from siesta.service.routes.sleep import status_response
from siesta.service.schemas import SleepStatusResponse
from siesta.sleep.options import SleepOptions

__all__ = ["router"]

_PACK = "application/octet-stream"
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}

router = APIRouter(prefix="/v1", tags=["packs"], responses=problems(400, 401, 403, 404, 429, 500, 503))
PackId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="Id that the sleeper has given to a pack.")]
Sha256 = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 of the file of a bottom.")]


def _queue(request: Request) -> PackQueue:
    queue: PackQueue = request.app.state.packs
    return queue


def _status(pack: ReceivedPack) -> SleepStatusResponse:
    """Return the status of a pack's sleep, without the place of its file."""
    status = status_response(pack.status())
    return status.model_copy(update={"words": status.words.replace(str(pack.file), "the pack")})


@router.get("/bottoms/{sha256}", dependencies=[SLEEP], responses=problems(422))
async def bottom(sha256: Sha256) -> BottomResponse:
    """Whether the sleeper has the bottom with this hash, so that a pack needs none."""
    return BottomResponse(known=has_bottom(sha256))


@router.post(
    "/packs",
    dependencies=[SLEEP],
    status_code=201,
    responses=problems(413, 422),
    openapi_extra={"requestBody": {"required": True, "content": {_PACK: _BINARY}}},
)
async def send_pack(request: Request) -> PackResponse:
    """Send a pack, the body of the request; it is deleted when no device has asked for it for two minutes."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal():
        raise Problem(400, "the length of the pack is missing: send it with a Content-Length")
    pack = await _queue(request).receive(request.stream(), int(length))
    return PackResponse(id=pack.id)


@router.post("/packs/{pack_id}/sleep", dependencies=[SLEEP], status_code=202, responses=problems(422))
async def sleep_on_pack(request: Request, pack_id: PackId, options: PackSleepRequest) -> SleepStatusResponse:
    """Sleep on a pack as soon as the sleeper has slept on those that came before."""
    return _status(_queue(request).sleep(pack_id, SleepOptions(**options.model_dump(exclude_unset=True))))


@router.get("/packs/{pack_id}/sleep", dependencies=[SLEEP], responses=problems(422))
async def pack_status(request: Request, pack_id: PackId) -> SleepStatusResponse:
    """Status of the sleep on a pack; it also keeps the pack for another two minutes."""
    return _status(_queue(request).get(pack_id))


@router.post("/packs/{pack_id}/sleep/{command}", dependencies=[SLEEP], status_code=202, responses=problems(409, 422))
async def command_sleep(
    request: Request, pack_id: PackId, command: Literal["pause", "resume", "wake"]
) -> SleepStatusResponse:
    """Pause a sleep, continue it, or end it after the current batch and keep what it has trained."""
    pack = _queue(request).get(pack_id)
    if not pack.status().running or pack.waits:
        raise Problem(409, f"the pack is not asleep: there is nothing to {command}")
    getattr(pack.job, command)()
    return _status(pack)


@router.get("/packs/{pack_id}", dependencies=[SLEEP], response_class=FileResponse, responses=problems(409, 422))
async def fetch_pack(request: Request, pack_id: PackId) -> FileResponse:
    """Fetch the result of a sleep."""
    return FileResponse(_queue(request).result(pack_id), media_type=_PACK)


@router.delete("/packs/{pack_id}", dependencies=[SLEEP], status_code=204, responses=problems(422))
async def delete_pack(request: Request, pack_id: PackId) -> Response:
    """Delete a pack; its sleep ends at once."""
    await _queue(request).remove(pack_id)
    return Response(status_code=204)
