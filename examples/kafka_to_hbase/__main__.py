"""The command: `python -m examples.kafka_to_hbase`."""

from __future__ import annotations

from examples.kafka_to_hbase.job import FAMILY, Place, add_pipeline
from examples.small import directory_of, environment_of, parser_of


def main() -> None:
    """Run the pipeline until it is interrupted."""
    parser = parser_of("A topic of Kafka into a table of HBase; no offset is committed before HBase has its row.")
    parser.add_argument("--kafka", default="localhost:9092", help="the broker (default: %(default)s)")
    parser.add_argument("--topic", default="records", help="the topic to read (default: %(default)s)")
    parser.add_argument("--group", default="kafka-to-hbase", help="the consumer group (default: %(default)s)")
    parser.add_argument("--thrift", default="localhost:9090", help="HBase's Thrift server (default: %(default)s)")
    parser.add_argument("--table", default="records", help="the table to write (default: %(default)s)")
    parser.add_argument("--keyed", action="store_true", help="with an exchange between source and sink")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that the sink waits at a barrier (default 0)")
    parser.add_argument("--create", action="store_true", help="make the topic and the table first")
    options = parser.parse_args()
    place = Place(options.kafka, options.topic, options.group, options.thrift, options.table)
    if options.create:
        create(place)
    env = environment_of(options, directory_of(options))
    add_pipeline(env, place, keyed=options.keyed, pause_s=options.pause)
    env.execute("kafka to hbase")


def create(place: Place, partitions: int = 2) -> None:
    """Make the topic and the table, unless they are there."""
    import happybase
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": place.bootstrap_servers})
    if place.topic not in admin.list_topics(timeout=10).topics:
        admin.create_topics([NewTopic(place.topic, partitions, 1)])[place.topic].result(30)
    host, _, port = place.thrift_servers.partition(":")
    connection = happybase.Connection(host, int(port))
    if place.table.encode() not in connection.tables():
        connection.create_table(place.table, {FAMILY: {}})
    connection.close()


if __name__ == "__main__":
    main()
