"""`make demo` as its users run it: its claims hold, and no process stays behind, also after Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import time

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from examples.orders.kafka_ends import events_per_partition
from examples.orders.settings import Feed, Settings
from examples.orders.show.servers_stage import ServersStage
from tests.support.running_program import RunningProgram, seconds_until_gone
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(400)


def test_the_demo_breaks_the_job_four_times_and_every_branch_is_equal():
    with RunningProgram("examples.demo", "--orders", "5000", "--rate", "900", "--seed", "11") as program:
        assert program.wait(deadline_s=350.0) == 0, program.story()
        said = "\n".join(program.out)
        assert len(re.findall(r"running again [\d.]+ s later, from (?:checkpoint|savepoint) \d+", said)) == 4
        assert re.search(r"checkpoint \d+ complete in \d+ ms: .* written, state ", said)
        assert len(re.findall(r"│ equal +│", said)) == 9
        assert "DIFFERENT" not in said
        assert "Proved: the job was broken 4 times" in said
        seconds_until_gone(program.processes(), time.monotonic(), deadline_s=10.0)
        assert os.listdir(program.temporary) == []


@pytest.mark.long
def test_after_ctrl_c_nothing_is_left():
    with RunningProgram("examples.demo", "--rate", "500") as program:
        program.wait_for_line("checkpoint 1 complete")
        family = program.processes()
        assert len(family) > 3
        program.send_signal(signal.SIGINT)
        assert program.wait(deadline_s=60.0) == 128 + signal.SIGINT, program.story()
        seconds_until_gone(family, time.monotonic(), deadline_s=10.0)
        assert program.out[-1] == "Interrupted: the job is gone, and so are its files."
        assert os.listdir(program.temporary) == []


# -- with servers; the whole show takes minutes, so its parts are driven here -----------------------------------


@pytest.mark.long
def test_a_killed_broker_gets_every_order_once_so_that_the_job_knows_the_ends_of_partitions(tmp_path):
    feed = Feed(orders=1500, rate=1500.0, splits=4)
    with ServersStage(Settings(directory=str(tmp_path)), feed) as stage:
        stage.start_feed()
        wait_until(lambda: stage.sent() > 500, "the first orders are sent", 60.0)
        kafka, hbase = stage.servers["the Kafka broker"], stage.servers["HBase"]
        pid = kafka.pid
        kafka.kill()
        before = stage.sent()
        wait_until(lambda: stage.sent() > before, "orders come while there is no broker", 60.0)
        kafka.restart()
        hbase.kill()
        hbase.restart()
        stage.finish_feed()
        stage.wait_for_feed()
        assert ends_of(stage, feed) == events_per_partition(feed, 5000)
        assert stage.count() == {}
        assert list(stage.rows_of("statuses")) == list(stage.rows_of("rejected")) == []
        servers = [psutil.Process(server.pid) for server in (kafka, hbase)]
    assert servers[0].pid != pid
    seconds_until_gone(servers, time.monotonic(), deadline_s=10.0)


def ends_of(stage: ServersStage, feed: Feed) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": stage.settings.bootstrap, "group.id": "ends"})
    partitions = [TopicPartition(stage.settings.source_topic, number) for number in range(feed.splits)]
    ends = {each.partition: consumer.get_watermark_offsets(each, 30)[1] for each in partitions}
    consumer.close()
    return ends


@pytest.mark.long
def test_after_ctrl_c_no_server_is_left():
    with RunningProgram("examples.demo", "--servers") as program:
        program.wait_for_line("starting Spark and the job")
        family = program.processes()
        assert program.java("kafka.Kafka")
        assert program.java("org.apache.hadoop.hbase.master.HMaster")
        program.send_signal(signal.SIGINT)
        assert program.wait(deadline_s=60.0) == 128 + signal.SIGINT, program.story()
        seconds_until_gone(family, time.monotonic(), deadline_s=10.0)
        assert program.out[-1] == "Interrupted: the job is gone, and so are its files."
        assert os.listdir(program.temporary) == []
