"""What a small device pays awake: cold commands, memory and an install, in processes that load no torch.

Install sizes are those of the installed files of the packages that siesta requires, without pip and setuptools.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from packaging.requirements import Requirement
from PIL import Image

from benchmarks.learners import learner_of, noise
from benchmarks.measure import Row, alternate, row

__all__ = ["run"]

CLASSES = 10
SAMPLES = 320  # so many that the head has a covariance
COLD_RUNS = 5

_LAUNCHER = """
import json, os, sys, time
start = time.perf_counter()
null = os.open(os.devnull, os.O_WRONLY)
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)])
_, status, usage = os.wait4(pid, 0)
assert status == 0, sys.argv
cpu = usage.ru_utime + usage.ru_stime
print(json.dumps([time.perf_counter() - start, cpu, usage.ru_maxrss * 1024 / 1e6]))
"""  # a small process, because the peak memory of a process includes that of the one that started it


def run(image_size: int = 224) -> Iterator[Row]:
    """Yield cold starts with their memory, times relative to the bare network, and the sizes of installs."""
    with tempfile.TemporaryDirectory() as folder:
        path, picture = Path(folder) / "edge.siesta", Path(folder) / "picture.png"
        images = noise(SAMPLES, image_size)
        with learner_of("efficientnet_lite0", image_size, path) as learner:
            learner.learn_many(images, [f"class {index % CLASSES}" for index in range(len(images))])
        Image.fromarray(images[0]).save(picture)
        config: dict[str, Any] = {"image_size": image_size}
        yield from _cold("import_siesta", ["-c", "import siesta"], "<= 0.15", "")
        yield from _cold("import_learner", ["-c", "from siesta import Siesta"], "", "")
        predict = ["-m", "siesta", "predict", str(path), str(picture)]
        yield from _cold("cold_predict", predict, "<= 0.6", "<= 120", **config)
        child = [sys.executable, "-m", "benchmarks.edge", str(path)]
        measured = json.loads(subprocess.run(child, check=True, capture_output=True).stdout)
    for verb in ("predict", "learn"):
        yield row(f"{verb}_over_bare_awake", measured[verb] / measured["bare"], "x", "<= 1.1", **config)
    yield row("awake_rss", measured["rss"], "MB", **config)
    yield row("install_size", _install_size(set()), "MB", "<= 250", extras="none")
    yield row("install_size", _install_size({"serve"}), "MB", extras="serve")
    yield row("install_size", _install_size({"sleep"}), "MB", extras="sleep")


def _cold(name: str, arguments: list[str], seconds_limit: str, rss_limit: str, **config: Any) -> Iterator[Row]:
    """Yield median seconds, CPU seconds and memory of a fresh interpreter with these arguments.

    The first run is not counted. CPU seconds hardly change when other processes compute at the same time.
    """
    runs: list[tuple[float, float, float]] = []
    for number in range(COLD_RUNS + 1):
        launched = [sys.executable, "-c", _LAUNCHER, sys.executable, *arguments]
        measured = json.loads(subprocess.run(launched, check=True, capture_output=True).stdout)
        if number:
            runs.append(measured)
    seconds, cpu, peaks = zip(*runs, strict=True)
    yield row(name, statistics.median(seconds), "s", seconds_limit, runs=COLD_RUNS, **config)
    yield row(f"{name}_cpu", statistics.median(cpu), "s", runs=COLD_RUNS, **config)
    yield row(f"{name}_rss", statistics.median(peaks), "MB", rss_limit, runs=COLD_RUNS, **config)


def _install_size(extras: set[str]) -> float:
    """Return the megabytes of siesta's requirements with these extras, and of siesta's own package."""
    sizes: dict[str, float] = {}
    _add_requirements("siesta-learn", frozenset(extras), sizes)
    own = Path(__file__).parents[1] / "siesta"
    sizes["siesta-learn"] = sum(file.stat().st_size for file in own.rglob("*") if "__pycache__" not in file.parts)
    return sum(sizes.values()) / 1e6


def _add_requirements(name: str, extras: frozenset[str], sizes: dict[str, float]) -> None:
    """Add the installed size of a package, and of what it requires on this machine."""
    distribution = metadata.distribution(name)
    files = distribution.files or []
    places = (Path(str(distribution.locate_file(file))) for file in files)
    sizes[name] = sum(place.stat().st_size for place in places if place.is_file())
    for text in _required(name, distribution):
        needed = Requirement(text)
        wanted = needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras | {""})
        if wanted and needed.name.lower() not in sizes:
            _add_requirements(needed.name.lower(), frozenset(needed.extras), sizes)


def _required(name: str, distribution: metadata.Distribution) -> list[str]:
    """Return the requirements of a package; those of siesta are read from the checkout, which may be newer."""
    if name != "siesta-learn":
        return distribution.requires or []
    import tomllib

    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"].items()
    return [*project["dependencies"], *(f"{text} ; extra == '{extra}'" for extra, texts in optional for text in texts)]


def _child(path: str) -> None:
    """Print the seconds of the bare network, of a prediction and of a labelled image, and the memory in MB."""
    from siesta.images import normalize
    from siesta.learner import Siesta

    with Siesta.open(path) as learner:
        image = noise(1, learner.settings["image_size"])[0]
        pipeline = learner.pipeline
        pixels = normalize([image], pipeline.spec.normalization)
        latents = np.ascontiguousarray(pipeline.codec.decode(learner.encode([image]), pipeline.latent_shape))

        def bare() -> None:
            pipeline.engines.bottom.run(pixels)
            pipeline.engines.top.run(latents)

        works = {
            "bare": bare,
            "predict": lambda: learner.predict_one(image),
            "learn": lambda: learner.learn_one(image, "class 0"),
        }
        times = dict(zip(works, alternate(*works.values(), repeats=10, block=6), strict=True))
    assert "torch" not in sys.modules
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    rss = int(status["VmHWM"].split()[0]) * 1024 / 1e6
    print(json.dumps({**times, "rss": rss}))


if __name__ == "__main__":
    _child(*sys.argv[1:])
