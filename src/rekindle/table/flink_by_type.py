"""Operators and functions whose meaning in Flink's SQL depends on types: the text in their place.

Each rule gets a call with its types and returns another text, or None if Spark's meaning is Flink's for these types.
The text of a rule has other types, or is marked, so that no rule finds it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rekindle.table.flink_by_name import DAYS, Rule, refusal, unit_of
from rekindle.table.sql_calls import Call, spark, spark_cast, spark_with

#: The narrower first.
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_NESTED = ("ARRAY", "MAP", "STRUCT")
#: All doubles from here on are whole numbers.
_WHOLE = "9007199254740992D"


def _divide(call: Call) -> str | None:
    if call.name == "/" and _are_integers(call.types):
        left, right = call.given
        return spark_cast(f"{left} DIV {right}", _wider(call.types))
    return _arithmetic(call)


def _arithmetic(call: Call) -> str | None:
    """With FLOAT, Spark computes DOUBLE where Flink computes FLOAT."""
    if "FLOAT" not in call.types or not all(each in (*_INTEGERS, "FLOAT", "DOUBLE") for each in call.types):
        return None
    if call.types == ("FLOAT", "FLOAT") and call.name != "/":
        return None
    left, right = (
        spark_cast(spark_cast(value, "FLOAT") if kind in _INTEGERS else value, "DOUBLE")
        for value, kind in zip(call.given, call.types, strict=True)
    )
    return spark_cast(f"{left} {call.name} {right}", "FLOAT")


def _remainder(call: Call) -> str | None:
    """Spark's type is the wider one, Flink's is that of the divisor."""
    if not _are_integers(call.types) or _wider(call.types) == call.types[1]:
        return None
    left, right = call.given
    return spark_cast(f"{left} % {spark_cast(right, call.types[0])}", call.types[1])


def _average(call: Call) -> str | None:
    kind, tail = call.types[0], call.tail()
    counted = f"NULLIF({spark_with('count', tail)}, 0)"
    if kind in _INTEGERS:
        return spark_cast(f"{spark_with('sum', tail)} DIV {counted}", kind)
    if kind == "FLOAT":
        return spark_cast(spark_with("avg", tail), kind)
    if found := _DECIMAL.fullmatch(kind):
        return f"({spark_cast(spark_with('sum', tail), f'DECIMAL(38,{found[2]})')} / {counted})"
    return None


def _sum(call: Call) -> str | None:
    kind = call.types[0]
    found = _DECIMAL.fullmatch(kind)
    wanted = f"DECIMAL(38,{found[2]})" if found else kind
    return None if wanted == call.result or not _is_number(wanted) else _as(wanted, spark_with(call.name, call.tail()))


def _spread(call: Call) -> None:
    """Flink rounds the deviation of integers to integers, and that of decimals to decimals."""
    if call.types[0] not in ("FLOAT", "DOUBLE"):
        raise refusal(
            f"{call.name.upper()} of {call.types[0]}", "returns DOUBLE where Flink does not: cast the values to DOUBLE."
        )


def _whole(call: Call) -> str | None:
    """FLOOR and CEIL have the type of their argument in Flink."""
    kind = call.types[0]
    if len(call.given) != 1 or not _is_number(kind):
        return None
    made = spark(call.name, call.given[0])
    if kind in ("FLOAT", "DOUBLE"):
        value = call.given[0]
        return f"IF(abs({value}) < {_WHOLE}, {_as(kind, made)}, {value})"
    found = _DECIMAL.fullmatch(kind)
    wanted = f"DECIMAL({found[1]},0)" if found else kind
    return None if wanted == call.result else _as(wanted, made)


def _sign(call: Call) -> str | None:
    """SIGN has the type of its argument in Flink."""
    kind = call.types[0]
    return None if kind == "DOUBLE" or not _is_number(kind) else _as(kind, spark("sign", call.given[0]))


def _cast(call: Call) -> str | None:
    """Spark's texts of booleans are small letters; its TRY_CAST to integers is null for fractions and overflows."""
    if call.name not in ("cast", "try_cast"):
        return None  # one that Spark has made
    kind = call.types[0]
    if call.result == "STRING" and kind.startswith(_NESTED):
        raise refusal(f"A cast of {kind} to STRING", "writes it otherwise: write its elements yourself.")
    if call.result == "STRING" and kind.startswith("TIMESTAMP"):
        raise refusal(
            "A cast of TIMESTAMP to STRING",
            "leaves out the zeros at its end, which Flink writes: use DATE_FORMAT(time, 'yyyy-MM-dd HH:mm:ss.SSS').",
        )
    if call.result == "STRING" and kind == "BOOLEAN":
        return f"upper({spark_cast(call.given[0], 'STRING')})"
    if call.name == "try_cast" and call.result in _INTEGERS:
        if kind == "STRING":
            whole = spark("regexp_replace", call.given[0], "'^ *([+-]?)([0-9]*)[.][0-9]* *$'", "'$10$2'")
            return f"TRY_CAST/**/({whole} AS {call.result})"
        return spark_cast(call.given[0], call.result) if _is_number(kind) else None
    return None


