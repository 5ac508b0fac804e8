"""Commands of the service: serve, token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siesta.cli.learner import JsonOption, PathArgument
from siesta.cli.output import console, errors, print_json, say

if TYPE_CHECKING:
    from siesta.service.tokens import Tokens

__all__ = ["serve", "token"]

token = typer.Typer(
    help="Who may use a service that is not on loopback alone.\n\nExample: siesta token new birds.siesta --scope ask",
    no_args_is_help=True,
)


def serve(
    path: PathArgument,
    host: Annotated[str, typer.Option(help="Address to listen at; any but loopback asks for tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="There; 0 takes any that is free.", min=0, max=65535)] = 8000,
    durability: Annotated[
        str,
        typer.Option(help="What acknowledged samples survive: the death of the process, or of the machine (power)."),
    ] = "process",
    thumbnails: Annotated[
        bool, typer.Option("--thumbnails/--no-thumbnails", help="Keep small pictures of samples, in the budget.")
    ] = True,
    max_body: Annotated[str, typer.Option(help="Bytes of a request.")] = "32MiB",
    max_pixels: Annotated[int, typer.Option(help="Pixels of a picture.", min=1)] = 50_000_000,
    max_images: Annotated[int, typer.Option(help="Pictures of a request.", min=1)] = 32,
    queue: Annotated[int, typer.Option(help="Requests with pictures at a time; more are told to wait.", min=1)] = 64,
    timeout: Annotated[float, typer.Option(help="Seconds for a request.")] = 30.0,
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate in PEM, for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="Another name to answer to; may be repeated.")] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="A site whose scripts may call it; may be repeated.")
    ] = None,
) -> None:
    """Serve a learner over HTTP, with a page to teach, ask and sleep; Ctrl-C ends it.

    Example: siesta serve birds.siesta
    """
    from siesta.errors import BadInput
    from siesta.store import parse_bytes

    try:
        from siesta.service.options import Limits, Options
        from siesta.service.server import serve as run
    except ModuleNotFoundError as error:
        raise BadInput(f"the service needs {error.name}: pip install 'siesta-learn[serve]'") from error
    run(
        path,
        Options(
            host=host,
            port=port,
            limits=Limits(parse_bytes(max_body), max_pixels, max_images, queue, timeout),
            durability=durability,
            thumbnails=thumbnails,
            hosts=tuple(allow_host or ()),
            origins=tuple(allow_origin or ()),
            certificate=tls_cert,
            key=tls_key,
        ),
        lambda words: errors.print(words),
    )


@token.command("new")
def token_new(
    path: PathArgument,
    scope: Annotated[str, typer.Option(help="What it allows: ask, or teach, which includes it.")] = "teach",
    as_json: JsonOption = False,
) -> None:
    """Make a token; it is shown this once.

    Example: siesta token new birds.siesta --scope ask
    """
    from siesta.errors import BadInput
    from siesta.service.tokens import SCOPES

    for known in SCOPES:
        if known == scope:
            made = _tokens(path).new(known)
            say(made, as_json, token=made, scope=known)
            return
    raise BadInput(f"there is no scope '{scope}': choose one of {', '.join(SCOPES)}")


@token.command("list")
def token_list(path: PathArgument, as_json: JsonOption = False) -> None:
    """List tokens: id, what each allows, and when it was made.

    Example: siesta token list birds.siesta
    """
    found = _tokens(path).all()
    if as_json:
        print_json([{"id": one.id, "scope": one.scope, "made": one.made} for one in found])
        return
    for one in found:
        console.print(f"{one.id}  {one.scope:5}  {one.made}")


@token.command("revoke")
def token_revoke(
    path: PathArgument,
    token_id: Annotated[str, typer.Argument(help="As siesta token list shows it.", metavar="ID")],
    as_json: JsonOption = False,
) -> None:
    """Let nobody in with a token any more; services that run know it at once.

    Example: siesta token revoke birds.siesta 1f3a5c7e
    """
    _tokens(path).revoke(token_id)
    say(f"Token {token_id} is revoked.", as_json, revoked=token_id)


def _tokens(path: Path) -> Tokens:
    from siesta.errors import BadInput
    from siesta.service.tokens import Tokens

    if not (path / "store.sqlite").is_file():
        raise BadInput(f"there is no learner at {path}: make one with `siesta new {path}`")
    return Tokens(path)
