"""Routes that take images or vectors, and stricter parsing of their forms than the framework's.

Text has to be UTF-8, and truncated bodies are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

__all__ = ["ImageRoute", "QueuedRoute"]


class QueuedRoute(APIRoute):
    """Route that takes images or vectors; its requests occupy the queue."""


class ImageRoute(QueuedRoute):
    """Route that takes images in a multipart form, which is parsed strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the framework's handler, called with a request that parses strictly."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await handler(_MultipartRequest(request.scope, request.receive))

        return handle


class _MultipartRequest(Request):
    async def _get_form(self, **limits: Any) -> FormData:
        if self._form is None and self.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            parser = _StrictParser(self.headers, self.stream(), **limits)
            try:
                self._form = await parser.parse()
            except MultiPartException as error:
                raise HTTPException(400, error.message) from error
            if not parser.complete:
                parser.close_files()
                raise HTTPException(400, "the body ends before its last boundary: send it again")
        return await super()._get_form(**limits)


class _StrictParser(MultiPartParser):
    """Parser that refuses text which is not UTF-8 and notes whether the form is complete."""

    complete = False

    def on_part_begin(self) -> None:
        """Read names and text as UTF-8, whatever charset the content type declares; some cannot even decode."""
        self._charset = "utf-8"
        super().on_part_begin()

    def on_part_end(self) -> None:
        """Refuse text that is not UTF-8, which the framework would decode as Latin-1."""
        part = self._current_part
        if part.file is None:
            try:
                part.data.decode("utf-8")
            except UnicodeDecodeError:
                raise HTTPException(422, f"{part.field_name} is not UTF-8: send text as UTF-8") from None
        super().on_part_end()

    def close_files(self) -> None:
        """Close the temporary files of all parts, complete or not."""
        for file in self._files_to_close_on_error:
            file.close()

    def on_end(self) -> None:
        """Note that the last boundary was received."""
        self.complete = True
