"""Functions of Flink's SQL that Spark has under the same name with another meaning: the text in their place.

Each rule gets a call and returns another text, or None if Spark's meaning is Flink's here. It needs no types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from rekindle.errors import GraphError
from rekindle.table.flink_functions import ABSENT, REFUSED
from rekindle.table.sql_calls import Call, integer_of, spark, spark_cast, spark_with, string_of

#: A text for a call; None if it stays as it is.
Rule: TypeAlias = Callable[[Call], str | None]

_CAST = re.compile(r"(?P<try>TRY_)?CAST\s*\(.*\bAS\s+(?P<type>[^']+)\)", re.IGNORECASE | re.DOTALL)
_SIZED_TYPE = re.compile(
    r"(?P<name>[A-Z_]+)(?: ?\(\s*(?P<size>[0-9]+)\s*\)|/\*\((?P<digits>[0-9]+)\)\*/|(?P<bytes>/\*BYTES\*/))?"
)
#: Fields of a time that Spark's `date_part` has not, as expressions of those that it has.
_FRACTIONS = {"MILLISECOND": 1_000, "MICROSECOND": 1_000_000}
_MONTHS = frozenset({"MONTH", "QUARTER", "YEAR"})
DAYS = _MONTHS | {"DAY", "WEEK"}


def refusal(what: str, why: str) -> GraphError:
    """Return the error for what has another meaning in Flink."""
    return GraphError(f"{what} is refused, because Spark, which runs the queries of tables, {why}")


# -- numbers ----------------------------------------------------------------------------------------------------------


def _logarithm(call: Call) -> str:
    """Spark has null where Flink has -Infinity or NaN."""
    if len(call.given) == 2:
        base, value = call.given
        return f"(ln({value}) / ln({base}))"
    (value,) = call.given
    name = "ln" if call.name == "log" else call.name
    zero, negative = spark_cast("'-Infinity'", "DOUBLE"), spark_cast("'NaN'", "DOUBLE")
    below = f"WHEN {value} = 0 THEN {zero} WHEN {value} < 0 THEN {negative}"
    return f"CASE WHEN {value} > 0 THEN {spark(name, value)} {below} END"


def _extreme(call: Call) -> str:
    """Spark leaves nulls out; in Flink one null makes the result null."""
    unknown = " OR ".join(f"{value} IS NULL" for value in call.given)
    return f"CASE WHEN {unknown} THEN NULL ELSE {spark(call.name, *call.given)} END"


def _unhex(call: Call) -> str:
    """Spark puts a 0 before an odd number of digits; Flink a zero byte in the place of the first."""
    (digits,) = call.given
    odd = spark("unhex", f"concat('00', {spark('substring', digits, '2')})")
    return f"IF(length({digits}) & 1 = 1, {odd}, {spark('unhex', digits)})"


# -- texts ------------------------------------------------------------------------------------------------------------


def _trim_characters(call: Call) -> str | None:
    """Spark takes the characters first."""
    return None if len(call.given) == 1 else spark(call.name, *reversed(call.given))


def _substring(call: Call) -> str | None:
    """Spark counts a start before the text from its end; it gives an empty text for a negative length."""
    text, start, *length = call.given
    numbers = [integer_of(each) for each in call.arguments[1:] if each]
    if all(number is not None and number >= 0 for number in numbers):
        return None
    taken = spark("substring", text, start, *length)
    before = f"WHEN {start} < -char_length({text}) THEN '' ELSE {taken} END"
    return f"CASE WHEN {length[0]} < 0 THEN NULL {before}" if length else f"CASE {before}"


def _pad(call: Call) -> str | None:
    """Spark returns a text for a negative length or nothing to pad with; Flink returns null."""
    if len(call.given) != 3 or ((integer_of(call.arguments[1]) or -1) >= 0 and string_of(call.arguments[2])):
        return None
    text, length, padding = call.given
    return f"CASE WHEN {length} < 0 OR {padding} = '' THEN NULL ELSE {spark(call.name, text, length, padding)} END"


def _replace(call: Call) -> str | None:
    """Spark finds an empty text nowhere; Flink finds it between all characters."""
    if len(call.given) != 3 or string_of(call.arguments[1]):
        return None
    text, search, other = call.given
    return f"IF({search} = '', regexp_replace({text}, '', {other}), {spark('replace', text, search, other)})"


def _translate(call: Call) -> str | None:
    """Spark returns null for characters that are null."""
    if all(string_of(each) is not None for each in call.arguments[1:]):
        return None
    text, characters, others = call.given
    changed = spark("translate", text, characters, f"coalesce({others}, '')")
    return f"IF({characters} IS NULL, {text}, {changed})"


def _capitals(call: Call) -> str:
    """Spark's words end at blanks; Flink's end at every character but A to Z, a to z and 0 to 9."""
    (text,) = call.given
    capital = "concat(upper(left(part, 1)), lower(substring(part, 2)))"
    parts = f"regexp_extract_all({text}, '([A-Za-z0-9]+|[^A-Za-z0-9]+)', 1)"
    return f"array_join(transform({parts}, part -> IF(rlike(part, '^[A-Za-z0-9]'), {capital}, part)), '')"


def _ascii(call: Call) -> str:
    """Spark returns the number of the first character; Flink that of its first byte, with a sign."""
    (text,) = call.given
    code = spark("ascii", text)
    byte = f"CAST(conv(left(hex({text}), 2), 16, 10) AS INT) - 256"
    return f"IF({code} < 128, {code}, {byte})"


def _locate(call: Call) -> str | None:
    """Spark finds nothing from a place before the text on."""
    if len(call.given) < 3 or (integer_of(call.arguments[2]) or 0) > 0:
        return None
    search, text, start = call.given
    return spark("locate", search, text, f"IF({start} < 1, 1, {start})")


def _split(call: Call) -> str:
    """Spark splits at a regular expression."""
    text, _ = call.given
    separator = string_of(call.arguments[1])
    if separator is None or "\\" in separator:
        raise refusal("SPLIT at what is no plain string", "splits at a regular expression: write the string itself.")
    parts = spark("split", text, _literally(separator))
    return f"IF({text} = '', {spark_cast('array()', 'ARRAY<STRING>')}, {parts})"


def _split_index(call: Call) -> str:
    """Spark has no such function."""
    text, _, index = call.given
    number, separator = integer_of(call.arguments[1]), string_of(call.arguments[1])
    separator = chr(number) if number is not None else separator
    if not separator or "\\" in separator:
        raise GraphError("SPLIT_INDEX takes a plain string that is not empty as its separator here.")
    return f"IF({text} = '', NULL, get({spark('split', text, _literally(separator))}, {index}))"


def _literally(text: str) -> str:
    """Return the text of a pattern that is this text and nothing else."""
    escaped = (each if each.isalnum() or each.isspace() else rf"\\{each}" for each in text)
    pattern = "".join(escaped)
    return "'" + pattern.replace("'", "\\'") + "'"


def _regexp_extract(call: Call) -> str:
    """Spark takes the first group by default, and gives an empty text where there is nothing."""
    text, pattern, *group = call.given
    number = integer_of(call.arguments[2]) if group else 0
    if number != 0 and not _has_all_groups(string_of(call.arguments[1])):
        raise refusal(
            "REGEXP_EXTRACT of a group that may be missing in a match",
            "gives an empty text for it where Flink gives null: write a pattern whose groups are in every match.",
        )
    extracted = spark("regexp_extract", text, pattern, *(group or ["0"]))
    return f"CASE WHEN rlike({text}, {pattern}) THEN {extracted} END"


def _has_all_groups(pattern: str | None) -> bool:
    """Whether all groups of a pattern are part of every match. None is a pattern that only a row knows."""
    if pattern is None:
        return False
    rest = re.sub(r"\[[^\]]*\]", "", re.sub(r"\\.", "", pattern))
    while found := re.search(r"\(([^()]*)\)", rest):
        if "\0" in found[1] and "|" in found[1]:
            return False
        rest = rest[: found.start()] + "\0" + rest[found.end() :]
    return not ("\0" in rest and "|" in rest) and re.search("\0[?*{]", rest) is None


def _regexp_replace(call: Call) -> str | None:
    """Spark reads `$1` in the replacement as a group."""
    replacement = string_of(call.arguments[2])
    if len(call.given) != 3 or (replacement is not None and not set(replacement) & set("$\\")):
        return None
    text, pattern, other = call.given
    plain = spark("replace", spark("replace", other, r"'\\'", r"'\\\\'"), "'$'", r"'\\$'")
    return spark("regexp_replace", text, pattern, plain)


def _like(call: Call) -> str | None:
    """Spark's patterns escape with a backslash without being told so."""
    pattern = call.arguments[1]
    if re.search(r"\bESCAPE\s*'[^']*'\s*$", call.text, re.IGNORECASE) or pattern.startswith("replace/**/"):
        return None
    if "\\" not in (string_of(pattern) or "\\"):
        return None
    index = call.text.rindex(pattern)
    plain = spark("replace", f"({pattern})", r"'\\'", r"'\\\\'")
    return call.text[:index] + plain + call.text[index + len(pattern) :]


