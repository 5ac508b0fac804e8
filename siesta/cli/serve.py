"""Commands of the HTTP services: serve, sleeper, token."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from siesta.cli.options import JsonOption, PathArgument, SleeperOption, SleeperTokenFileOption
from siesta.cli.output import console, err_console, print_json, print_result
from siesta.cli.serve_options import (
    AllowHostOption,
    CertificateOption,
    DiscoveryOption,
    DurabilityOption,
    HostOption,
    KeyOption,
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

__all__ = ["serve", "sleeper", "token"]

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
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    allow_host: AllowHostOption = None,
    allow_origin: OriginOption = None,
    sleeper: SleeperOption = None,
    sleeper_token_file: SleeperTokenFileOption = None,
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
    limits = RequestLimits(parse_bytes(max_body), max_pixels, max_images, queue, timeout)
    hosts, origins = tuple(allow_host or ()), tuple(allow_origin or ())
    events = EventOptions.of(
        mqtt, mqtt_password_file, mqtt_discovery, webhook or (), webhook_secret_file, publish_predictions
    )
    options = ServiceOptions(host, port, limits, durability, thumbnails, hosts, origins, tls_cert, tls_key)
    options = replace(options, events=events, sleeper=sleeper, sleeper_token=sleeper_token_file)
    run(path, options, lambda message: err_console.print(message))


def sleeper(
    folder: Annotated[Path, typer.Argument(help="Where packs and tokens are kept; made if it does not exist.")],
    host: HostOption = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes any free port.", min=0, max=65535)] = 8001,
    max_pack: Annotated[str, typer.Option(help="Largest pack, in bytes.")] = "1GiB",
    packs: Annotated[int, typer.Option(help="Packs at a time; they sleep one after the other.", min=1)] = 4,
    threads: Annotated[int, typer.Option(help="Threads of a sleep.", min=1)] = 1,
    nice: Annotated[int, typer.Option(help="Niceness of a sleep, 0 to 19.", min=0, max=19)] = 10,
    timeout: Annotated[float, typer.Option(help="Time limit of a request, in seconds.")] = 600.0,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    allow_host: AllowHostOption = None,
) -> None:
    """Train in place of devices whose siesta serve or siesta sleep has --sleeper; Ctrl-C stops it.

    Example: siesta sleeper packs
    """
    from siesta.errors import BadInput
    from siesta.store import parse_bytes

    try:
        from siesta.service.options import RequestLimits, ServiceOptions
        from siesta.service.sleeper import serve_sleeper
    except ModuleNotFoundError as error:
        raise BadInput(f"the service needs {error.name}: pip install 'siesta-learn[serve]'") from error
    options = ServiceOptions(
        host=host,
        port=port,
        limits=RequestLimits(body_bytes=parse_bytes(max_pack), seconds=timeout),
        hosts=tuple(allow_host or ()),
        certificate=tls_cert,
        key=tls_key,
    )
    serve_sleeper(folder, options, packs, threads, nice, lambda message: err_console.print(message))


@token.command("new")
def token_new(
    path: PathArgument,
    scope: Annotated[
        str,
        typer.Option(help="What it allows: ask (predict, read), teach (also change it), or sleep (send packs)."),
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
    from siesta.service.tokens import PACKS, TokenStore
    from siesta.store import require_learner

    if not (path / PACKS).is_dir():  # the folder of a sleeper has tokens, too
        require_learner(path)
    return TokenStore(path)
