"""Derivations as indented text trees, with the places where their figures were read listed once below."""

from __future__ import annotations

from planner.quantity import Quantity, Status, walk
from planner.units import show

# Origins longer than this are listed below the trees by number.
_INLINE = 60


def as_trees(quantities: list[Quantity]) -> str:
    """One line per quantity: name, value, and where it comes from; a share where parts sum to the whole."""
    numbers: dict[str, int] = {}
    blocks = [
        "\n".join(_line(depth, node, _share(root, depth, node), numbers) for depth, node in walk(root))
        for root in quantities
    ]
    if numbers:
        blocks.append("\n".join(f"[{number}] {origin}" for origin, number in numbers.items()))
    return "\n\n".join(blocks)


def _line(depth: int, node: Quantity, share: str, numbers: dict[str, int]) -> str:
    flag = "  UNVERIFIED" if node.status is Status.UNVERIFIED else ""
    origin = node.because
    if len(origin) > _INLINE and not node.inputs:
        basis, _, rest = origin.partition(": ")
        origin = f"{basis}, {numbers.setdefault(rest or basis, len(numbers) + 1)}"
    return f"{'  ' * depth}{node.name} = {_value(node)}{share}    [{origin}]{flag}"


def _value(node: Quantity) -> str:
    if node.unit == "parameter":
        return f"{node.value:,.0f}"
    if node.unit == "1":
        return f"{node.value:,g}"
    if node.unit == "B" and node.value == int(node.value) and abs(node.value) >= 1000:
        return f"{show(node.value, node.unit, 4)} ({node.value:,.0f} B)"
    return show(node.value, node.unit, 4)


def _share(root: Quantity, depth: int, node: Quantity) -> str:
    additive = depth == 1 and root.because.startswith("sum") and node.unit == root.unit and root.value
    return f"  {node.value / root.value:.1%}" if additive else ""
