"""Orders by name: the order of a data set's training images, divided into steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from siesta.data.dataset import Dataset
from siesta.data.options import check_options, option_names
from siesta.data.orders.blurry import blurry, revisiting
from siesta.data.orders.class_incremental import class_incremental
from siesta.data.orders.from_file import from_file
from siesta.data.orders.iid import iid
from siesta.data.orders.long_tailed import DEFAULT_INNER_ORDER, INNER_ORDERS, long_tailed
from siesta.data.stream import Stream
from siesta.errors import BadInput
from siesta.registry import Registry, function_of, part_name

__all__ = ["ORDERS", "check_order", "make_stream"]

ORDERS: Registry[Callable[..., Stream]] = Registry(
    "order",
    {
        "class_incremental": class_incremental,
        "iid": iid,
        "long_tailed": long_tailed,
        "blurry": blurry,
        "revisiting": revisiting,
        "from_file": from_file,
    },
    group="siesta.orders",
    requirement=function_of(2),
)


def make_stream(dataset: Dataset, order: str | Callable[..., Stream], seed: int, **options: Any) -> Stream:
    """Return a stream over the training images of a data set.

    Args:
        dataset: The data set.
        order: A key of `ORDERS`, or a function of your own that is called like one of them.
        seed: Determines the order; 0 or more.
        **options: Keyword arguments of the order.
    """
    checked = check_order(order, options)
    return ORDERS.resolve(order)(dataset, seed, **checked)


def check_order(order: str | Callable[..., Stream], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the types that the order takes, without reading a data set.

    Raises:
        BadInput: There is no such order, or an option is wrong.
    """
    if order != "long_tailed":
        return check_options(f"order {part_name(order)}", ORDERS.resolve(order), options)
    own = {name: value for name, value in options.items() if name in option_names(long_tailed)}
    checked = check_options("order long_tailed", long_tailed, own)
    over = checked.get("over", DEFAULT_INNER_ORDER)
    if over not in INNER_ORDERS:
        raise BadInput(f"option 'over' of order long_tailed must be one of {', '.join(INNER_ORDERS)}, not '{over}'")
    rest = {name: value for name, value in options.items() if name not in own}
    return checked | check_options(f"order long_tailed over {over}", INNER_ORDERS[over], rest)
