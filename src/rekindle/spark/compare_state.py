"""Compare the keyed state of one operator in two checkpoints: which keys were added, removed or changed."""

from __future__ import annotations

from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from rekindle.snapshots.key_columns import KEY, KEY_GROUP, WINDOW
from rekindle.snapshots.keyed_table import DIGESTS, KEY_BYTES

ADDED: Final = "added"
REMOVED: Final = "removed"
CHANGED: Final = "changed"


def changes(before: DataFrame, after: DataFrame) -> DataFrame:
    """The differing rows of two tables with digests, joined by their encoded keys."""
    keys = [name for name in (KEY, WINDOW) if name in before.columns and name in after.columns]
    fixed = {KEY_GROUP, KEY, WINDOW, KEY_BYTES, DIGESTS}
    old_states, new_states = ([name for name in df.columns if name not in fixed] for df in (before, after))
    old, new = (df.alias(name) for df, name in ((before, "old"), (after, "new")))
    joined = old.join(new, sf.col(f"old.{KEY_BYTES}") == sf.col(f"new.{KEY_BYTES}"), "full_outer")
    changed = sf.filter(sf.array(*_differing(old_states, new_states)), lambda name: name.isNotNull())
    is_old, is_new = (sf.col(f"{name}.{KEY_BYTES}").isNotNull() for name in ("old", "new"))
    kind = sf.when(~is_old, ADDED).when(~is_new, REMOVED).otherwise(CHANGED)
    return joined.select(
        kind.alias("change"),
        *(sf.coalesce(f"new.{_quoted(name)}", f"old.{_quoted(name)}").alias(name) for name in keys),
        changed.alias("states"),
        sf.when(is_old, _struct("old", old_states)).alias("before"),
        sf.when(is_new, _struct("new", new_states)).alias("after"),
    ).where(sf.size("states") > 0)


def change_counts(operator_id: str, name: str, before: DataFrame | None, after: DataFrame | None) -> DataFrame:
    """One row: the keys of an operator that were added, removed and changed; an operator may be on one side only."""
    own = sf.lit(operator_id).alias("operator_id"), sf.lit(name).alias("name")
    if before is not None and after is not None:
        kinds = changes(before, after).select("change")
    else:
        rows, kind = (after, ADDED) if after is not None else (before, REMOVED)
        assert rows is not None, "an operator of neither checkpoint"
        kinds = rows.select(sf.lit(kind).alias("change"))
    counts = [sf.count_if(sf.col("change") == kind).alias(kind) for kind in (ADDED, REMOVED, CHANGED)]
    return kinds.agg(*counts).select(*own, ADDED, REMOVED, CHANGED)


def union_of_counts(spark: SparkSession, counted: list[DataFrame]) -> DataFrame:
    """The rows of all operators."""
    if not counted:
        return spark.createDataFrame([], "operator_id string, name string, added long, removed long, changed long")
    return reduce(DataFrame.unionAll, counted)


def _differing(old: list[str], new: list[str]) -> list[Column]:
    """For each state its name if the digests differ, else null."""
    return [
        sf.when(~_digest("old", old, name).eqNullSafe(_digest("new", new, name)), sf.lit(name))
        for name in dict.fromkeys([*old, *new])
    ] or [sf.lit(None).cast("string")]


def _digest(side: str, states: list[str], name: str) -> Column:
    if name not in states:
        return sf.lit(None).cast("binary")
    return sf.get(sf.col(f"{side}.{DIGESTS}"), sf.lit(states.index(name)))


def _struct(side: str, states: list[str]) -> Column:
    return sf.struct(*(sf.col(f"{side}.{_quoted(name)}").alias(name) for name in states))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
