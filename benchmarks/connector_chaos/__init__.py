"""Kafka → keyed state → Kafka, HBase and PostgreSQL, while every process is killed (SIGKILL) in every phase.

    python -m benchmarks.connector_chaos --seed 7
    python -m benchmarks.connector_chaos --seed 7 --records 20000 --kills 2 --output postgres

Records are produced while the job runs, until the last kill is over. Each kill hits one kind of process in one phase:
records flowing, between a barrier and its checkpoint's completion, the commit, or a restore; the command prints which.
A killed driver is started again with another parallelism. At the end what the job has
written to each output is compared, per key and in order or cell by cell, with what the same job writes over the same
input without any kill. Slots, driver, broker and the servers of the outputs are killed.
"""
