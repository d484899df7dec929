"""Solar Open: GLM-4.5's layout with every layer sparse and no norms of queries and keys.

Reference: ``SolarOpenForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture
from planner.config import Count, CountOrZero
from planner.families.glm4_moe import Config as Glm4Moe
from planner.families.glm4_moe import sparse_glm

MODEL_TYPES = ("solar_open",)


class Config(Glm4Moe):
    """Keys that decide the counts; the width of a dense MLP says nothing, there is none."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"intermediate_size"})

    head_dim: Count | None = 128
    intermediate_size: Count = 1
    first_k_dense_replace: CountOrZero = 0

    def defaulted(self) -> tuple[str, ...]:
        """Without the width that is not used."""
        return tuple(text for text in super().defaulted() if not text.startswith("intermediate_size"))


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    for key in ("first_k_dense_replace", "use_qk_norm"):
        if getattr(config, key):
            raise config.refusal(key, "is set, and this family has neither dense layers nor norms of queries and keys")
    return sparse_glm(config, family="solar_open")
