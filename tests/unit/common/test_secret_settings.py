"""Secrets from files and from the environment: which settings take them, and where the secret itself never shows."""

from __future__ import annotations

import json
import logging
import os
import urllib.request
from pathlib import Path

import pytest

from rekindle import config
from rekindle.checkpoint.store.options import store_options
from rekindle.common import Configuration
from rekindle.config import OPTIONS
from rekindle.datastream import MapFunction, StreamExecutionEnvironment
from rekindle.errors import ConfigurationError
from rekindle.graph.build import build_plan
from rekindle.graph.explain import explain
from rekindle.graph.plan_json import plan_json
from rekindle.web.endpoints import ENDPOINTS
from tests.support.local_cluster import launch_locally
from tests.support.waiting import wait_until

SECRET = "open-sesame-0123456789"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n")
    return path


def test_secret_options_come_from_the_environment_and_from_files(monkeypatch, file):
    monkeypatch.setenv("KEY_OF_A_TEST", SECRET)
    for option in (config.S3_ACCESS_KEY, config.S3_SECRET_KEY, config.S3_SESSION_TOKEN, config.REST_TOKEN):
        for key in (option.key, *option.deprecated_keys):
            for reference in ("env:KEY_OF_A_TEST", f"file:{file}", f"file://{file}"):
                configuration = Configuration.from_dict({key: reference})
                assert configuration.get(option) == SECRET
                assert configuration.get_string(key, "") == SECRET
                assert configuration.to_dict() == {key: reference}
                assert SECRET not in repr(configuration)


def test_those_without_an_option_come_so_too(monkeypatch, file):
    monkeypatch.setenv("KEY_OF_A_TEST", SECRET)
    configuration = Configuration.from_dict(
        {
            "rekindle.store.s3.sse_customer_key_base64": "env:KEY_OF_A_TEST",
            "rekindle.store.gs.service_account_key": f"file:{file}",
            "rekindle.spark.conf.spark.ssl.keyPassword": f"file:{file}",
            "acme.db.password": "env:KEY_OF_A_TEST",
            "pipeline.global-job-parameters.other.token": "env:KEY_OF_A_TEST",
        }
    )
    assert store_options(configuration) == {
        "s3": {"sse_customer_key_base64": SECRET},
        "gs": {"service_account_key": SECRET},
    }
    assert configuration.with_prefix("rekindle.spark.conf.") == {"spark.ssl.keyPassword": SECRET}
    assert configuration.own_settings() == {"acme.db.password": SECRET}
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    assert env.get_config().get_global_job_parameters() == {"other.token": SECRET}
    env.get_config().set_global_job_parameters({"a.password": "env:KEY_OF_A_TEST", "region": "env:KEY_OF_A_TEST"})
    parameters = env.get_config().get_global_job_parameters()
    assert (parameters["a.password"], parameters["region"]) == (SECRET, "env:KEY_OF_A_TEST")


@pytest.mark.parametrize(
    "key",
    [
        "execution.checkpointing.dir",
        "execution.checkpointing.savepoint-dir",
        "execution.state-recovery.path",
        "rekindle.spark.authenticate.secret-file",
        "rekindle.tls.key",
        "s3.endpoint",
        "acme.folder",
        "rekindle.store.gs.google_service_account",
        "rekindle.spark.conf.spark.kubernetes.authenticate.submission.oauthTokenFile",
    ],
)
def test_other_settings_keep_their_meaning(key):
    for value in ("file:///folder", "env:NAME"):
        configuration = Configuration.from_dict({key: value})
        assert configuration.get_string(key, "") == value
        if key in OPTIONS:
            assert configuration.get(OPTIONS[key]) == value
        head, _, tail = key.rpartition(".")
        assert configuration.with_prefix(f"{head}.") == {tail: value}


def test_every_secret_option_is_hidden_where_settings_are_shown():
    assert sorted({option.key for option in OPTIONS.values() if option.secret}) == [
        "rekindle.rest.token",
        "s3.access-key",
        "s3.secret-key",
        "s3.session.token",
    ]
    for key in (key for key, option in OPTIONS.items() if option.secret):
        assert SECRET not in str(Configuration.from_dict({key: SECRET}))


