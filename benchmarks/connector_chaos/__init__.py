"""Kafka → keyed state → Kafka, exactly once, while slots, driver and broker are killed (SIGKILL) in every phase.

    python -m benchmarks.connector_chaos --seed 7
    python -m benchmarks.connector_chaos --seed 7 --records 20000 --kills 2      # the short form, in `make test`

Records are produced while the job runs, until the last kill is over. Each kill hits one kind of process in one phase:
records flowing, between a barrier and its checkpoint's completion, the commit, or a restore; the command prints which.
A killed driver is started again with another parallelism. At the end the committed records of the output topic are
compared, per key and in order, with those of the same job over the same input without any kill.
"""
