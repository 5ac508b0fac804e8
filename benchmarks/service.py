"""Load on the service during a sleep, the same work by the library alone, and samples lost when it is killed."""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.learners import noise
from benchmarks.measure import Row, row
from siesta.errors import BadInput
from siesta.learner import Siesta
from siesta.sleep.job import SleepJob

__all__ = ["run"]

_READERS = 32
_WRITERS = 4
_IMAGES = 64
_CLASSES = 10
_BOUNDARY = "part-boundary"


@dataclass
class _ClientLog:
    """Responses to one client: latencies, statuses other than 200, and the labels of acknowledged samples by id."""

    seconds: list[float] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    stored: dict[int, str] = field(default_factory=dict)


def run(image_size: int = 224, seconds: float = 60.0) -> Iterator[Row]:
    """Yield latencies of the library and of the service, each during a sleep, and what a kill of the service loses."""
    files = [_jpeg(picture) for picture in noise(_IMAGES, image_size)]
    config: Row = {"image_size": image_size, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "load.siesta"
        with Siesta.create(path, image_size=image_size) as learner:
            learner.learn_many(map(_decode, files), map(_label, range(_IMAGES)))
            library = _run_library(learner, files, seconds / 4)
        for name, log in library.items():
            yield from _rows(f"bare_{name}", [log], config)
        readers, writers, lost = _run_service(path, files, seconds)
    config |= {"askers": _READERS, "teachers": _WRITERS}
    yield from _rows("service_predict", readers, config)
    yield from _rows("service_learn", writers, config)
    refused = [status for log in readers + writers for status in log.refused]
    yield row("service_errors", sum(status != 429 for status in refused), "requests", "= 0", **config)
    yield row("service_told_to_wait", sum(status == 429 for status in refused), "requests", **config)
    acknowledged = sum(len(log.stored) for log in writers)
    yield row("lost_after_kill", lost, "samples", "= 0", acknowledged=acknowledged, **config)


def _rows(name: str, logs: list[_ClientLog], config: Row) -> Iterator[Row]:
    times = np.array([seconds for log in logs for seconds in log.seconds])
    for percent in (50, 95):
        yield row(f"{name}_p{percent}", 1e3 * float(np.percentile(times, percent)), "ms", **config)
    duration = max(sum(log.seconds) for log in logs)
    yield row(f"{name}_rate", len(times) / duration, "1/s", **config)


def _run_library(learner: Siesta, files: list[bytes], seconds: float) -> dict[str, _ClientLog]:
    """Predict, then learn, in this process during a background sleep; files are decoded as in the service."""
    works: dict[str, Callable[[int], object]] = {
        "predict": lambda number: learner.predict_one(_decode(files[number % _IMAGES])),
        "learn": lambda number: learner.learn_one(_decode(files[number % _IMAGES]), _label(number)),
    }
    logs = {}
    job = learner.sleep_async(seconds=2 * seconds + 60)
    for name, work in works.items():
        log = _ClientLog()
        end = time.monotonic() + seconds / 2
        number = 0
        while (start := time.monotonic()) < end:
            work(number)
            log.seconds.append(time.monotonic() - start)
            number += 1
        logs[name] = log
    job.wake()
    job.wait()
    return logs


def _run_service(path: Path, files: list[bytes], seconds: float) -> tuple[list[_ClientLog], list[_ClientLog], int]:
    """Return the logs of readers and writers, and the number of acknowledged samples that a kill lost."""
    output = path.with_suffix(".log")
    with output.open("wb") as stream:
        command = [sys.executable, "-m", "siesta", "serve", str(path), "--port", "0"]
        server = subprocess.Popen(command, stdout=stream, stderr=stream, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        port = _port(output)
        _call(http.client.HTTPConnection("127.0.0.1", port), "/v1/sleep", json.dumps({"seconds": seconds + 60}))
        readers = [_ClientLog() for _ in range(_READERS)]
        writers = [_ClientLog() for _ in range(_WRITERS)]
        end = time.monotonic() + seconds
        clients = [Thread(target=_predict, args=(port, files, end, *item)) for item in enumerate(readers)]
        clients += [Thread(target=_learn, args=(port, files, end, *item)) for item in enumerate(writers)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    job = SleepJob(path)
    if job.status().running:
        job.wake()
        job.wait()
    return readers, writers, _count_lost(path, writers)


def _port(output: Path) -> int:
    """Wait until the service prints its address, and return the port."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        match = re.search(r"Open http://[^:]+:(\d+)", output.read_text("utf-8"))
        if match:
            return int(match[1])
        time.sleep(0.1)
    raise BadInput(f"the service did not start: {output.read_text('utf-8')}")


def _predict(port: int, files: list[bytes], end: float, number: int, log: _ClientLog) -> None:
    bodies = [_body(file) for file in files]
    _send_requests(
        port, end, log, lambda count: ("/v1/predict", bodies[(7 * number + count) % _IMAGES]), lambda _, __: None
    )


def _learn(port: int, files: list[bytes], end: float, number: int, log: _ClientLog) -> None:
    bodies = [_body(file, _label(index)) for index, file in enumerate(files)]

    def remember(count: int, answer: dict[str, Any]) -> None:
        log.stored[answer["ids"][0]] = _label((7 * number + count) % _IMAGES)

    _send_requests(port, end, log, lambda count: ("/v1/learn", bodies[(7 * number + count) % _IMAGES]), remember)


def _send_requests(
    port: int,
    end: float,
    log: _ClientLog,
    request: Callable[[int], tuple[str, bytes]],
    remember: Callable[[int, dict[str, Any]], None],
) -> None:
    """Send one request after the other until `end`, and pass each answer to `remember`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    count = 0
    while (start := time.monotonic()) < end:
        status, answer = _call(connection, *request(count), content_type=f"multipart/form-data; boundary={_BOUNDARY}")
        if status == 200:
            log.seconds.append(time.monotonic() - start)
            remember(count, answer)
        else:
            log.refused.append(status)
            time.sleep(1)
        count += 1


def _call(
    connection: http.client.HTTPConnection, path: str, body: str | bytes, content_type: str = "application/json"
) -> tuple[int, dict[str, Any]]:
    connection.request("POST", path, body, {"Content-Type": content_type})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def _count_lost(path: Path, writers: list[_ClientLog]) -> int:
    """Count acknowledged samples that are missing or have another label."""
    lost = 0
    with Siesta.open(path, read_only=True) as learner:
        for sample_id, label in (item for log in writers for item in log.stored.items()):
            try:
                lost += learner.label_of(sample_id) != label
            except BadInput:
                lost += 1
    return lost


def _body(file: bytes, label: str | None = None) -> bytes:
    head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
    named = "" if label is None else f'\r\n--{_BOUNDARY}\r\nContent-Disposition: form-data; name="label"\r\n\r\n{label}'
    return head.encode() + file + f"{named}\r\n--{_BOUNDARY}--\r\n".encode()


def _jpeg(pixels: Any) -> bytes:
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=90)
    return data.getvalue()


def _decode(file: bytes) -> Image.Image:
    return Image.open(io.BytesIO(file))


def _label(number: int) -> str:
    return f"class {number % _CLASSES}"
