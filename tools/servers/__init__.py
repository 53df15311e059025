"""Real servers for tests, for ``make servers``, for the demonstration and for benchmarks: a Kafka broker and an HBase.

The package lies in ``tools`` and not in ``tests``, because ``examples`` and ``benchmarks`` import it too, and neither
should import tests. A machine needs no Docker, no Maven and no installed Java: the jars come from Maven Central through
the Ivy in PySpark's wheel (`fetch`), and run on the Java that Spark uses.

Modules, in the order of their imports: `waiting` and `ports`; `java_command` (which Java, and with which options);
`fetch` (jars, once per cache); `guard` and `server_process` (a server process that cannot outlive its starter);
`class_archive` (a faster start); `kafka_listeners`, `kafka_access`, `kafka_format` and `kafka` (the broker);
`hbase_access` and `hbase` (HBase and its Thrift server); `shareable`, `shared` and `supervisor` (one server of a kind
for several processes); `__main__` (``make servers``).
"""
