"""The compulsory bytes and the arithmetic of one prefill or decode step.

Compulsory: every engine must read the weights that the step multiplies, read the cache it attends, and write the new
rows. Activations are not compulsory. Experts: the provable minimum is the ``active`` ones of a single token.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.inventory import AttentionGroup, ByArithmetic, Inventory


@dataclass(frozen=True, slots=True)
class Work:
    """What one step must do for a whole batch: bytes by kind, matrix FLOP by arithmetic kind, attention FLOP.

    ``label`` says which caps are in force (windows full, chunk number), so that steps with equal labels depend
    linearly on their context.
    """

    weight_bytes: int
    cache_read_bytes: int
    cache_written_bytes: int
    row_bytes: int
    state_bytes: int
    matrix_flop: ByArithmetic
    attention_flop: int
    scan_flop: int
    tokens: int
    label: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """All bytes that must move to or from memory."""
        return self.weight_bytes + self.cache_read_bytes + self.cache_written_bytes + self.row_bytes + self.state_bytes

    @property
    def flop(self) -> int:
        """All arithmetic."""
        return sum(flop for _, flop in self.matrix_flop) + self.attention_flop + self.scan_flop


def prefill(inventory: Inventory, *, batch: int, prompt: int, cached: int = 0) -> Work:
    """The step that reads ``batch`` prompts of ``prompt`` tokens, of which ``cached`` are in the cache already."""
    if inventory.encoder_decoder:
        return _encode(inventory, batch, prompt)
    new = prompt - cached
    attention = read = 0
    for group in inventory.attention:
        attention += group.layers * group.prefill_pair * attended(group, cached, prompt)
        attention += group.layers * group.indexer_pair * _all_pairs(cached, prompt)
        read += group.layers * _rows_read(group, cached)
    written = sum(g.layers * (g.row + g.indexer_row) * _rows_kept(g, new) for g in inventory.attention)
    return Work(
        weight_bytes=inventory.prefill_bytes + least_expert_bytes(inventory),
        cache_read_bytes=batch * inventory.cache_bytes(read),
        cache_written_bytes=batch * inventory.cache_bytes(written),
        row_bytes=batch * new * inventory.row_bytes,
        state_bytes=batch * inventory.state_bytes * (2 if cached else 1),
        matrix_flop=_scaled(inventory.prompt_multiplied, batch * new, inventory.head_multiplied, batch),
        attention_flop=batch * attention,
        scan_flop=batch * new * inventory.scan_flops,
        tokens=batch * new,
        label=(),
    )


def decode(inventory: Inventory, *, batch: int, context: int, encoded: int = 0) -> Work:
    """The step that makes one token for each of ``batch`` sequences with ``context`` tokens in the cache.

    ``encoded``: tokens of the encoder's memory (encoder-decoder models); their keys and values are read too.
    """
    attention = read = written = 0
    label: list[int] = []
    for group in inventory.attention:
        past = _past(group, context)
        attention += group.layers * (group.decode_pair * (past + 1) + group.indexer_pair * (context + 1))
        read += group.layers * (group.row * past + group.indexer_row * context)
        written += group.layers * (group.row + group.indexer_row)
        label.append(_regime(group, context))
    for group in inventory.cross_attention:
        attention += group.layers * group.decode_pair * encoded
        read += group.layers * group.row * encoded
    return Work(
        weight_bytes=inventory.decode_bytes + least_expert_bytes(inventory),
        cache_read_bytes=batch * inventory.cache_bytes(read),
        cache_written_bytes=batch * inventory.cache_bytes(written),
        row_bytes=batch * inventory.row_bytes,
        state_bytes=2 * batch * inventory.state_bytes,
        matrix_flop=_scaled(inventory.token_multiplied, batch, inventory.head_multiplied, batch),
        attention_flop=batch * attention,
        scan_flop=batch * inventory.scan_flops,
        tokens=batch,
        label=tuple(label),
    )


def cache_bytes(inventory: Inventory, tokens: int, encoded: int = 0) -> int:
    """Bytes of keys, values and indexer keys that one sequence of ``tokens`` tokens holds; states left out."""
    elements = sum(g.layers * (g.row * _rows_kept(g, tokens) + g.indexer_row * tokens) for g in inventory.attention)
    elements += sum(g.layers * g.row * encoded for g in inventory.cross_attention)
    return inventory.cache_bytes(elements)


def least_expert_bytes(inventory: Inventory) -> int:
    """Bytes of the routed experts that any step must read: those of one token, all tokens agreeing."""
    return sum(group.layers * group.active * group.bytes_per_expert for group in inventory.routed)


def attended(group: AttentionGroup, cached: int, prompt: int) -> int:
    """(query, key) pairs when tokens ``cached`` + 1 … ``prompt`` are read at once.

    >>> full = AttentionGroup("full attention", 1, 1, 1, 1)
    >>> attended(full, 0, 4), attended(full, 3, 4)
    (10, 4)
    >>> attended(AttentionGroup("sliding window", 1, 1, 1, 1, window=2), 0, 4)
    7
    """
    if not group.causal:
        return prompt * (prompt - cached)
    if group.chunk is not None:
        return _chunk_pairs(prompt, group.chunk) - _chunk_pairs(cached, group.chunk)
    cap = group.window if group.window is not None else group.selected
    if cap is None:
        return _all_pairs(cached, prompt)
    return _capped_pairs(prompt, cap) - _capped_pairs(cached, cap)


def _encode(inventory: Inventory, batch: int, prompt: int) -> Work:
    """Encoder over the prompt, its keys and values for the decoder, and the decoder's start token."""
    attention = sum(g.layers * g.prefill_pair * attended(g, 0, prompt) for g in inventory.encoder_attention)
    attention += sum(g.layers * g.decode_pair * prompt for g in inventory.cross_attention)
    attention += sum(g.layers * g.decode_pair for g in inventory.attention)
    written = sum(g.layers * g.row * prompt for g in inventory.cross_attention)
    written += sum(g.layers * g.row for g in inventory.attention)
    per_sequence = (*inventory.token_multiplied, *inventory.head_multiplied)
    return Work(
        weight_bytes=inventory.prefill_bytes + least_expert_bytes(inventory),
        cache_read_bytes=0,
        cache_written_bytes=batch * inventory.cache_bytes(written),
        row_bytes=batch * (prompt + 1) * inventory.row_bytes,
        state_bytes=batch * inventory.state_bytes,
        matrix_flop=_scaled(inventory.prompt_multiplied, batch * prompt, per_sequence, batch),
        attention_flop=batch * attention,
        scan_flop=batch * inventory.scan_flops,
        tokens=batch * (prompt + 1),
        label=(),
    )


