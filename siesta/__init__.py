"""siesta: online continual learning of image classes, with sleep.

The public names are imported on first use, so that `import siesta` and `siesta --help` do not load torch.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from siesta.contracts import Backbone, Codec, Method, Policy, Prediction
    from siesta.errors import BadInput, Busy, Damaged, DiskRefused, SiestaError
    from siesta.learner import Siesta
    from siesta.sleep.options import SleepOptions
    from siesta.sleep.report import SleepReport

__all__ = [
    "Backbone",
    "BadInput",
    "Busy",
    "Codec",
    "Damaged",
    "DiskRefused",
    "Method",
    "Policy",
    "Prediction",
    "Siesta",
    "SiestaError",
    "SleepOptions",
    "SleepReport",
    "__version__",
]

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # read by ONNX Runtime, which may report its use, on import

__version__: str
_MODULES = {
    "Backbone": "siesta.contracts",
    "BadInput": "siesta.errors",
    "Busy": "siesta.errors",
    "Codec": "siesta.contracts",
    "Damaged": "siesta.errors",
    "DiskRefused": "siesta.errors",
    "Method": "siesta.contracts",
    "Policy": "siesta.contracts",
    "Prediction": "siesta.contracts",
    "Siesta": "siesta.learner",
    "SiestaError": "siesta.errors",
    "SleepOptions": "siesta.sleep.options",
    "SleepReport": "siesta.sleep.report",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version("siesta-learn")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module 'siesta' has no attribute '{name}'")
    globals()[name] = value  # later uses do not come here
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__})
