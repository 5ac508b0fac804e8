"""The network while it learns online: top and output, one SGD step at a time."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor, nn

from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.batch import Batch
from siesta.contracts import Backbone
from siesta.errors import BadInput
from siesta.head import Head
from siesta.methods.settings import OnlineSettings
from siesta.sleep import CosineOutput, SleepSettings, layer_groups, train_step

__all__ = ["OnlineNetwork"]

_ROW = 11  # purpose number of the random stream that new rows come from


class OnlineNetwork:
    """Top and cosine output with the optimiser's memory, as SIESTA trains them asleep: same layers, same loss.

    The top is channels-last in memory and its batch-norm statistics are frozen. The output has a row for each class;
    that of a new class starts as a random direction of length one, drawn by (seed, row). (The published methods know
    the number of classes beforehand and have all rows, random, from the start.) 1 / temperature is learned too.
    """

    def __init__(self, backbone: Backbone, head: Head, settings: OnlineSettings, seed: int) -> None:
        """Starts from a backbone's top and a head's vectors; both are left as they are."""
        decay = backbone.defaults.layer_decay if settings.layer_decay is None else settings.layer_decay
        self._dropout, self._seed = backbone.defaults.dropout, seed
        self._plain = copy.deepcopy(backbone.top).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._plain.eval()
        self._top = with_frozen_norms(self._plain)  # around the same parameters
        self._output = CosineOutput(head, torch.device("cpu"))
        layers = layer_groups(self._top, self._output, SleepSettings(1.0, decay, self._dropout))
        self._optimizer = torch.optim.SGD(
            layers, lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
        self._rows = next(group for group in self._optimizer.param_groups if group["params"][0] is self._output.vectors)

    def __len__(self) -> int:
        return len(self._output.vectors)

    def step(self, batch: Batch, rate: float, rng: np.random.Generator) -> None:
        """One SGD step on a batch, the output at `rate` and each layer below it at its share of that."""
        for group in self._optimizer.param_groups:
            group["lr"] = group["rate"] * rate
        noise = torch.Generator().manual_seed(int(rng.integers(2**63)))
        loss, _ = train_step(self._top, self._output, self._optimizer, batch, self._dropout, noise)
        if not math.isfinite(loss):
            raise BadInput(f"learning diverged at a rate of {rate:g}: use a lower one")

    def grow(self) -> None:
        """A row for one class more."""
        row = np.random.default_rng((self._seed, _ROW, len(self))).standard_normal(self._output.vectors.shape[1])
        direction = torch.from_numpy(row / np.linalg.norm(row)).float()[None]
        momentum = self._momentum(self._output.vectors)
        if momentum is not None:
            momentum = torch.cat([momentum, torch.zeros_like(direction)])
        self._set_vectors(torch.cat([self._output.vectors.detach(), direction]), momentum)

    def _set_vectors(self, vectors: Tensor, momentum: Tensor | None) -> None:
        self._optimizer.state.pop(self._output.vectors, None)
        self._output.vectors = nn.Parameter(vectors)
        self._rows["params"] = [self._output.vectors]
        if momentum is not None:
            self._remember(self._output.vectors, momentum)

    def _momentum(self, parameter: Tensor) -> Tensor | None:
        kept: Tensor | None = self._optimizer.state.get(parameter, {}).get("momentum_buffer")
        return kept

    def _remember(self, parameter: Tensor, momentum: Tensor) -> None:
        # in the parameter's own memory layout, as a step would have left it
        self._optimizer.state[parameter] = {"momentum_buffer": torch.empty_like(parameter.detach()).copy_(momentum)}

    # -- from outside ---------------------------------------------------------------------------------------------

    def head(self) -> tuple[Tensor, float]:
        """Class vectors (K, D) and 1 / temperature as they are now."""
        return self._output.vectors.detach(), float(self._output.scale.detach())

    def top_state(self) -> dict[str, Tensor]:
        """The top's weights as they are now."""
        return dict(self._plain.state_dict())

    def _parameters(self) -> dict[str, Tensor]:
        return {**{f"top.{name}": some for name, some in self._plain.named_parameters()}, "scale": self._output.scale}

    def state(self) -> dict[str, Tensor]:
        """Everything needed to go on: weights, buffers, momentum."""
        parameters = {**self._parameters(), "vectors": self._output.vectors}
        momenta = {name: self._momentum(parameter) for name, parameter in parameters.items()}
        return {
            **{f"top.{name}": tensor for name, tensor in self._plain.state_dict().items()},
            **{name: parameters[name].detach() for name in ("scale", "vectors")},
            **{f"momentum.{name}": momentum for name, momentum in momenta.items() if momentum is not None},
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Goes on from what `state()` gave."""
        prefix = "top."
        self._plain.load_state_dict(
            {name[len(prefix) :]: some for name, some in state.items() if name.startswith(prefix)}
        )
        self._output.scale.data.copy_(state["scale"])
        self._set_vectors(state["vectors"], state.get("momentum.vectors"))
        for name, parameter in self._parameters().items():
            if f"momentum.{name}" in state:
                self._remember(parameter, state[f"momentum.{name}"])
