"""The secret with which Spark's own processes authenticate: a new one on this machine, the cluster's from a file.

The JVM gets it over its gateway, executors in their environment; it is never on a command line, which every user of a
machine can read.
"""

from __future__ import annotations

import os
import secrets

from rekindle import config
from rekindle.common.configuration import Configuration
from rekindle.errors import ConfigurationError

_SECRET_BYTES = 32


def authentication(starts_everything: bool, configuration: Configuration) -> dict[str, str]:
    """Spark's settings for authentication; empty for a cluster whose secret is not configured.

    `starts_everything`: this session starts all of Spark's processes, so that no other process needs the secret.
    """
    path = configuration.get(config.SPARK_SECRET_FILE)
    if path is not None:
        secret = read_secret(path)
    elif starts_everything:
        secret = secrets.token_hex(_SECRET_BYTES)
    else:
        return {}
    return {"spark.authenticate": "true", "spark.authenticate.secret": secret}


def read_secret(path: str) -> str:
    """The secret in a file that only its owner can read."""
    named = f"{config.SPARK_SECRET_FILE.key} names {path}, which"
    try:
        with open(path, encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ConfigurationError(f"{named} can be read by others: chmod 600 it.")
            secret = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{named} cannot be read: {error}.") from None
    if not secret:
        raise ConfigurationError(f"{named} is empty: write the cluster's spark.authenticate.secret into it.")
    return secret
