"""What Qwen 2 and 3 share: the switch of the sliding window and which layers hold experts.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from typing import Any

from planner.config import Count, CountOrZero, Switch
from planner.families._dense import DenseConfig


class WindowedConfig(DenseConfig):
    """Keys of the attention; files state a window that ``use_sliding_window`` leaves off."""

    num_key_value_heads: Count
    use_sliding_window: Switch = False
    sliding_window: CountOrZero | None = None
    max_window_layers: CountOrZero | None = None
    layer_types: list[str] | None = None
    # Positions are remapped by chunk, every token is still attended (Qwen2.5-1M).
    dual_chunk_attention_config: dict[str, Any] | None = None

    @property
    def window(self) -> int | None:
        """The window, if it is on."""
        if not self.use_sliding_window:
            return None
        if "sliding_window" not in self.model_fields_set:
            raise self.refusal("sliding_window", "is missing and use_sliding_window is true")
        return self.sliding_window or None

    @property
    def window_layers(self) -> int:
        """``max_window_layers`` of a file whose windows are on."""
        if self.window is None or self.layer_types:
            return 0
        if self.max_window_layers is None:
            raise self.refusal("max_window_layers", "is missing, and so is layer_types, but use_sliding_window is true")
        return self.max_window_layers

    @property
    def attention_notes(self) -> tuple[str, ...]:
        """What the counts leave out."""
        if (self.dual_chunk_attention_config or {}).get("sparse_attention_enabled"):
            return ("the sparse prefill of dual_chunk_attention_config is not modelled, attention is counted whole",)
        return ()


class MixtureConfig(WindowedConfig):
    """Keys that say which layers hold experts instead of an MLP."""

    moe_intermediate_size: Count
    num_experts_per_tok: Count
    decoder_sparse_step: Count = 1
    mlp_only_layers: tuple[int, ...] = ()

    def is_sparse(self, layer: int) -> bool:
        """Whether a layer holds experts."""
        return layer not in self.mlp_only_layers and (layer + 1) % self.decoder_sparse_step == 0
