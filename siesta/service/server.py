"""Starting and stopping: one process, one learner, one address."""

from __future__ import annotations

import asyncio
import logging
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
from siesta.service.desk import Desk
from siesta.service.metrics import Metrics
from siesta.service.options import Options
from siesta.service.tokens import Tokens

__all__ = ["serve"]

_BACKLOG = 128
_EVERY = ("0.0.0.0", "::")  # noqa: S104 - to be recognised
_WITHOUT_TLS = "Tokens and pictures go over the net as they are: give --tls-cert and --tls-key, or a proxy with TLS."


def serve(path: Path, options: Options, say: Callable[[str], None]) -> None:
    """Serves a learner until SIGTERM or Ctrl-C; then every request that was accepted is answered first.

    Args:
        path: The learner's folder.
        options: Where to listen, what to allow.
        say: Is told what people should read.
    """
    _check_tls(options)
    warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is lower
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    metrics = Metrics()
    desk = Desk(path, metrics, durability=options.durability, thumbnails=options.thumbnails)
    with _listening(options) as listener:
        desk.open()
        try:
            _announce(Tokens(desk.path), options, listener, say)
            asyncio.run(_serve(desk, options, metrics, listener))
        finally:
            desk.close()
    say("Everything that was accepted is done. Good night.")


async def _serve(desk: Desk, options: Options, metrics: Metrics, listener: socket.socket) -> None:
    closing = asyncio.Event()
    config = uvicorn.Config(
        make_app(desk, options, metrics, closing),
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
    """Ends streams when it is told to end, for they would not by themselves."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self._closing = closing

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        yield

    def _end(self) -> None:
        self._closing.set()
        self.force_exit = self.should_exit  # told twice, it waits for nobody any more
        self.should_exit = True


@contextmanager
def _listening(options: Options) -> Iterator[socket.socket]:
    """A socket that is bound, so that an address that cannot be used is said at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError, OverflowError) as error:
        raise BadInput(f"{options.host} is no address to listen at ({error}): give another with --host") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            words = f"cannot listen at {options.host}, port {options.port} ({error})"
            raise BadInput(f"{words}: give another with --host or --port") from error
        yield listener


def _check_tls(options: Options) -> None:
    if options.certificate is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key, password=lambda: _no_password(options.key))
    except (OSError, ValueError) as error:  # of which an error of TLS is one
        raise BadInput(f"{options.certificate} and {options.key} are no certificate and its key ({error})") from error


def _no_password(key: Path | None) -> str:
    """Nobody may be there to type one."""
    raise BadInput(f"{key} is encrypted: give a key without a password (`openssl pkey -in KEY -out NEW` makes one)")


def _announce(tokens: Tokens, options: Options, listener: socket.socket, say: Callable[[str], None]) -> None:
    """Says where it is; at the first start that needs one, makes a token and shows it this once."""
    scheme = "http" if options.certificate is None else "https"
    name = _name(options)
    address = f"{scheme}://{f'[{name}]' if ':' in name else name}:{listener.getsockname()[1]}"
    if not options.local and not tokens.all():
        secret = tokens.new("teach")
        say(f"A token to teach and ask with, shown this once: {secret}")
        say(f"Open {address}/#token={secret}")
    else:
        say(f"Open {address}")
    if not options.local and options.certificate is None:
        say(_WITHOUT_TLS)


def _name(options: Options) -> str:
    """What people may call it: of every address of this machine, the one that leads out."""
    if options.hosts:
        return options.hosts[0]
    if options.host not in _EVERY:
        return options.host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        try:
            unsent.connect(("192.0.2.1", 9))  # an address that is nobody's; nothing is sent
        except OSError:
            return "127.0.0.1"
        return str(unsent.getsockname()[0])
