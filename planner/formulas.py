"""Every equation of the project: pure functions on plain floats, keyword-only, units in the signature.

Each docstring holds a sentence, the equation on a line of its own, a reference, and an example. The units declared in
the signatures are checked against the arithmetic by ``tests/test_formulas.py``.
"""

from __future__ import annotations

from planner.units import (
    Bytes,
    BytesPerSecond,
    Flop,
    FlopPerByte,
    FlopPerSecond,
    Parameters,
    Ratio,
    Seconds,
    Tokens,
    TokensPerSecond,
)


def memory_time(*, traffic: Bytes, bandwidth: BytesPerSecond) -> Seconds:
    """Time to move bytes at a bandwidth.

    t = bytes / bandwidth

    Reference: Williams, Waterman, Patterson, Roofline, doi:10.1145/1498765.1498785.

    >>> round(memory_time(traffic=16.06e9, bandwidth=3.35e12) * 1e3, 2)
    4.79
    """
    return traffic / bandwidth


def compute_time(*, work: Flop, peak: FlopPerSecond) -> Seconds:
    """Time to do arithmetic at a peak rate.

    t = FLOP / peak

    Reference: Williams, Waterman, Patterson, Roofline, doi:10.1145/1498765.1498785.

    >>> round(compute_time(work=2 * 8.03e9 * 2000, peak=989.5e12) * 1e3, 1)
    32.5
    """
    return work / peak


def step_floor(*, memory: Seconds, compute: Seconds, link: Seconds) -> Seconds:
    """Least time of a step whose traffic, arithmetic and communication may overlap perfectly.

    t = max(memory, compute, link)

    Reference: Williams, Waterman, Patterson, Roofline, doi:10.1145/1498765.1498785.

    >>> step_floor(memory=0.0048, compute=0.00002, link=0.0)
    0.0048
    """
    return max(memory, compute, link)


def ridge_point(*, peak: FlopPerSecond, bandwidth: BytesPerSecond) -> FlopPerByte:
    """Arithmetic intensity at which a device's two ceilings meet.

    I = peak / bandwidth

    Reference: Williams, Waterman, Patterson, Roofline, doi:10.1145/1498765.1498785.

    >>> round(ridge_point(peak=27.63e12, bandwidth=318.3e9), 1)
    86.8
    """
    return peak / bandwidth


def arithmetic_intensity(*, work: Flop, traffic: Bytes) -> FlopPerByte:
    """Arithmetic per byte moved.

    I = FLOP / bytes

    Reference: Williams, Waterman, Patterson, Roofline, doi:10.1145/1498765.1498785.

    >>> arithmetic_intensity(work=2 * 8e9, traffic=16e9)
    1.0
    """
    return work / traffic


def textbook_weight_bytes(*, parameters: Parameters, width: Bytes) -> Bytes:
    """Bytes of all weights when every parameter has one width (bytes per parameter).

    W = N · width

    Reference: Kaplan et al., Scaling laws (parameter count N), arXiv:2001.08361, section 2.1.

    >>> textbook_weight_bytes(parameters=8030261248, width=2)
    16060522496
    """
    return parameters * width


def textbook_prefill_work(*, parameters: Parameters, tokens: Tokens) -> Flop:
    """Arithmetic of a forward pass, attention left out: a multiply and an add per parameter and token.

    F = 2 · N · tokens

    Reference: Kaplan et al., Scaling laws, arXiv:2001.08361, section 2.1.

    >>> textbook_prefill_work(parameters=8, tokens=10)
    160
    """
    return 2 * parameters * tokens


def matrix_work(*, multiplied: Parameters, tokens: Tokens) -> Flop:
    """Arithmetic of linear layers: a multiply and an add per multiplied parameter and token.

    F = 2 · multiplied · tokens

    Reference: Kaplan et al., Scaling laws, arXiv:2001.08361, table 1.

    >>> matrix_work(multiplied=4096 * 4096, tokens=1)
    33554432
    """
    return 2 * multiplied * tokens


def time_per_output_token(*, end_to_end: Seconds, first_token: Seconds, gaps: Tokens) -> Seconds:
    """Mean gap between output tokens; a request of O tokens has O − 1 gaps.

    TPOT = (E2E − TTFT) / (O − 1)

    Reference: NVIDIA NIM LLM benchmarking guide, metrics (ITL).

    >>> round(time_per_output_token(end_to_end=2.2, first_token=0.2, gaps=100), 6)
    0.02
    """
    return (end_to_end - first_token) / gaps


def end_to_end_time(*, first_token: Seconds, per_token: Seconds, gaps: Tokens) -> Seconds:
    """Time of a whole request from its first token and its gaps.

    E2E = TTFT + (O − 1) · TPOT

    Reference: NVIDIA NIM LLM benchmarking guide, metrics.

    >>> round(end_to_end_time(first_token=0.64, per_token=0.017, gaps=49), 2)
    1.47
    """
    return first_token + gaps * per_token


def token_rate(*, tokens: Tokens, time: Seconds) -> TokensPerSecond:
    """Tokens per second.

    r = tokens / t

    Reference: NVIDIA NIM LLM benchmarking guide, metrics (tokens per second).

    >>> round(token_rate(tokens=1, time=0.00479409))
    209
    """
    return tokens / time


def share_of_ceiling(*, reached: BytesPerSecond, ceiling: BytesPerSecond) -> Ratio:
    """Part of a ceiling that a measurement reaches; above 1 the ceiling is wrong, not the machine fast.

    share = reached / ceiling

    Reference: Williams, Waterman, Patterson, Roofline, doi:10.1145/1498765.1498785.

    >>> round(share_of_ceiling(reached=178.3e9, ceiling=318.3e9), 3)
    0.56
    """
    return reached / ceiling


def distinct_experts(*, experts: Ratio, active: Ratio, tokens: Tokens) -> Ratio:
    """Expected number of different experts that a step's tokens hit, with uniform and independent routing.

    n = E · (1 − (1 − k/E)^tokens)

    Reference: expectation of the number of occupied cells, Feller, Probability theory, volume 1, IV.2.

    >>> round(distinct_experts(experts=128, active=8, tokens=16), 2)
    82.42
    """
    untouched: float = (1 - active / experts) ** tokens
    return experts * (1 - untouched)


def attention_work(*, heads: Ratio, key_dim: Ratio, value_dim: Ratio, pairs: Tokens) -> Flop:
    """Arithmetic of scores and weighted values over all (query, key) pairs.

    F = 2 · heads · (key_dim + value_dim) · pairs

    Reference: Kaplan et al., Scaling laws, arXiv:2001.08361, table 1 (mask and values).

    >>> attention_work(heads=32, key_dim=128, value_dim=128, pairs=1)
    16384
    """
    return 2 * heads * (key_dim + value_dim) * pairs


def all_reduce_floor(*, message: Bytes, rate: BytesPerSecond) -> Seconds:
    """Least time of an all-reduce: each device must at least send its part once, in one direction.

    t = bytes / link

    Reference: Patarasu, Yuan, Bandwidth optimal all-reduce, doi:10.1016/j.jpdc.2008.09.002.

    >>> all_reduce_floor(message=450e9, rate=450e9)
    1.0
    """
    return message / rate
