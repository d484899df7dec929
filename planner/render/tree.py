"""A derivation as an indented text tree."""

from __future__ import annotations

from planner.quantity import Quantity, Status, walk
from planner.units import show


def as_tree(quantity: Quantity) -> str:
    """One line per quantity: name, value, and where it comes from; a share where the parts sum to the whole."""
    return "\n".join(_line(depth, node, _share(quantity, depth, node)) for depth, node in walk(quantity))


def _line(depth: int, node: Quantity, share: str) -> str:
    flag = "  UNVERIFIED" if node.status is Status.UNVERIFIED else ""
    return f"{'  ' * depth}{node.name} = {_value(node)}{share}    [{node.because}]{flag}"


def _value(node: Quantity) -> str:
    if node.unit == "parameter":
        return f"{node.value:,.0f}"
    if node.unit == "B" and node.value == int(node.value) and abs(node.value) >= 1000:
        return f"{show(node.value, node.unit, 4)} ({node.value:,.0f} B)"
    return show(node.value, node.unit, 4)


def _share(root: Quantity, depth: int, node: Quantity) -> str:
    additive = depth == 1 and root.because.startswith("sum") and node.unit == root.unit and root.value
    return f"  {node.value / root.value:.1%}" if additive else ""
