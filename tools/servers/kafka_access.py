"""What a program does with a Kafka broker that runs, whoever started it: find it, make topics, look at groups."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.servers.class_archive import ClassArchive
from tools.servers.fetch import JarList, fetch_jars
from tools.servers.java_command import java_command
from tools.servers.kafka_listeners import PLAINTEXT
from tools.servers.server_error import ServerError
from tools.servers.waiting import becomes_true

FILES = Path(__file__).with_name("kafka_files")
JARS = JarList("Kafka", FILES / "pom.xml", megabytes=41)
_GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
_REQUEST_DEADLINE_S = 30.0
_TOOL_DEADLINE_S = 60.0
# librdkafka writes a line to standard error for each refused connection, of which there are many while a broker starts.
QUIET: dict[str, Any] = {"log_level": 0}


@dataclass
class KafkaAccess:
    """The addresses of a broker and the settings of its clients, by the name of the listener."""

    addresses: dict[str, str] = field(default_factory=dict)
    client_settings: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def bootstrap_servers(self) -> str:
        """The address of the listener without encryption and passwords."""
        return self.addresses[PLAINTEXT.name]

    def client(self, listener: str = PLAINTEXT.name, **settings: Any) -> dict[str, Any]:
        """A configuration for confluent-kafka's clients; an underscore in the name of a setting stands for a dot.

        >>> broker = KafkaAccess({"PLAINTEXT": "127.0.0.1:9092"}, {"PLAINTEXT": {}})
        >>> broker.client(group_id="readers")
        {'bootstrap.servers': '127.0.0.1:9092', 'group.id': 'readers'}
        """
        return {
            "bootstrap.servers": self.addresses[listener],
            **self.client_settings[listener],
            **_dotted(settings),
        }

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> str:
        """Make a topic, wait until each partition has a leader, and return its name; `retention_ms=1000` and so on."""
        from confluent_kafka.admin import NewTopic

        admin = self._admin()
        settings = {key: str(value) for key, value in _dotted(config).items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        admin.create_topics([topic], request_timeout=_REQUEST_DEADLINE_S)[name].result()
        if not becomes_true(lambda: _has_leaders(admin, name, partitions), _REQUEST_DEADLINE_S):
            raise ServerError(f"The topic '{name}' had no leader within {_REQUEST_DEADLINE_S:.0f} s.")
        return name

    def consumer_groups_describe(self, group: str) -> str:
        """What Kafka's own tool says about a group: a line per partition with its offset, its end and its lag."""
        jars = fetch_jars(JARS)
        command = [
            *java_command(jars, log_option(), *ClassArchive(jars).use(), heap_mb=64),
            *(_GROUP_COMMAND, "--bootstrap-server", self.bootstrap_servers, "--describe", "--group", group),
        ]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_DEADLINE_S, check=False)
        if answer.returncode != 0 or "Error:" in answer.stdout:
            raise ServerError(f"Kafka could not describe the group '{group}': {answer.stdout}{answer.stderr}")
        return answer.stdout

    def _admin(self) -> Any:
        """A new client each time: one that was made before a restart of the broker may fail after it."""
        from confluent_kafka.admin import AdminClient

        return AdminClient(self.client() | QUIET)


def log_option() -> str:
    """The Java option that names the configuration of the log."""
    return f"-Dlog4j2.configurationFile={FILES / 'log4j2.properties'}"


def _dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


def _has_leaders(admin: Any, topic: str, partitions: int) -> bool:
    described = admin.list_topics(topic, timeout=_REQUEST_DEADLINE_S).topics[topic].partitions
    return len(described) == partitions and all(each.leader >= 0 for each in described.values())
