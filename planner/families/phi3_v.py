"""Phi-3-Vision and Phi-3.5-Vision: Phi-3 with CLIP ViT-L/14-336 and a two-layer projection.

Reference: ``Phi3VForCausalLM`` of the model's own repository; transformers has no class. The config names the tower
without its sizes, so they stand here, and every other choice of tower or projection is refused.
"""

from __future__ import annotations

from planner.architecture import Architecture, Component
from planner.config import Count, Switch
from planner.families._multimodal import FlatWrapper, Piece, around, text_model
from planner.vision_blocks import clip_tower, projector, table

MODEL_TYPES = ("phi3_v",)

CLIP_LARGE_336 = "openai/clip-vit-large-patch14-336"
MERGED_PATCHES = 4


class Tower(Piece):
    """``img_processor``."""

    HARMLESS = Piece.HARMLESS | {"num_img_tokens"}

    name: str
    model_name: str = CLIP_LARGE_336
    image_dim_out: Count


class Projection(Piece):
    """``embd_layer``."""

    embedding_cls: str = "image"
    projection_cls: str
    use_hd_transform: Switch
    with_learnable_separator: Switch
    hd_transform_order: str = "sub_glb"


class Config(FlatWrapper):
    """Keys of the picture's side; the rest is Phi-3's."""

    img_processor: Tower
    embd_layer: Projection


def read(config: Config) -> Architecture:
    """A Phi-3, the tower, the projection and the two separators between tiles."""
    tower, layer = config.img_processor, config.embd_layer
    if (tower.name, tower.model_name, tower.image_dim_out) != ("clip_vision_model", CLIP_LARGE_336, 1024):
        raise config.refusal("img_processor", f"names {tower.model_name!r}; only {CLIP_LARGE_336} is known")
    if layer.projection_cls != "mlp" or not layer.use_hd_transform or not layer.with_learnable_separator:
        raise config.refusal("embd_layer", "is not the projection of the published models (mlp, tiles, separators)")
    text = text_model(config, model_type="phi3", read_as={"phi3_v": "phi3"})
    path = "model.vision_embed_tokens"
    weights = clip_tower(
        f"{path}.img_processor.vision_model",
        hidden=1024,
        width=4096,
        layers=24,
        channels=3,
        patch=(14, 14),
        positions=24 * 24 + 1,
    )
    merged = MERGED_PATCHES * tower.image_dim_out
    found = projector(f"{path}.img_projection", widths=(merged, text.hidden, text.hidden), names=("0", "2"))
    found += table(f"{path}.glb_GN", merged) + table(f"{path}.sub_GN", merged)
    return around(
        config,
        text,
        family="phi3_v",
        components=(Component("vision tower", weights), Component("projector", found)),
        layout=("model", "lm_head"),
    )
