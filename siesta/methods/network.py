"""Top and output layer of a method that learns online, one SGD step at a time."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import Tensor, nn

from siesta.backbones.frozen_norm import with_frozen_norms
from siesta.backbones.layers import channels_last
from siesta.contracts import Backbone
from siesta.errors import BadInput
from siesta.head import Head
from siesta.methods.settings import OnlineSettings
from siesta.rng import Purpose, generator
from siesta.sleep.batch import Batch
from siesta.sleep.cosine_output import CosineOutput
from siesta.sleep.loop import train_step
from siesta.sleep.objective import Loss, cross_entropy
from siesta.sleep.optimizers import layer_groups
from siesta.sleep.settings import SleepSettings

__all__ = ["OnlineNetwork"]


class OnlineNetwork:
    """Top, cosine output and optimiser state; the layers and the loss are those of SIESTA's sleep.

    The top is channels-last in memory and its batch-norm statistics are frozen. The output has a row for each class;
    that of a new class is a random unit vector, drawn from (seed, row). (The published methods know the number of
    classes beforehand and create all random rows at the start.) 1 / temperature is learned too.
    """

    def __init__(self, backbone: Backbone, head: Head, settings: OnlineSettings, seed: int) -> None:
        """Copy the top of a backbone and the class vectors of a head; neither is changed later."""
        decay = backbone.defaults.layer_decay if settings.layer_decay is None else settings.layer_decay
        self._dropout = backbone.defaults.dropout
        self._seed = seed
        self._plain = channels_last(copy.deepcopy(backbone.top))
        self._plain.eval()
        self._top = with_frozen_norms(self._plain)  # shares its parameters
        self._output = CosineOutput(head, torch.device("cpu"))
        layers = layer_groups(self._top, self._output, SleepSettings(1.0, decay, self._dropout))
        self._optimizer = torch.optim.SGD(
            layers, lr=0.0, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
        self._rows = next(group for group in self._optimizer.param_groups if group["params"][0] is self._output.vectors)

    def __len__(self) -> int:
        return len(self._output.vectors)

    def step(self, batch: Batch, lr: float, rng: np.random.Generator, loss: Loss = cross_entropy) -> None:
        """Take one SGD step on a batch with learning rate `lr` for the output, decayed for each layer below."""
        for group in self._optimizer.param_groups:
            group["lr"] = group["max_lr"] * lr
        noise = torch.Generator().manual_seed(int(rng.integers(2**63)))
        mean_loss, _ = train_step(self._top, self._output, self._optimizer, batch, self._dropout, noise, loss)
        if not math.isfinite(mean_loss):
            raise BadInput(f"training diverged at a learning rate of {lr:g}: use a lower one")

    def add_class(self) -> None:
        """Add the row of a new class."""
        row = generator(self._seed, Purpose.METHOD_ROW, len(self)).standard_normal(self._output.vectors.shape[1])
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
            self._set_momentum(self._output.vectors, momentum)

    def _momentum(self, parameter: Tensor) -> Tensor | None:
        momentum: Tensor | None = self._optimizer.state.get(parameter, {}).get("momentum_buffer")
        return momentum

    def _set_momentum(self, parameter: Tensor, momentum: Tensor) -> None:
        # in the parameter's memory layout, as a step leaves it
        self._optimizer.state[parameter] = {"momentum_buffer": torch.empty_like(parameter.detach()).copy_(momentum)}

    # -- state ----------------------------------------------------------------------------------------------------

    def head(self) -> tuple[Tensor, float]:
        """Return the current class vectors (K, D) and 1 / temperature."""
        return self._output.vectors.detach(), float(self._output.scale.detach())

    def top_state(self) -> dict[str, Tensor]:
        """Return the current weights of the top."""
        return dict(self._plain.state_dict())

    def _parameters(self) -> dict[str, Tensor]:
        return {
            **{f"top.{name}": parameter for name, parameter in self._plain.named_parameters()},
            "scale": self._output.scale,
        }

    def state(self) -> dict[str, Tensor]:
        """Return everything needed to resume: weights, buffers, momentum."""
        parameters = {**self._parameters(), "vectors": self._output.vectors}
        momenta = {name: self._momentum(parameter) for name, parameter in parameters.items()}
        return {
            **{f"top.{name}": tensor for name, tensor in self._plain.state_dict().items()},
            **{name: parameters[name].detach() for name in ("scale", "vectors")},
            **{f"momentum.{name}": momentum for name, momentum in momenta.items() if momentum is not None},
        }

    def load(self, state: dict[str, Tensor]) -> None:
        """Restore the network from `state()`."""
        prefix = "top."
        self._plain.load_state_dict(
            {name[len(prefix) :]: tensor for name, tensor in state.items() if name.startswith(prefix)}
        )
        self._output.scale.data.copy_(state["scale"])
        self._set_vectors(state["vectors"], state.get("momentum.vectors"))
        for name, parameter in self._parameters().items():
            if f"momentum.{name}" in state:
                self._set_momentum(parameter, state[f"momentum.{name}"])
