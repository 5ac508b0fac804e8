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

from siesta.errors import BadInput
from siesta.service.app import make_app
from siesta.service.events import EventHub, make_sinks
from siesta.service.metrics import Metrics
from siesta.service.options import ServiceOptions
from siesta.service.protocol import HttpProtocol
from siesta.service.tokens import TokenStore
from siesta.service.worker import LearnerThread
from siesta.sleep.job import SleepJob

__all__ = ["serve"]

_BACKLOG = 128
_ALL_INTERFACES = ("0.0.0.0", "::")  # noqa: S104 - only compared with
_TEST_ADDRESS = ("192.0.2.1", 9)  # reserved for documentation (RFC 5737); nothing is sent to it
_WITHOUT_TLS = (
    "Tokens and images cross the network unencrypted: give --tls-cert and --tls-key, or use a proxy with TLS."
)


def serve(path: Path, options: ServiceOptions, notify: Callable[[str], None]) -> None:
    """Serve a learner until SIGTERM or Ctrl-C, then finish all accepted requests.

    Args:
        path: Folder of the learner.
        options: Options of the service.
        notify: Called with each message for the user.
    """
    _check_tls(options)
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # the service's own limit is lower
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    metrics = Metrics()
    events = EventHub(path.name, SleepJob(path), make_sinks(options.events, path.name), options.events.predictions)
    worker = LearnerThread(path, metrics, durability=options.durability, thumbnails=options.thumbnails, events=events)
    with _bound_socket(options) as listener, _private_files():
        worker.open()
        events.start()
        try:
            _announce(TokenStore(worker.path), options, listener, notify)
            asyncio.run(_serve(worker, options, metrics, listener))
        finally:
            worker.close()
            events.close()
    notify("The service has stopped; all accepted requests were finished.")


@contextmanager
def _private_files() -> Iterator[None]:
    """Let only the user of this process read what it makes in the learner's folder."""
    previous = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(previous)


async def _serve(worker: LearnerThread, options: ServiceOptions, metrics: Metrics, listener: socket.socket) -> None:
    closing = asyncio.Event()
    config = uvicorn.Config(
        make_app(worker, options, metrics, closing),
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
def _bound_socket(options: ServiceOptions) -> Iterator[socket.socket]:
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


def _check_tls(options: ServiceOptions) -> None:
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


def _announce(
    tokens: TokenStore, options: ServiceOptions, listener: socket.socket, notify: Callable[[str], None]
) -> None:
    """Show the address; at the first start that needs a token, create one and show it, once only."""
    scheme = "http" if options.certificate is None else "https"
    name = _public_name(options)
    address = f"{scheme}://{f'[{name}]' if ':' in name else name}:{listener.getsockname()[1]}"
    if not options.loopback_only and not tokens.all():
        secret = tokens.new("teach")
        notify(f"A token to teach and ask with, shown this once: {secret}")
        notify(f"Open {address}/#token={secret}")
    else:
        notify(f"Open {address}")
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
