"""Reading somebody else's ``config.json``: strict numbers, null against absent, and no structural key left unread.

A family declares the keys it reads as a pydantic model. Everything that it does not read is checked here: a key that
could change the counts and that nobody reads makes the config an error, because an answer that ignores it would be a
guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from planner.errors import PlanError, brief, did_you_mean

# The widest published value of any of these is below 10^7 (vocabularies, context lengths up to 10 M and 100 M).
Count = Annotated[int, Field(strict=True, gt=0, le=10**9)]
CountOrZero = Annotated[int, Field(strict=True, ge=0, le=10**9)]
Layers = Annotated[int, Field(strict=True, gt=0, le=10_000)]
Factor = Annotated[float, Field(gt=0, le=10**6, allow_inf_nan=False)]
Switch = Annotated[bool, Field(strict=True)]


def either(*names: str) -> Any:
    """A field with several spellings; the first one present wins: ``either("n_embd", "hidden_size")``."""
    return AliasChoices(*names)


class FamilyConfig(BaseModel):
    """Base of every family's ``Config``: reads its keys, ignores the rest.

    ``null`` counts as absent for a key that has a default and does not admit null (``"head_dim": null``); where a
    field is declared ``X | None``, null is a value of its own (``"q_lora_rank": null`` means a full projection).
    """

    model_config = ConfigDict(
        extra="ignore", frozen=True, defer_build=True, populate_by_name=True, protected_namespaces=()
    )

    # Keys of this dialect that look structural and do not change the counts.
    HARMLESS: ClassVar[frozenset[str]] = frozenset()

    model_type: str = ""
    architectures: list[str] | None = None
    dtype: str | None = Field(default=None, validation_alias=either("dtype", "torch_dtype"))
    quantization_config: dict[str, Any] | None = None

    _source: str = PrivateAttr(default="config")
    _prefix: str = PrivateAttr(default="")

    @property
    def source(self) -> str:
        """The file's name, for errors."""
        return self._source

    @property
    def prefix(self) -> str:
        """The path of this config inside the file (``text_config.``)."""
        return self._prefix

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        kept = dict(data)
        for name, field in cls.model_fields.items():
            spellings = _keys(name, field.validation_alias)
            said_elsewhere = any(kept.get(key) is not None for key in spellings)
            if said_elsewhere or field.is_required() or not _admits_none(field.annotation):
                for key in spellings:
                    if key in kept and kept[key] is None:
                        del kept[key]
        return kept

    @classmethod
    def keys_read(cls) -> frozenset[str]:
        """Every key of the file that this family looks at."""
        return frozenset(key for name, field in cls.model_fields.items() for key in _keys(name, field.validation_alias))

    @classmethod
    def parse(cls, raw: Mapping[str, Any], *, source: str, prefix: str = "") -> Self:
        """Validate ``raw``; ``prefix`` is the path of a nested config (``text_config.``).

        Raises:
            PlanError: one sentence naming the source, the key, what was found and what would be valid.
        """
        try:
            config = cls.model_validate(raw)
        except ValidationError as error:
            raise _as_sentence(error, raw, source=source, prefix=prefix, keys=cls.keys_read()) from None
        refuse_unread_structure(raw, cls.keys_read() | cls.HARMLESS, source=source, prefix=prefix)
        config._source, config._prefix = source, prefix
        return config

    def refusal(self, key: str, reason: str) -> PlanError:
        """An error about ``key`` that names the file: ``raise config.refusal("layer_types", "has 3 entries …")``."""
        return PlanError(f"{self._source}: {self._prefix}{key} {reason}", field=f"{self._prefix}{key}")

    def head_width(self, hidden: int, heads: int) -> int:
        """``hidden / heads``, the head dimension of a file that does not state it.

        Raises:
            PlanError: the division leaves a remainder.
        """
        if hidden % heads:
            raise self.refusal("head_dim", f"is absent and the hidden size {hidden:,} does not divide by {heads} heads")
        return hidden // heads

    def defaulted(self) -> tuple[str, ...]:
        """Whole numbers that the file does not give and that the family's defaults supplied, as ``key = value``."""
        found = []
        for name in type(self).model_fields:
            value = getattr(self, name)
            if name not in self.model_fields_set and isinstance(value, int) and not isinstance(value, bool) and value:
                found.append(f"{name} = {value:,}")
        return tuple(found)


