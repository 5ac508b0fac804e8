"""Commands of the HTTP service: serve, token."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument
from siesta.cli.output import console, err_console, print_json, print_result
from siesta.cli.serve_options import (
    DiscoveryOption,
    DurabilityOption,
    HostOption,
    MqttOption,
    MqttPasswordFileOption,
    OriginOption,
    PublishPredictionsOption,
    ThumbnailsOption,
    WebhookOption,
    WebhookSecretFileOption,
)

if TYPE_CHECKING:
    from siesta.service.tokens import TokenStore

__all__ = ["serve", "token"]

token = typer.Typer(
    help="Manage access tokens of a service that other machines can reach.\n\n"
    "Example: siesta token new birds.siesta --scope ask",
    no_args_is_help=True,
)


def serve(
    path: PathArgument,
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free port.", min=0, max=65535)] = 8000,
    durability: DurabilityOption = "process",
    thumbnails: ThumbnailsOption = True,
    max_body: Annotated[str, typer.Option(help="Largest body of a request, in bytes.")] = "32MiB",
    max_pixels: Annotated[int, typer.Option(help="Largest number of pixels of an image.", min=1)] = 100_000_000,
    max_images: Annotated[int, typer.Option(help="Largest number of images of a request.", min=1)] = 32,
    queue: Annotated[int, typer.Option(help="Requests with images at a time; more get 429.", min=1)] = 64,
    timeout: Annotated[float, typer.Option(help="Time limit of a request, in seconds.")] = 30.0,
    tls_cert: Annotated[Path | None, typer.Option(help="TLS certificate in PEM, for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key of the certificate in PEM.")] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="Further host name to accept; repeatable.")] = None,
    allow_origin: OriginOption = None,
    mqtt: MqttOption = None,
    mqtt_password_file: MqttPasswordFileOption = None,
    mqtt_discovery: DiscoveryOption = "homeassistant",
    webhook: WebhookOption = None,
    webhook_secret_file: WebhookSecretFileOption = None,
    publish_predictions: PublishPredictionsOption = False,
) -> None:
    """Serve a learner over HTTP, with a web page; Ctrl-C stops it.

    Example: siesta serve birds.siesta
    """
    from siesta.errors import BadInput
    from siesta.store import parse_bytes

    try:
        from siesta.service.events import EventOptions
        from siesta.service.options import RequestLimits, ServiceOptions
        from siesta.service.server import serve as run
    except ModuleNotFoundError as error:
        raise BadInput(f"the service needs {error.name}: pip install 'siesta-learn[serve]'") from error
    options = ServiceOptions(
        host=host,
        port=port,
        limits=RequestLimits(parse_bytes(max_body), max_pixels, max_images, queue, timeout),
        durability=durability,
        thumbnails=thumbnails,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        certificate=tls_cert,
        key=tls_key,
        events=EventOptions.of(
            mqtt, mqtt_password_file, mqtt_discovery, webhook or (), webhook_secret_file, publish_predictions
        ),
    )
    run(path, options, lambda message: err_console.print(message))


@token.command("new")
def token_new(
    path: PathArgument,
    scope: Annotated[
        str, typer.Option(help="What the token allows: ask (predict, read) or teach (also change the learner).")
    ] = "teach",
    as_json: JsonOption = False,
) -> None:
    """Create a token and print it; it is not shown again.

    Example: siesta token new birds.siesta --scope ask
    """
    from siesta.errors import BadInput
    from siesta.service.tokens import SCOPES

    for known in SCOPES:
        if known == scope:
            secret = _token_store(path).new(known)
            print_result(secret, as_json, token=secret, scope=known)
            return
    raise BadInput(f"there is no scope '{scope}': choose one of {', '.join(SCOPES)}")


@token.command("list")
def token_list(path: PathArgument, as_json: JsonOption = False) -> None:
    """List the tokens: id, scope and date of creation.

    Example: siesta token list birds.siesta
    """
    records = _token_store(path).all()
    if as_json:
        print_json([{"id": record.id, "scope": record.scope, "made": record.made} for record in records])
        return
    for record in records:
        console.print(f"{record.id}  {record.scope:5}  {record.made}")


@token.command("revoke")
def token_revoke(
    path: PathArgument,
    token_id: Annotated[str, typer.Argument(help="Id as siesta token list shows it.", metavar="ID")],
    as_json: JsonOption = False,
) -> None:
    """Revoke a token; running services refuse it at once.

    Example: siesta token revoke birds.siesta 1f3a5c7e
    """
    _token_store(path).revoke(token_id)
    print_result(f"Token {token_id} is revoked.", as_json, revoked=token_id)


def _token_store(path: Path) -> TokenStore:
    from siesta.service.tokens import TokenStore
    from siesta.store import require_learner

    require_learner(path)
    return TokenStore(path)
