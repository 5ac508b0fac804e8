"""A crowd at the service while it sleeps, the same work by the bare library beside it, and a kill at the end."""

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
from siesta.jobs import SleepJob
from siesta.learner import Siesta

__all__ = ["run"]

_ASKERS, _TEACHERS = 32, 4
_PICTURES, _CLASSES = 64, 10
_EDGE = "edge-of-a-part"


@dataclass
class _Told:
    """What one client was told: seconds of each answer, statuses that are no 200, ids of samples by label."""

    seconds: list[float] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    stored: dict[int, str] = field(default_factory=dict)


def run(image_size: int = 224, seconds: float = 60.0) -> Iterator[Row]:
    """Asks and teaches the library, then the service, each beside a sleep; then kills it and counts what is lost."""
    files = [_jpeg(picture) for picture in noise(_PICTURES, image_size)]
    config: Row = {"image_size": image_size, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crowd.siesta"
        with Siesta.create(path, image_size=image_size) as learner:
            learner.learn_many(map(_opened, files), map(_label, range(_PICTURES)))
            bare = _bare(learner, files, seconds / 4)
        for name, told in bare.items():
            yield from _rows(f"bare_{name}", [told], config)
        asked, taught, lost = _served(path, files, seconds)
    config |= {"askers": _ASKERS, "teachers": _TEACHERS}
    yield from _rows("service_predict", asked, config)
    yield from _rows("service_learn", taught, config)
    refused = [status for told in asked + taught for status in told.refused]
    yield row("service_errors", sum(status != 429 for status in refused), "requests", "= 0", **config)
    yield row("service_told_to_wait", sum(status == 429 for status in refused), "requests", **config)
    acknowledged = sum(len(told.stored) for told in taught)
    yield row("lost_after_kill", lost, "samples", "= 0", acknowledged=acknowledged, **config)


def _rows(name: str, told: list[_Told], config: Row) -> Iterator[Row]:
    times = np.array([one for some in told for one in some.seconds])
    for percent in (50, 95):
        yield row(f"{name}_p{percent}", 1e3 * float(np.percentile(times, percent)), "ms", **config)
    spent = max(sum(some.seconds) for some in told)
    yield row(f"{name}_rate", len(times) / spent, "1/s", **config)


def _bare(learner: Siesta, files: list[bytes], seconds: float) -> dict[str, _Told]:
    """One after the other in this process, files decoded as the service does."""
    works: dict[str, Callable[[int], object]] = {
        "predict": lambda number: learner.predict_one(_opened(files[number % _PICTURES])),
        "learn": lambda number: learner.learn_one(_opened(files[number % _PICTURES]), _label(number)),
    }
    found = {}
    job = learner.sleep_async(seconds=2 * seconds + 60)
    for name, work in works.items():
        told, end, number = _Told(), time.monotonic() + seconds / 2, 0
        while (start := time.monotonic()) < end:
            work(number)
            told.seconds.append(time.monotonic() - start)
            number += 1
        found[name] = told
    job.wake()
    job.wait()
    return found


def _served(path: Path, files: list[bytes], seconds: float) -> tuple[list[_Told], list[_Told], int]:
    """What askers and teachers were told, and how many acknowledged samples a kill cost."""
    log = path.with_suffix(".log")
    with log.open("wb") as words:
        command = [sys.executable, "-m", "siesta", "serve", str(path), "--port", "0"]
        server = subprocess.Popen(command, stdout=words, stderr=words, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        port = _port(log)
        _call(http.client.HTTPConnection("127.0.0.1", port), "/v1/sleep", json.dumps({"seconds": seconds + 60}))
        asked, taught = ([_Told() for _ in range(count)] for count in (_ASKERS, _TEACHERS))
        end = time.monotonic() + seconds
        crowd = [Thread(target=_ask, args=(port, files, end, number, told)) for number, told in enumerate(asked)]
        crowd += [Thread(target=_teach, args=(port, files, end, number, told)) for number, told in enumerate(taught)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    job = SleepJob(path)
    if job.status().running:
        job.wake()
        job.wait()
    return asked, taught, _lost(path, taught)


def _port(log: Path) -> int:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = re.search(r"Open http://[^:]+:(\d+)", log.read_text("utf-8"))
        if found:
            return int(found[1])
        time.sleep(0.1)
    raise BadInput(f"the service did not start: {log.read_text('utf-8')}")


def _ask(port: int, files: list[bytes], end: float, number: int, told: _Told) -> None:
    bodies = [_body(file) for file in files]
    _on(port, end, told, lambda count: ("/v1/predict", bodies[(7 * number + count) % _PICTURES]), lambda _, __: None)


def _teach(port: int, files: list[bytes], end: float, number: int, told: _Told) -> None:
    bodies = [_body(file, _label(index)) for index, file in enumerate(files)]

    def remember(count: int, answer: dict[str, Any]) -> None:
        told.stored[answer["ids"][0]] = _label((7 * number + count) % _PICTURES)

    _on(port, end, told, lambda count: ("/v1/learn", bodies[(7 * number + count) % _PICTURES]), remember)


def _on(
    port: int,
    end: float,
    told: _Told,
    request: Callable[[int], tuple[str, bytes]],
    remember: Callable[[int, dict[str, Any]], None],
) -> None:
    """One request after the other, as fast as they are answered."""
    connection, count = http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0
    while (start := time.monotonic()) < end:
        status, answer = _call(connection, *request(count), kind=f"multipart/form-data; boundary={_EDGE}")
        if status == 200:
            told.seconds.append(time.monotonic() - start)
            remember(count, answer)
        else:
            told.refused.append(status)
            time.sleep(1)
        count += 1


def _call(
    connection: http.client.HTTPConnection, path: str, body: str | bytes, kind: str = "application/json"
) -> tuple[int, dict[str, Any]]:
    connection.request("POST", path, body, {"Content-Type": kind})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def _lost(path: Path, taught: list[_Told]) -> int:
    """Acknowledged samples that are not there, or have another label."""
    lost = 0
    with Siesta.open(path, read_only=True) as learner:
        names = {record.id: record.label for record in learner.store.classes()}
        for sample, label in (pair for told in taught for pair in told.stored.items()):
            try:
                lost += names[learner.store.samples.class_of(sample)] != label
            except BadInput:
                lost += 1
    return lost


def _body(file: bytes, label: str | None = None) -> bytes:
    head = f'--{_EDGE}\r\nContent-Disposition: form-data; name="image"; filename="a.jpg"\r\n\r\n'
    named = "" if label is None else f'\r\n--{_EDGE}\r\nContent-Disposition: form-data; name="label"\r\n\r\n{label}'
    return head.encode() + file + f"{named}\r\n--{_EDGE}--\r\n".encode()


def _jpeg(pixels: Any) -> bytes:
    data = io.BytesIO()
    Image.fromarray(pixels).save(data, "JPEG", quality=90)
    return data.getvalue()


def _opened(file: bytes) -> Image.Image:
    return Image.open(io.BytesIO(file))


def _label(number: int) -> str:
    return f"class {number % _CLASSES}"