# A key that matches one of these can change parameters, cache or arithmetic …
_STRUCTURAL = re.compile(
    r"expert|moe|lora_rank|block_configs|layer_types|layers_block_type|hybrid|mamba|ssm|conv_|linear_attn|linear_attention"
    r"|sliding|window|chunk|shared|_layers$|^n_layer|_heads|head_dim|_rank$|latent|indexer|index_|compress|mtp|nextn"
    r"|per_layer|altup|laurel|cross_attention|vision_config|audio_config|text_config|encoder|bias|qk_norm|qk_layernorm"
    r"|intermediate|ffn|d_ff|n_inner|_dim$|_dims$|width|hidden|vocab_size|tie_|attn_output_gate|sink|pattern|interval"
    r"|codebook|engram|hash_|hyper_connection|hc_mult|adapter"
)
# … but these never do, in any family.
_HARMLESS = re.compile(
    r"dropout|layerdrop|_fn$|_drop$|coef|loss|jitter|initializer|init_|_std$|_act$|_activation$|activation_function|label|token_id|_id$|_ids$"
    r"|_eps$|epsilon|scal(e|ing)|multiplier|softcap|clip|theta|rope_|rotary|router_aux|router_dtype|output_router|output_hidden"
    r"|output_attentions|norm_topk|topk_method|topk_group|n_group|num_expert_group|score_func|scoring|gate_act|routed_scaling"
    r"|_implementation$|use_cache|tf_legacy|torchscript|chunk_size_feed_forward|pruned_heads|num_beam|num_return"
    r"|encoder_no_repeat|no_repeat|is_encoder_decoder|is_decoder|add_cross_attention$|tie_encoder_decoder"
    r"|cross_attention_hidden_size|finetuning_task|problem_type|task_specific|transformers_version|gradient|pretraining_tp"
    r"|max_window_layers|chat_template|_template|tokenizer|special_token|pad_token|_name_or_path|auto_map|use_flash|_backend$"
    r"|seq_aux|ep_size|expert_parallel|aux|z_loss|capacity|fused|fp32|precision|_dtype$|sep_token|prefix|suffix|_token$|_index$"
    r"|time_step|alibi|freq|mrope|_kernels?$|use_mamba_kernels|residual_in|recompute|checkpoint|unsloth|hidden_act|logit"
)
_EMPTY: tuple[Any, ...] = (None, False, 0, "", [], {})


def refuse_unread_structure(raw: Mapping[str, Any], read: frozenset[str], *, source: str, prefix: str = "") -> None:
    """Refuse a key that can change the counts, is set to something, and is read by nobody.

    Raises:
        PlanError: names the key and its value.
    """
    for key, value in raw.items():
        if key in read or any(value is empty or (value == empty and type(value) is type(empty)) for empty in _EMPTY):
            continue
        if _STRUCTURAL.search(key) and not _HARMLESS.search(key):
            raise PlanError(
                f"{source}: the key {prefix}{key} = {brief(value)} changes what the model is made of and the family "
                f"of model_type {raw.get('model_type')!r} does not read it, so no exact count is possible",
                field=f"{prefix}{key}",
            )


def _keys(name: str, alias: Any) -> tuple[str, ...]:
    if alias is None:
        return (name,)
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return tuple(choice for choice in choices if isinstance(choice, str))


def _admits_none(annotation: Any) -> bool:
    return type(None) in getattr(annotation, "__args__", ())


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}


def _as_sentence(
    error: ValidationError, raw: Mapping[str, Any], *, source: str, prefix: str, keys: frozenset[str]
) -> PlanError:
    """The first wrong value of a validation error as one sentence; if there is none, all missing keys together."""
    problems = error.errors(include_url=False)
    missing = [".".join(str(part) for part in p["loc"]) for p in problems if p["type"] == "missing"]
    wrong = [problem for problem in problems if problem["type"] != "missing"]
    if not wrong:
        named = ", ".join(prefix + name for name in missing)
        unread = [key for key in raw if key not in keys]
        hint = did_you_mean(missing[0].split(".")[-1], unread) if len(missing) == 1 else ""
        plural = "keys" if len(missing) > 1 else "key"
        return PlanError(
            f"{source}: the {plural} {named} {'are' if len(missing) > 1 else 'is'} missing or null and model_type "
            f"{raw.get('model_type')!r} has no default for it{hint}",
            field=prefix + missing[0],
        )
    first = wrong[0]
    where = prefix + ".".join(str(part) for part in first["loc"])
    return PlanError(f"{source}: {where} is {brief(first['input'])}; expected {_expected(first)}", field=where)


def _expected(problem: Any) -> str:
    kind, context = problem["type"], problem.get("ctx", {})
    bounds = {
        "greater_than": f"more than {context.get('gt')}",
        "greater_than_equal": f"{context.get('ge')} or more",
        "less_than_equal": f"at most {context.get('le'):,}" if "le" in context else "",
        "less_than": f"less than {context.get('lt')}",
    }
    if kind in bounds:
        return bounds[kind]
    if kind in ("literal_error", "enum"):
        return str(context.get("expected"))
    if kind == "value_error":
        return str(context.get("error"))
    return _EXPECTED.get(kind, str(problem["msg"]).lower())