def _scaled(per_token: ByArithmetic, tokens: int, per_sequence: ByArithmetic, sequences: int) -> ByArithmetic:
    found: dict[str, int] = {}
    for arithmetic, elements in per_token:
        found[arithmetic] = found.get(arithmetic, 0) + 2 * elements * tokens
    for arithmetic, elements in per_sequence:
        found[arithmetic] = found.get(arithmetic, 0) + 2 * elements * sequences
    return tuple(found.items())


def _all_pairs(cached: int, prompt: int) -> int:
    return prompt * (prompt + 1) // 2 - cached * (cached + 1) // 2


def _capped_pairs(tokens: int, cap: int) -> int:
    inside = min(tokens, cap)
    return inside * (inside + 1) // 2 + max(0, tokens - cap) * cap


def _chunk_pairs(tokens: int, chunk: int) -> int:
    whole, rest = divmod(tokens, chunk)
    return whole * (chunk * (chunk + 1) // 2) + rest * (rest + 1) // 2


def _past(group: AttentionGroup, context: int) -> int:
    """Cached rows that a new token attends."""
    if group.chunk is not None:
        return context % group.chunk
    cap = group.window if group.window is not None else group.selected
    return context if cap is None else min(context, cap - 1)


def _rows_read(group: AttentionGroup, cached: int) -> int:
    """Elements of cached rows that a prefill after ``cached`` tokens must read once, per layer."""
    return group.row * _past(group, cached) + group.indexer_row * cached


def _rows_kept(group: AttentionGroup, tokens: int) -> int:
    """Rows that the cache holds after ``tokens`` tokens."""
    cap = group.window if group.window is not None else group.chunk
    return tokens if cap is None else min(tokens, cap)


def _regime(group: AttentionGroup, context: int) -> int:
    if group.chunk is not None:
        return context // group.chunk
    cap = group.window if group.window is not None else group.selected
    return 0 if cap is None else int(context >= cap - 1)