def _listagg(call: Call) -> str | None:
    """Spark puts nothing between the texts, Flink a comma."""
    if len(call.arguments) != 1:
        return None
    end = _closing(call.text)
    return spark_with(call.name, f"{call.text[len(call.name) : end]}, ','{call.text[end:]}")


def _closing(text: str) -> int:
    """Return where the first parenthesis of a call is closed."""
    depth = 0
    for found in re.finditer(r"'(?:[^'\\]|\\.)*'|`[^`]*`|[()]", text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0 and found[0] == ")":
            return found.start()
    raise AssertionError(text)


def _to_map(call: Call) -> str | None:
    """Spark's default is a colon between keys and values."""
    return spark("str_to_map", call.given[0], "','", "'='") if len(call.given) == 1 else None


# -- arrays -----------------------------------------------------------------------------------------------------------


def _array_contains(call: Call) -> str:
    """Spark returns null where an element is null."""
    array, value = call.given
    null, found = f"exists({array}, each -> each IS NULL)", f"coalesce({spark(call.name, array, value)}, FALSE)"
    return f"IF({array} IS NULL, NULL, IF({value} IS NULL, {null}, {found}))"


def _array_remove(call: Call) -> str:
    """Spark returns null for a null to remove."""
    array, value = call.given
    return f"IF({value} IS NULL, filter({array}, each -> each IS NOT NULL), {spark(call.name, array, value)})"


def _array_sort(call: Call) -> str | None:
    """Spark puts nulls last, and takes a function as the second argument."""
    if len(call.arguments) > 2:
        raise refusal("ARRAY_SORT with three arguments", "has no choice of the place of nulls: leave it out.")
    return None if "->" in call.text else spark("sort_array", *call.given)


# -- times ------------------------------------------------------------------------------------------------------------


def _field(call: Call) -> str:
    """Spark's seconds have a fraction, and its fields are INT."""
    unit, value = unit_of(call), call.given[-1]
    if unit in _FRACTIONS:
        many = _FRACTIONS[unit]
        all_of_them = spark_cast(f"date_part('SECOND', {value}) * {many}", "BIGINT")
        return f"({all_of_them} % CAST({many} AS BIGINT))"
    field = "DAYOFWEEK_ISO" if unit == "ISODOW" else unit
    return spark_cast(f"date_part('{field}', {value})", "BIGINT")


def _part(call: Call) -> str:
    """Spark's parts of a time are INT."""
    return spark_cast(spark("weekofyear" if call.name == "week" else call.name, *call.given), "BIGINT")


def _difference(call: Call) -> str:
    """Spark counts months from day to day, Flink to the last day of a month too; and Flink's numbers are INT."""
    unit = unit_of(call)
    if unit in _MONTHS:
        raise refusal(f"TIMESTAMPDIFF({unit}, ...)", "counts the last days of months otherwise: use DAY.")
    return spark_cast(spark_with(call.name, call.tail()), "INT")


def unit_of(call: Call) -> str:
    """Return the first word of the arguments: a unit of time."""
    found = re.match(r"\w+\s*\(\s*(\w+)", call.text)
    return found[1].upper() if found else ""


def _to_timestamp(call: Call) -> str:
    """Spark keeps microseconds, reads other forms of times too, and raises an error for what is no time."""
    with_pattern = len(call.given) == 2
    made = _milliseconds(spark("to_timestamp" if with_pattern else "try_to_timestamp", *call.given))
    form = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}( [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}([.][0-9]+)?)?$"
    return made if with_pattern else f"CASE WHEN rlike({call.given[0]}, '{form}') THEN {made} END"


