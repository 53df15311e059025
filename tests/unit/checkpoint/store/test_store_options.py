"""Settings of object stores: from the job's configuration to whoever opens the store, and to nobody else."""

from __future__ import annotations

import msgspec
import pytest

from rekindle.checkpoint.store.objects import ObjectStore
from rekindle.checkpoint.store.options import open_configured, options_for, store_options
from rekindle.common import Configuration
from rekindle.coordinator.checkpoints.driver import AttemptBasis
from rekindle.protocol import CheckpointOrder, Deploy, Storage, decode_from_driver, encode

SECRET = "do-not-tell"
S3 = {
    "endpoint": "http://127.0.0.1:9000",
    "region": "eu-west-1",
    "access_key_id": "me",
    "secret_access_key": SECRET,
    "session_token": SECRET + "-token",
    "virtual_hosted_style_request": "false",
}


@pytest.mark.parametrize(
    "keys",
    [
        ("s3.endpoint", "s3.endpoint.region", "s3.access-key", "s3.secret-key", "s3.session.token",
         "s3.path.style.access"),
        ("fs.s3a.endpoint", "fs.s3a.endpoint.region", "fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token",
         "fs.s3a.path.style.access"),
        ("s3.endpoint", "s3.region", "s3.access.key", "s3.secret.key", "s3.session.token", "s3.path-style-access"),
    ],
)  # fmt: skip
def test_flinks_spellings(keys):
    values = ["http://127.0.0.1:9000", "eu-west-1", "me", SECRET, SECRET + "-token", "true"]
    configuration = Configuration.from_dict(dict(zip(keys, values, strict=True)))
    assert store_options(configuration) == {"s3": S3}


def test_what_has_no_key_of_its_own_has_obstores_name():
    configuration = Configuration.from_dict(
        {
            "rekindle.store.s3.skip_signature": "true",
            "rekindle.store.s3.region": "eu-central-1",
            "s3.endpoint.region": "overridden",
            "rekindle.store.gs.service_account": "/run/keys/account.json",
        }
    )
    assert store_options(configuration) == {
        "s3": {"region": "eu-central-1", "skip_signature": "true"},
        "gs": {"service_account": "/run/keys/account.json"},
    }


def test_each_kind_of_store_has_its_own():
    options = {"s3": {"region": "a"}, "gs": {"service_account": "b"}}
    assert options_for("s3://bucket/x", options) == options_for("S3A://bucket", options) == {"region": "a"}
    assert options_for("gs://bucket", options) == {"service_account": "b"}
    for elsewhere in ("/checkpoints", "file:///checkpoints", "hdfs://names/x", "s3", "memory://"):
        assert options_for(elsewhere, options) == {}
    assert store_options(Configuration()) == {}


def test_a_store_opens_with_them():
    store = open_configured("s3://bucket/checkpoints", {"s3": S3})
    assert isinstance(store, ObjectStore)
    assert store.url == "s3://bucket/checkpoints"


def test_a_configuration_does_not_show_secrets():
    shown = str(Configuration.from_dict({"s3.secret-key": SECRET, "s3.access-key": SECRET, "s3.endpoint": "http://x"}))
    assert SECRET not in shown
    assert "s3.secret-key=******" in shown
    assert "s3.endpoint=http://x" in shown
    for key in ("s3.session.token", "rekindle.store.s3.secret_access_key", "security.ssl.rest.key-password"):
        assert SECRET not in repr(Configuration.from_dict({key: SECRET})), key


def test_only_the_deployment_carries_them():
    """Barriers go through Spark's tasks; the deployment through the authenticated connection, and never into a log."""
    deploy = Deploy(b"program", store_options={"s3": S3})
    assert decode_from_driver(encode(deploy)).store_options == {"s3": S3}
    assert SECRET not in repr(deploy)
    assert SECRET not in repr(AttemptBasis(1, Storage(None, "", 0), store_options={"s3": S3}))
    fields = {field.name for each in (Storage, CheckpointOrder) for field in msgspec.structs.fields(each)}
    assert not {name for name in fields if "option" in name}
