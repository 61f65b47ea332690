"""Keys for shared work: the same settings give the same key in every process.

What it is: a digest of settings, for the job runner's queue and cache.
What it is not: a digest of pictures or weights; those have digests of their own, which go in here as strings.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any


def settings_key(name: str, *settings: Any) -> str:
    """Turn settings into a key.

    Args:
        name: What the work is, for instance "coverage.resample".
        settings: Frozen dataclasses, numbers, strings, bytes, paths, None, and tuples, lists or mappings of these.

    Returns:
        64 hexadecimal digits (SHA-256).

    Raises:
        TypeError: For anything whose text might not say all there is to it, such as an array or a network; pass its digest.
    """
    text = json.dumps([name, *map(_plain, settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"class": type(value).__qualname__, "fields": parts}
    if isinstance(value, bytes):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, PurePath):
        return {"path": str(value)}
    if isinstance(value, Mapping):
        pairs = [[_plain(k), _plain(v)] for k, v in value.items()]
        return {"map": sorted(pairs, key=lambda pair: json.dumps(pair, sort_keys=True))}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    raise TypeError(f"A {type(value).__name__} cannot be part of a key; pass its digest (a string) instead.")
