"""PostgreSQL types: their numbers, and values to and from bytes in both formats."""

from __future__ import annotations

import datetime
import decimal
import math
import struct
from typing import Any

from discreet.errors import InputError

__all__ = ["KINDS", "OIDS", "decode", "encode", "oid_of"]

#: Arrow's or DuckDB's word for a type → PostgreSQL's number.
OIDS = {
    "bool": 16,
    "int64": 20,
    "int32": 23,
    "int16": 21,
    "text": 25,
    "float32": 700,
    "float64": 701,
    "date": 1082,
    "timestamp": 1114,
    "timestamptz": 1184,
    "numeric": 1700,
}
#: The kinds of parameters → PostgreSQL's number.
KINDS = {
    "boolean": 16, "integer": 20, "text": 25, "number": 701, "date": 1082, "timestamp": 1114,
    "boolean[]": 1000, "integer[]": 1016, "text[]": 1009, "number[]": 1022, "date[]": 1182,
    "timestamp[]": 1115,
}  # fmt: skip
#: Arrays, and what they hold.
_ARRAYS = {
    1000: 16, 1005: 21, 1007: 23, 1016: 20, 1009: 25, 1015: 1043, 1014: 1042, 1021: 700, 1022: 701,
    1182: 1082, 1115: 1114, 1185: 1184, 1231: 1700,
}  # fmt: skip
_SIZES = {16: 1, 20: 8, 21: 2, 23: 4, 25: -1, 700: 4, 701: 8, 1082: 4, 1114: 8, 1184: 8, 1700: -1}
_TEXTS = {18, 19, 25, 705, 1042, 1043, 0}
_PACK = {16: "!?", 20: "!q", 21: "!h", 23: "!i", 700: "!f", 701: "!d"}
_EPOCH = datetime.date(2000, 1, 1)
_EPOCH_TIME = datetime.datetime(2000, 1, 1)  # noqa: DTZ001  # the protocol's own, without zone


def oid_of(arrow_type: Any) -> tuple[int, int]:
    """Return number and size of the PostgreSQL type that holds an Arrow type.

    Any: Arrow is imported where tables are.
    """
    word = str(arrow_type)
    if word == "bool":
        oid = 16
    elif word in ("int8", "int16", "int32", "uint8", "uint16"):
        oid = 23
    elif word == "uint64":
        oid = 1700
    elif word.startswith(("int", "uint")):
        oid = 20
    elif word in ("float", "double", "halffloat"):
        oid = 701
    elif word.startswith("decimal"):
        oid = 1700
    elif word.startswith("date"):
        oid = 1082
    elif word.startswith("timestamp"):
        oid = 1184 if "tz=" in word else 1114
    else:
        oid = 25
    return oid, _SIZES[oid]


def encode(value: Any, oid: int, binary: int) -> bytes | None:
    """Return a value as the client asked for it. Any: cells of a result."""
    if value is None:
        return None
    if binary and oid in _PACK:
        return struct.pack(_PACK[oid], value)
    if binary and oid == 1082:
        return struct.pack("!i", (value - _EPOCH).days)
    if oid == 1184:
        value = value.astimezone(datetime.UTC)
    if binary and oid in (1114, 1184):
        return struct.pack(
            "!q", (value.replace(tzinfo=None) - _EPOCH_TIME) // datetime.timedelta(microseconds=1)
        )
    if binary and oid == 1700:
        return _numeric(decimal.Decimal(str(value)))
    if oid == 25 and isinstance(value, list | tuple):
        value = _array(value)
    return _text(value, oid).encode("utf-8")


def _text(value: Any, oid: int) -> str:
    if oid == 16:
        return "t" if value else "f"
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        return repr(value).removesuffix(".0")  # 33700, as PostgreSQL writes it
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(value)


def _array(values: Any) -> str:
    """Return a list as PostgreSQL writes an array. Any: cells of a list column."""
    quoted = (
        "NULL" if v is None else '"' + str(v).replace("\\", "\\\\").replace('"', '\\"') + '"'
        for v in values
    )
    return "{" + ",".join(quoted) + "}"


