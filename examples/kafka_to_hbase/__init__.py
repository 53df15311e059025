"""From Kafka into HBase: no offset is committed to Kafka before HBase has the rows.

    make servers                                                     # in another terminal: prints the addresses
    python -m examples.kafka_to_hbase --kafka localhost:9092 --thrift localhost:9090 --create
    python -m examples.kafka_to_hbase --kafka localhost:9092 --thrift localhost:9090 --keyed

Each record of the topic becomes a row, named after its partition and offset. Source and sink run in one chain, or with
`--keyed` in two tasks with an exchange between them. The log shows what the engine calls, and in which order: inside a
chain the sink first; with an exchange there is no order between the two snapshots.

The rule holds because the sink's `flush` at the barrier returns only when HBase has confirmed every row, and because
the source commits its offsets only when the checkpoint is complete, that is after every `flush`. `observer.Observer`
looks at both from outside and checks the rule.
"""