def _to_date(call: Call) -> str | None:
    """Spark raises an error for what is no date."""
    return spark("try_to_date", *call.given) if len(call.given) == 1 else None


def _milliseconds(time: str, digits: int = 3) -> str:
    if digits >= 6:
        return time
    length = 20 + digits if digits else 19
    return spark_cast(f"left({spark_cast(spark_cast(time, 'TIMESTAMP_NTZ'), 'STRING')}, {length})", "TIMESTAMP_NTZ")


def _to_local_timestamp(call: Call) -> str:
    """Spark reads a number as seconds, Flink as milliseconds."""
    precision = integer_of(call.arguments[1]) if len(call.given) > 1 else 3
    if precision not in (0, 3) or string_of(call.arguments[0]) is not None:
        raise refusal(
            "TO_TIMESTAMP_LTZ of a text", "reads it in another time zone: use TO_TIMESTAMP, or a number and 0 or 3."
        )
    name = "timestamp_seconds" if precision == 0 else "timestamp_millis"
    return spark(name, spark_cast(call.given[0], "BIGINT"))


# -- casts ------------------------------------------------------------------------------------------------------------


def _cast(call: Call) -> str | None:
    """Spark cuts no texts to the length of a type, and has one precision of times."""
    written = _CAST.fullmatch(call.text)
    sized = None if written is None else _SIZED_TYPE.fullmatch(" ".join(written["type"].upper().split()))
    if written is None or sized is None:
        return None
    value, name, size = call.given[0], sized["name"], sized["size"]
    cast = f"{written['try'] or ''}CAST"
    if name in ("VARCHAR", "CHAR") and size is not None:
        cut = f"left({cast}({value} AS STRING), {size})"
        return cut if name == "VARCHAR" else spark("rpad", cut, size, "' '")
    if sized["digits"] is not None:
        made, digits = f"{cast}/**/({value} AS {name})", int(sized["digits"])
        return _local_time(made, digits) if name == "TIMESTAMP_LTZ" else _milliseconds(made, digits)
    if sized["bytes"]:
        return f"{cast}/**/({value} AS BINARY)"
    if name == "BINARY":
        raise refusal("CAST(... AS BINARY)", "has bytes of any length under this name: write BYTES.")
    return None


