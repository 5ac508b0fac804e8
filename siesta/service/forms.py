"""Forms with pictures, read more strictly than the framework does: text is UTF-8, and a body has an end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

__all__ = ["FormRoute"]


class FormRoute(APIRoute):
    """A route whose form is read so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's own, with another kind of request."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_Request(request.scope, request.receive))

        return handle


class _Request(Request):
    async def _get_form(self, **limits: Any) -> FormData:
        if self._form is None and self.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            parser = _Parser(self.headers, self.stream(), **limits)
            try:
                self._form = await parser.parse()
            except MultiPartException as error:
                raise HTTPException(400, error.message) from error
            if not parser.ended:
                await self._form.close()
                raise HTTPException(400, "the body ended before its end: send it again")
        return await super()._get_form(**limits)


class _Parser(MultiPartParser):
    """Refuses what would be taken for something else."""

    ended = False

    def on_part_end(self) -> None:
        """Refuses text that is not UTF-8, which would be read as other letters."""
        part = self._current_part
        if part.file is None:
            try:
                part.data.decode("utf-8")
            except UnicodeDecodeError:
                raise HTTPException(422, f"{part.field_name} is not UTF-8: send text as UTF-8") from None
        super().on_part_end()

    def on_end(self) -> None:
        """Notes that the last boundary came."""
        self.ended = True
