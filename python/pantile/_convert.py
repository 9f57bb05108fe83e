"""Dates and decimals, as the parts that rows store, and what stands for values of other types."""

import operator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Optional, Tuple, Union

from ._native import InvalidValue

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def plain(value: object) -> Union[bool, int, bytes, None]:
    """What stands for a bool, an integer or bytes, as numbers of NumPy do; None for anything else."""
    if isinstance(value, memoryview):
        return value.tobytes()
    kind = type(value)
    # "bool_" until NumPy 2.
    if kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"):
        return bool(value)
    if hasattr(kind, "__index__"):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            # An array of several numbers.
            return None
    return None


def parts(value: object) -> Tuple[int, Optional[int]]:
    """Units and scale of a decimal, or microseconds and None of a moment."""
    if isinstance(value, Decimal):
        return _digits(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidValue(f"{value} has no time zone; give it one, as datetime.timezone.utc")
        # Those of pandas may have them.
        if getattr(value, "nanosecond", 0):
            raise InvalidValue(f"{value} has nanoseconds, and a timestamp has microseconds; nothing was changed")
        return (value - _EPOCH) // _MICROSECOND, None
    raise InvalidValue(f"no column holds a {type(value).__name__}; nothing was changed")


def _digits(value: Decimal) -> Tuple[int, int]:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidValue(f"{value} is no number that a decimal column holds; nothing was changed")
    if not -38 <= exponent <= 38 or len(digits) + max(exponent, 0) > 38:
        raise InvalidValue(f"{value} has more than 38 digits; nothing was changed")
    units = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    return -units if sign else units, max(-exponent, 0)


def decimal(units: int, scale: int) -> Decimal:
    """The decimal of these parts, exactly."""
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))


def moment(micros: int) -> datetime:
    """The moment so many microseconds after 1970, in UTC."""
    return _EPOCH + timedelta(microseconds=micros)