def _numeric(value: decimal.Decimal) -> bytes:
    """PostgreSQL's binary numeric: base-10000 digits."""
    if value.is_nan():
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = "".join(map(str, digits)) + "0" * max(0, exponent)
    whole = whole.rjust(scale + 1, "0")
    left, right = (whole[:-scale], whole[-scale:]) if scale else (whole, "")
    left = left.rjust(-(-len(left) // 4) * 4, "0")
    right = right.ljust(-(-len(right) // 4) * 4, "0")
    groups = [int((left + right)[i : i + 4]) for i in range(0, len(left + right), 4)]
    weight = len(left) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    return struct.pack(
        f"!hhHh{len(groups)}H",
        len(groups),
        weight if groups else 0,
        0x4000 if sign else 0,
        scale,
        *groups,
    )


def decode(raw: bytes | None, oid: int, binary: int) -> Any:
    """Return a parameter's value. Any: it becomes a literal of the query."""
    if raw is None:
        return None
    try:
        if binary and oid in (700, 701):
            return _finite(struct.unpack(_PACK[oid], raw)[0])
        if binary and oid in _PACK:
            return struct.unpack(_PACK[oid], raw)[0]
        if binary and oid == 1082:
            return _EPOCH + datetime.timedelta(days=struct.unpack("!i", raw)[0])
        if binary and oid in (1114, 1184):
            return _EPOCH_TIME + datetime.timedelta(microseconds=struct.unpack("!q", raw)[0])
        if binary and oid == 1700:
            return _numeric_value(raw)
        if binary and oid in _ARRAYS:
            return _elements(raw, oid)
        if binary and oid not in _TEXTS:
            raise InputError(
                f"binary parameters of type {oid} are not read",
                code="malformed-parameter",
                hint="send text",
            )
        return _parse(raw.decode("utf-8"), oid)
    except (struct.error, UnicodeDecodeError, ValueError, OverflowError, decimal.InvalidOperation):
        raise InputError("a parameter does not fit its type", code="malformed-parameter") from None


def _elements(raw: bytes, oid: int) -> tuple[Any, ...]:
    """Return the values of a binary array of one dimension."""
    dimensions, _, inner = struct.unpack("!iiI", raw[:12])
    if dimensions == 0:
        return ()
    count, _ = struct.unpack("!ii", raw[12:20])
    if dimensions != 1 or not 0 <= count <= 10_000 or inner not in (_ARRAYS[oid], 25, 1043):
        raise ValueError("not a list")
    found: list[Any] = []
    at = 20
    for _ in range(count):
        (size,) = struct.unpack("!i", raw[at : at + 4])
        at += 4
        if size < 0:
            found.append(None)
            continue
        if at + size > len(raw):
            raise ValueError("the list is cut off")
        found.append(decode(raw[at : at + size], inner, 1))
        at += size
    return tuple(found)


def _parse(text: str, oid: int) -> Any:
    if oid == 16:
        if text.lower() not in ("t", "f", "true", "false", "1", "0"):
            raise ValueError(text)
        return text.lower() in ("t", "true", "1")
    if oid in (20, 21, 23, 26):
        return int(text)
    if oid in (700, 701):
        return _finite(float(text))
    if oid == 1700:
        return _finite(float(decimal.Decimal(text)))
    if oid == 1082:
        return datetime.date.fromisoformat(text)
    if oid in (1114, 1184):
        return datetime.datetime.fromisoformat(text)
    return text


def _numeric_value(raw: bytes) -> float:
    count, weight, sign, _scale = struct.unpack("!hhHh", raw[:8])
    if sign not in (0, 0x4000):
        raise ValueError("not a finite number")
    groups = struct.unpack(f"!{count}H", raw[8:])
    value = sum(
        (decimal.Decimal(g) * decimal.Decimal(10000) ** (weight - i) for i, g in enumerate(groups)),
        decimal.Decimal(0),
    )
    return _finite(float(-value if sign else value))


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value
