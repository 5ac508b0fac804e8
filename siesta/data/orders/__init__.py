"""Orders by name: in which order a dataset's training pictures come, and where steps end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from siesta.data.dataset import Dataset
from siesta.data.options import checked, option_names
from siesta.data.orders.blurry import blurry, revisiting
from siesta.data.orders.class_incremental import class_incremental
from siesta.data.orders.from_file import from_file
from siesta.data.orders.iid import iid
from siesta.data.orders.long_tailed import DEFAULT_OVER, OVER, long_tailed
from siesta.data.stream import Stream
from siesta.errors import BadInput

__all__ = ["ORDERS", "check_order", "make_stream"]

ORDERS: dict[str, Callable[..., Stream]] = {
    "class_incremental": class_incremental,
    "iid": iid,
    "long_tailed": long_tailed,
    "blurry": blurry,
    "revisiting": revisiting,
    "from_file": from_file,
}


def make_stream(dataset: Dataset, order: str, seed: int, **options: Any) -> Stream:
    """A stream over `dataset` in the order of that name.

    Args:
        dataset: Whose training pictures are to come.
        order: A key of `ORDERS`.
        seed: Whose order it is, 0 or more.
        **options: Keyword arguments of the order.
    """
    ready = check_order(order, options)
    return ORDERS[order](dataset, seed, **ready)


def check_order(order: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the order takes them; wrong ones get a sentence, before any dataset is read."""
    if order not in ORDERS:
        raise BadInput(f"there is no order '{order}': choose one of {', '.join(ORDERS)}")
    if order != "long_tailed":
        return checked(f"order {order}", ORDERS[order], options)
    own = {name: value for name, value in options.items() if name in option_names(long_tailed)}
    ready = checked("order long_tailed", long_tailed, own)
    over = ready.get("over", DEFAULT_OVER)
    if over not in OVER:
        raise BadInput(f"order long_tailed goes over {' or '.join(OVER)}, not '{over}'")
    rest = {name: value for name, value in options.items() if name not in own}
    return ready | checked(f"order long_tailed over {over}", OVER[over], rest)