def _local_time(time: str, digits: int) -> str:
    if digits >= 6:
        return time
    units = {0: "SECOND", 3: "MILLISECOND"}
    if digits not in units:
        raise GraphError(f"A cast to TIMESTAMP_LTZ({digits}) is not here: write 0, 3 or 6.")
    return spark("date_trunc", f"'{units[digits]}'", time)


def _refuse(call: Call) -> None:
    raise refusal(call.name.upper(), REFUSED[call.name])


def _lack(call: Call) -> None:
    raise GraphError(f"{call.name.upper()} of Flink's SQL is not here: write a Python function with udf().")


def _as_bigint(call: Call) -> str:
    """Spark's numbers of rows are INT."""
    return spark_cast(spark_with(call.name, call.tail()), "BIGINT")


#: Rules of functions, by their names in small letters.
BY_NAME: Mapping[str, Rule] = {
    **dict.fromkeys(("ln", "log", "log2", "log10"), _logarithm),
    **dict.fromkeys(("greatest", "least"), _extreme),
    "unhex": _unhex,
    **dict.fromkeys(("ltrim", "rtrim"), _trim_characters),
    **dict.fromkeys(("substring", "substr"), _substring),
    **dict.fromkeys(("lpad", "rpad"), _pad),
    "replace": _replace,
    "translate": _translate,
    "initcap": _capitals,
    "ascii": _ascii,
    "locate": _locate,
    "split": _split,
    "split_index": _split_index,
    "regexp_extract": _regexp_extract,
    "regexp_replace": _regexp_replace,
    "like": _like,
    "str_to_map": _to_map,
    "listagg": _listagg,
    "array_contains": _array_contains,
    "array_remove": _array_remove,
    "array_position": lambda call: spark_cast(spark(call.name, *call.given), "INT"),
    "array_sort": _array_sort,
    "from_base64": lambda call: f"decode(unbase64({call.given[0]}), 'UTF-8')",
    "to_base64": lambda call: f"base64({call.given[0]})",
    "url_decode": lambda call: f"try_url_decode({call.given[0]})",
    "sha224": lambda call: f"sha2({call.given[0]}, 224)",
    "sha256": lambda call: f"sha2({call.given[0]}, 256)",
    "sha384": lambda call: f"sha2({call.given[0]}, 384)",
    "sha512": lambda call: f"sha2({call.given[0]}, 512)",
    "extract": _field,
    **dict.fromkeys(
        ("year", "quarter", "month", "week", "dayofyear", "dayofmonth", "dayofweek", "hour", "minute", "second"), _part
    ),
    "timestampdiff": _difference,
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "to_timestamp_ltz": _to_local_timestamp,
    **dict.fromkeys(("cast", "try_cast"), _cast),
    **dict.fromkeys(("rank", "dense_rank", "row_number", "ntile", "grouping", "grouping_id"), _as_bigint),
    **dict.fromkeys(REFUSED, _refuse),
    **dict.fromkeys(ABSENT, _lack),
}
