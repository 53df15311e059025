"""Every setting of the order system with its default. `options.py` makes a command-line option of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


def setting(default: Any, explanation: str, least: float | None = None, most: float | None = None) -> Any:
    """A field with a default, a text for `--help`, and limits of its value."""
    return field(default=default, metadata={"help": explanation, "least": least, "most": most})


@dataclass(frozen=True)
class Feed:
    """Settings of the generated orders. Equal feeds give equal orders, on every machine and in every run.

    >>> Feed(seed=7) == Feed(seed=7)
    True
    """

    seed: int = setting(7, "the seed of the generated orders")
    orders: int | None = setting(None, "how many orders there are; none: they never end", least=1)
    rate: float | None = setting(100.0, "events per second over all subtasks; none: as fast as it goes", least=0.001)
    splits: int = setting(
        12, "parts that the feed is read in (in Kafka, partitions), the most source subtasks there can be", least=1
    )
    users: int = setting(500, "how many users order", least=1)
    products: int = setting(100, "how many products there are; the first ones sell best", least=1)
    categories: int = setting(6, "how many categories there are", least=1)
    orders_per_hour: int = setting(3600, "orders per hour of event time", least=1)
    duplicates: float = setting(0.05, "share of events that come twice", least=0, most=1)
    out_of_order: float = setting(0.2, "share of events that come late, within the watermarks' bound", least=0, most=1)
    cancellations: float = setting(0.1, "share of orders that are cancelled", least=0, most=1)
    misfits: float = setting(0.01, "share of orders with an event that does not fit", least=0, most=1)


@dataclass(frozen=True)
class Settings:
    """Settings of the job and of the shop's rules.

    >>> Settings().checkpoint_interval_s, Settings().batch_size
    (30.0, 100)
    """

    directory: str = setting("orders-data", "the directory of checkpoints, savepoints and output files")
    job_name: str = setting("orders", "the job's name; checkpoints are found again by it")
    parallelism: int = setting(2, "subtasks per operator", least=1)

    checkpoint_interval_s: float = setting(30.0, "time between the starts of two checkpoints", least=0.01)
    checkpoint_timeout_s: float = setting(600.0, "a checkpoint that takes longer is aborted", least=0.01)
    checkpoint_pause_s: float = setting(30.0, "the shortest time from the end of a checkpoint to the next one", least=0)
    concurrent_checkpoints: int = setting(1, "checkpoints that may be under way at a time", least=1)
    retain_checkpoints: bool = setting(True, "keep the last checkpoint when the job is cancelled")
    restart_attempts: int = setting(5, "restarts before the job fails", least=0)
    restart_delay_s: float = setting(30.0, "time between a failure and its restart", least=0)
    backend: str | None = setting(
        None, "where state lives while the job runs: hashmap, rocksdb; none: where the configuration says"
    )

    out_of_orderness_s: float = setting(5.0, "how late an event may come", least=0)
    window_s: float = setting(3600.0, "the length of the windows of purchases", least=0.001)
    initial_stock: int = setting(1000, "the stock of each product at the beginning")
    low_stock: int = setting(10, "a stock below this gives a warning")
    batch_size: int = setting(100, "events that are written together", least=1)
    duplicate_horizon_s: float = setting(86_400.0, "how long duplicates are recognized; older events are dropped")
    order_retention_s: float = setting(86_400.0, "how long an order is remembered after its end")
    order_lifetime_s: float = setting(90 * 86_400.0, "an older order is forgotten even if it has not ended")

    source: str = setting("generator", "where orders come from: generator, kafka")
    sink: str = setting("print", "where results go: print, files, kafka, hbase, postgres, kafka+hbase")
    bootstrap: str = setting("localhost:9092", "the addresses of Kafka's brokers")
    source_topic: str = setting("orders", "the Kafka topic of orders, with one partition per split of the feed")
    sink_topics: str = setting("orders-", "how the Kafka topics of results begin, one per stream of results")
    thrift: str = setting("localhost:9090", "the addresses of HBase's Thrift servers")
    database: str = setting("jdbc:postgresql://localhost:5432/postgres", "the JDBC URL of the database")
    database_user: str = setting("postgres", "the database's user; the password is in ORDERS_DATABASE_PASSWORD")
    table: str = setting("orders", "the table of all results, in HBase or PostgreSQL")


def millis(seconds: float) -> int:
    """Seconds in whole milliseconds, the API's unit.

    >>> millis(0.25)
    250
    """
    return round(seconds * 1000)
