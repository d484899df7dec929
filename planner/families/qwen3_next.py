"""Qwen3-Next: three layers of a gated delta net to one of gated attention, experts with a gated shared one.

Reference: ``Qwen3NextForCausalLM`` of transformers. Published files hold one MTP module that their config is silent
about, so a silent config is taken to have it; it is no part of the total.
"""

from __future__ import annotations

from planner.architecture import Architecture, Attention, Mlp, Moe, StateSpace
from planner.blocks import gated_mlp
from planner.config import Count, CountOrZero
from planner.families._decoder import FULL, decoder, stack
from planner.families._qwen_hybrid import (
    RECURRENT,
    ExpertKeys,
    HybridConfig,
    delta_net,
    draft_module,
    experts_of,
    gated_attention,
    hybrid_layer,
    mixer_kinds,
)

MODEL_TYPES = ("qwen3_next",)


class Config(HybridConfig, ExpertKeys):
    """Keys that decide the counts; ``intermediate_size`` is the width of dense layers, if there are any."""

    intermediate_size: Count | None = None
    decoder_sparse_step: Count = 1
    mlp_only_layers: tuple[CountOrZero, ...] = ()
    mtp_num_hidden_layers: CountOrZero = 1


def read(config: Config) -> Architecture:
    """Layers by their mixer and their feed-forward block."""
    mixers: dict[str, Attention | StateSpace] = {
        FULL: gated_attention(config),
        RECURRENT: delta_net(config, joined=True),
    }
    experts = experts_of(config, hidden=config.hidden_size)
    sparse = [_is_sparse(config, index) for index in range(config.num_hidden_layers)]
    blocks: dict[bool, Mlp | Moe] = {True: experts}
    if not all(sparse):
        blocks[False] = _dense(config)
    kinds = zip(mixer_kinds(config), sparse, strict=True)
    layers = stack(kinds, lambda kind: hybrid_layer(config, mixers[kind[0]], blocks[kind[1]]))
    return decoder(config, family="qwen3_next", layers=layers, components=draft_module(config, experts))


def _is_sparse(config: Config, index: int) -> bool:
    return index not in config.mlp_only_layers and (index + 1) % config.decoder_sparse_step == 0


def _dense(config: Config) -> Mlp:
    if config.intermediate_size is None:
        raise config.refusal("intermediate_size", "is missing or null, and some layers are dense")
    return gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
