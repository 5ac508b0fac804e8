"""Start and stop of the service: one process serves one learner at one address."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image
from starlette.types import ASGIApp

from siesta.errors import BadInput
from siesta.service.app import make_app
from siesta.service.events import EventHub, make_sinks
from siesta.service.metrics import Metrics
from siesta.service.options import ServiceOptions
from siesta.service.protocol import HttpProtocol
from siesta.service.tokens import Scope, TokenStore
from siesta.service.worker import LearnerThread
from siesta.sleep.job import SleepJob

__all__ = [
    "bound_socket",
    "check_tls",
    "new_token",
    "private_files",
    "public_address",
    "run_app",
    "serve",
    "warn_without_tls",
]

_BACKLOG = 128
_ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104 - only compared with
_TEST_ADDRESS = ("192.0.2.1", 9)  # reserved for documentation (RFC 5737); nothing is sent to it
_WITHOUT_TLS = (
    "Tokens and images cross the network unencrypted: give --tls-cert and --tls-key, or use a proxy with TLS."
)
_ALLOWED: dict[Scope, str] = {"ask": "ask", "teach": "teach and ask", "sleep": "send packs"}


def serve(path: Path, options: ServiceOptions, notify: Callable[[str], None]) -> None:
    """Serve a learner until SIGTERM or Ctrl-C, then finish all accepted requests.

    Args:
        path: Folder of the learner.
        options: Options of the service.
        notify: Called with each message for the user.
    """
    check_tls(options)
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the service's own limit is lower
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    metrics = Metrics()
    events = EventHub(path.name, SleepJob(path), make_sinks(options.events, path.name), options.events.predictions)
    worker = LearnerThread(path, metrics, durability=options.durability, thumbnails=options.thumbnails, events=events)
    with bound_socket(options) as listener, private_files():
        worker.open()
        events.start()
        try:
            address = public_address(options, listener)
            secret = new_token(TokenStore(worker.path), options, "teach", notify)
            notify(f"Open {address}" if secret is None else f"Open {address}/#token={secret}")
            warn_without_tls(options, notify)
            asyncio.run(run_app(lambda closing: make_app(worker, options, metrics, closing), options, listener))
        finally:
            worker.close()
            events.close()
    notify("The service has stopped; all accepted requests were finished.")


@contextmanager
def private_files() -> Iterator[None]:
    """Let only the user of this process read what it makes in the learner's folder."""
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


async def run_app(make: Callable[[asyncio.Event], ASGIApp], options: ServiceOptions, listener: socket.socket) -> None:
    """Serve an application until SIGTERM or Ctrl-C.

    Args:
        make: Makes it, given the event that is set when the service stops.
        options: Options of the service.
        listener: Socket to serve at.
    """
    closing = asyncio.Event()
    config = uvicorn.Config(
        make(closing),
        http=HttpProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        timeout_graceful_shutdown=int(options.limits.seconds) + 1,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )
    await _Server(config, closing).serve([listener])


class _Server(uvicorn.Server):
    """Server that ends event streams when it is stopped, which uvicorn would wait for."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self._closing = closing

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self._closing.set()
        self.force_exit = self.should_exit  # a second signal stops it without finishing requests
        self.should_exit = True


@contextmanager
def bound_socket(options: ServiceOptions) -> Iterator[socket.socket]:
    """Bind the socket before the learner is opened, so that an unusable address is reported at once."""
    try:
        first = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        address = first[-1]
        listener = socket.socket(*first[:3])  # family, type and protocol
    except (OSError, UnicodeError, OverflowError) as error:
        raise BadInput(
            f"'{options.host}' is not an address to listen on ({error}): give another with --host"
        ) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            message = f"cannot listen on {options.host}, port {options.port} ({error})"
            raise BadInput(f"{message}: give another with --host or --port") from error
        yield listener


def check_tls(options: ServiceOptions) -> None:
    """Raise `BadInput` if certificate and key cannot be used."""
    if options.certificate is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key, password=lambda: _refuse_password(options.key))
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise BadInput(
            f"{options.certificate} and {options.key} are not a certificate and its key ({error}): give both in PEM"
        ) from error


def _refuse_password(key: Path | None) -> str:
    """Raise instead of asking for a password, because there may be no terminal."""
    raise BadInput(f"{key} is encrypted: give a key without a password (`openssl pkey -in KEY -out NEW` creates one)")


def public_address(options: ServiceOptions, listener: socket.socket) -> str:
    """Return the address of a service, for its users."""
    scheme = "http" if options.certificate is None else "https"
    name = _public_name(options)
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{listener.getsockname()[1]}"


def new_token(tokens: TokenStore, options: ServiceOptions, scope: Scope, notify: Callable[[str], None]) -> str | None:
    """At the first start that needs a token, create one and show it, once only; return it."""
    if options.loopback_only or tokens.all():
        return None
    secret = tokens.new(scope)
    notify(f"A token to {_ALLOWED[scope]} with, shown this once: {secret}")
    return secret


def warn_without_tls(options: ServiceOptions, notify: Callable[[str], None]) -> None:
    """Warn if a service that other machines can reach has no TLS."""
    if not options.loopback_only and options.certificate is None:
        notify(_WITHOUT_TLS)


def _public_name(options: ServiceOptions) -> str:
    """Return a name for the address: that of the outgoing interface if the service listens on all of them."""
    if options.hosts:
        return options.hosts[0]
    if options.host not in _ALL_INTERFACES:
        return options.host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_TEST_ADDRESS)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