@pytest.mark.parametrize(
    ("content", "reference", "sentence"),
    [
        (None, "env:NOT_SET_IN_A_TEST", "there is no environment variable NOT_SET_IN_A_TEST; set it where the driver"),
        (None, "env:EMPTY_IN_A_TEST", "the environment variable EMPTY_IN_A_TEST is empty"),
        (None, "env:", "there is no environment variable "),
        (None, "file:{folder}/missing", "the file {folder}/missing cannot be read (No such file or directory)"),
        (None, "file:{folder}", "the file {folder} cannot be read (Is a directory)"),
        (b"\n", "file:{folder}/key", "the file {folder}/key is empty"),
        (b"", "file:{folder}/key", "the file {folder}/key is empty"),
        (b"\xff\xfesecret", "file:{folder}/key", "the file {folder}/key is no text in UTF-8"),
    ],
)
def test_a_secret_that_is_not_there_is_one_sentence(monkeypatch, tmp_path, content, reference, sentence):
    monkeypatch.setenv("EMPTY_IN_A_TEST", "")
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    configuration = Configuration.from_dict({"s3.secret-key": reference.format(folder=tmp_path)})
    with pytest.raises(ConfigurationError) as refused:
        store_options(configuration)
    told = str(refused.value)
    assert told.startswith(f"The value of 's3.secret-key' cannot be used: {sentence.format(folder=tmp_path)}")
    assert told.count("\n") == 0
    assert refused.value.__cause__ is None


def test_only_the_last_line_end_is_taken_off(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(b" two\nlines \r\n")
    assert Configuration.from_dict({"acme.secret": f"file:{path}"}).get_string("acme.secret", "") == " two\nlines "


class Asks(MapFunction):
    """Knows the password in the slot, and does not tell it."""

    def open(self, runtime_context):
        self.password = runtime_context.get_job_parameter("acme.password", "")

    def map(self, value):
        return len(self.password)


def test_a_secret_of_a_running_job_is_nowhere_to_be_read(monkeypatch, tmp_path, file, caplog, capfd):
    """Log, output, plan, every answer, page, history, checkpoint and savepoint."""
    monkeypatch.setenv("KEY_OF_A_TEST", SECRET)
    monkeypatch.setenv("XDG_RUNTIME_DIR", os.fspath(tmp_path / "run"))
    configuration = Configuration.from_dict(
        {
            "acme.password": "env:KEY_OF_A_TEST",
            "pipeline.global-job-parameters.db.password": f"file:{file}",
            "s3.secret-key": f"file:{file}",
            "rekindle.rest.token": f"file:{file}",
            "rest.port": "0",
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.dir": f"{tmp_path}/checkpoints",
            "execution.checkpointing.savepoint-dir": f"{tmp_path}/savepoints",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)
    source = env.from_sequence(1, 2**62)
    source.map(Asks()).key_by(lambda n: n % 2).reduce(max).filter(lambda n: False).print()
    program = env._program("secrets")
    plan = build_plan(program)
    shown = [repr(plan), repr(program), explain(plan), plan_json(plan), str(configuration)]
    with caplog.at_level(logging.DEBUG):
        job = launch_locally(program)
        address = job.web_url()
        assert address is not None
        wait_until(lambda: job.checkpoint_statistics().counts.completed > 0, "a checkpoint", 100)
        shown += [ask(address, path, job) for path in asked_paths()]
        job.stop_with_savepoint(False).result(100)
    shown += [address, caplog.text, *capfd.readouterr()]
    places = (tmp_path / "checkpoints", tmp_path / "savepoints")
    files = [path.read_bytes() for place in places for path in place.rglob("*") if path.is_file()]
    assert files
    assert any('"db.password":"******"' in each.replace(" ", "") for each in shown)
    assert not [each for each in shown if SECRET in each]
    assert not [each for each in files if SECRET.encode() in each]


def asked_paths() -> list[str]:
    names = [
        each.path for each in ENDPOINTS if each.method == "GET" and each.path.count("{") == each.path.count("{jobid}")
    ]
    return [*names, "/", "/metrics", "/openapi.json"]


def ask(address, path, job):
    asked = urllib.request.Request(address.rstrip("/") + path.format(jobid=job.job_id))
    asked.add_header("Authorization", f"Bearer {SECRET}")
    with urllib.request.urlopen(asked, timeout=60) as answer:
        return json.dumps(answer.headers.items()) + answer.read().decode()