def _element(call: Call) -> str:
    """Spark counts from 0, Flink from 1."""
    array, index = call.given
    return f"get({array}, {index} - 1)"


def _equal(call: Call) -> None:
    """Flink compares FLOAT with DOUBLE and DECIMAL as FLOAT, and BOOLEAN with STRING as STRING."""
    kinds = {each.split("(")[0] for each in call.types}
    if call.name == "=" and (kinds == {"BOOLEAN", "STRING"} or ("FLOAT" in kinds and kinds & {"DOUBLE", "DECIMAL"})):
        raise refusal(f"Equality of {' and '.join(call.types)}", "compares them otherwise: cast one to the other type.")


def _add_time(call: Call) -> str | None:
    """Spark makes a time, of the session's zone, of a date to which it adds something."""
    if call.name != "timestampadd" or call.types[-1] != "DATE":
        return None
    *_, amount, date = call.given
    added = f"timestampadd({unit_of(call)}, {amount}, {spark_cast(date, 'TIMESTAMP_NTZ')})"
    return spark_cast(added, "DATE") if unit_of(call) in DAYS else added


def _add_interval(call: Call) -> None:
    if call.name in ("+", "-") and "DATE" in call.types:
        raise refusal("DATE with an INTERVAL of hours or less", "makes a time of it: cast the DATE to TIMESTAMP.")


# -- types ------------------------------------------------------------------------------------------------------------


def _are_integers(types: tuple[str, ...]) -> bool:
    return all(each in _INTEGERS for each in types)


def _wider(types: tuple[str, ...]) -> str:
    return max(types, key=_INTEGERS.index)


def _is_number(kind: str) -> bool:
    return kind in (*_INTEGERS, "FLOAT", "DOUBLE") or _DECIMAL.fullmatch(kind) is not None


def _as(kind: str, value: str) -> str:
    return spark_cast(value, kind)


#: Rules by the kind of Spark's expression.
BY_TYPE: Mapping[str, Rule] = {
    "Divide": _divide,
    **dict.fromkeys(("Add", "Subtract", "Multiply"), _arithmetic),
    "Remainder": _remainder,
    "Average": _average,
    "Sum": _sum,
    **dict.fromkeys(("StddevPop", "StddevSamp", "VariancePop", "VarianceSamp"), _spread),
    **dict.fromkeys(("Floor", "Ceil"), _whole),
    "Signum": _sign,
    "Cast": _cast,
    "GetArrayItem": _element,
    "EqualTo": _equal,
    "TimestampAdd": _add_time,
    **dict.fromkeys(("TimeAdd", "TimestampAddInterval"), _add_interval),
}
