"""Options of stores, by kind of store: Flink's keys under obstore's names, and the permissions of a directory.

They hold secrets: they go to the slots over the authenticated control connection only, and are never logged or written
to a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rekindle import config
from rekindle.checkpoint.store.local import OWNER_ONLY, PERMISSIONS
from rekindle.checkpoint.store.open_store import open_store, place_of
from rekindle.checkpoint.store.port import Store
from rekindle.common.configuration import Configuration

#: "s3" or "gs" -> obstore's options of such stores; "file" -> the options of directories.
StoreOptions = Mapping[str, Mapping[str, str]]

_KINDS: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "file": "file"}
_S3_NAMES: Final = {
    "endpoint": config.S3_ENDPOINT,
    "region": config.S3_REGION,
    "access_key_id": config.S3_ACCESS_KEY,
    "secret_access_key": config.S3_SECRET_KEY,
    "session_token": config.S3_SESSION_TOKEN,
}


def store_options(configuration: Configuration) -> dict[str, dict[str, str]]:
    """The store options of a configuration; kinds of stores with default options are left out.

    >>> store_options(Configuration.from_dict({"s3.endpoint": "http://127.0.0.1:9000", "s3.path.style.access": "true"}))
    {'s3': {'endpoint': 'http://127.0.0.1:9000', 'virtual_hosted_style_request': 'false'}}
    """
    s3: dict[str, str] = {}
    for name, option in _S3_NAMES.items():
        value = configuration.get(option)
        if value is not None:
            s3[name] = value
    path_style = configuration.get(config.S3_PATH_STYLE)
    if path_style is not None:
        s3["virtual_hosted_style_request"] = "false" if path_style else "true"
    permissions = configuration.get(config.CHECKPOINT_FILE_PERMISSIONS)
    found = {
        "file": {PERMISSIONS: f"{permissions:o}"} if permissions != OWNER_ONLY else {},
        "s3": s3 | configuration.with_prefix(config.S3_STORE_PREFIX),
        "gs": configuration.with_prefix(config.GS_STORE_PREFIX),
    }
    return {kind: options for kind, options in found.items() if options}


def options_for(url: str, options: StoreOptions) -> Mapping[str, str]:
    """The options of the store at a URL.

    >>> dict(options_for("s3a://bucket/checkpoints", {"s3": {"region": "eu-west-1"}, "gs": {}}))
    {'region': 'eu-west-1'}
    """
    return options.get(_KINDS.get(place_of(url).scheme, ""), {})


def open_configured(url: str, options: StoreOptions) -> Store:
    """Open the store at a URL with its options."""
    return open_store(url, options_for(url, options))
