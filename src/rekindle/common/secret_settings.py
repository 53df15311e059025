"""Secret settings: which keys they have, how they are shown, and values that an environment variable or a file holds.

A secret on a command line can be read by every user of the machine (`ps`), and one in a configuration file by whoever
reads that. So the value of a secret setting may say where the secret is: `env:NAME` or `file:PATH`. It is looked up
where the setting is read, on the driver; a configuration holds, shows and copies the reference only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from rekindle.config import OPTIONS
from rekindle.errors import ConfigurationError

#: A key that contains one of these words holds a secret: Flink's list, and the keys of object stores.
_SENSITIVE: Final = (
    *("password", "secret", "token", "access-key", "access.key", "access_key", "apikey", "api-key", "account.key"),
    *("service-key", "service_account", "private_key", "customer_key"),
    *("auth-params", "basic-auth", "jaas.config", "http-headers"),
)
#: The value of a key with such an end is the path of a file already, for whoever reads the setting.
_PATHS: Final = ("file", "path", "service_account")
_HIDDEN: Final = "******"
_ENVIRONMENT, _FILE = "env:", "file:"


def shown(key: str, value: str) -> str:
    """A value as it may be shown: that of a secret key is hidden.

    >>> shown("parallelism.default", "2"), shown("s3.secret-key", "abc")
    ('2', '******')
    """
    return _HIDDEN if _is_sensitive(key) else value


def takes_reference(key: str) -> bool:
    """Whether the value of a key may be `env:NAME` or `file:PATH`.

    >>> [takes_reference(key) for key in ("s3.secret-key", "acme.db.password", "execution.checkpointing.dir")]
    [True, True, False]
    """
    if key in OPTIONS:
        return OPTIONS[key].secret
    return _is_sensitive(key) and not key.lower().endswith(_PATHS)


def is_reference(key: str, value: Any) -> bool:
    """Whether a value says only where the secret is.

    >>> is_reference("s3.secret-key", "env:KEY"), is_reference("s3.endpoint", "env:KEY")
    (True, False)
    """
    return isinstance(value, str) and value.startswith((_ENVIRONMENT, _FILE)) and takes_reference(key)


def resolved(key: str, value: Any) -> Any:
    """The value of a setting; a reference is looked up now.

    ConfigurationError names the key and the variable or file where there is no secret.

    >>> resolved("s3.access-key", "env:NO_SUCH_VARIABLE")
    Traceback (most recent call last):
    rekindle.errors.ConfigurationError: The value of 's3.access-key' cannot be used: there is no environment variable \
NO_SUCH_VARIABLE; set it where the driver starts.
    """
    if not is_reference(key, value):
        return value
    try:
        if value.startswith(_ENVIRONMENT):
            return _of_environment(value.removeprefix(_ENVIRONMENT))
        return _of_file(value.removeprefix(_FILE))
    except ValueError as error:
        raise ConfigurationError(f"The value of {key!r} cannot be used: {error}.") from None


def _is_sensitive(key: str) -> bool:
    return any(word in key.lower() for word in _SENSITIVE)


def _of_environment(name: str) -> str:
    secret = os.environ.get(name)
    if secret is None:
        raise ValueError(f"there is no environment variable {name}; set it where the driver starts")
    if not secret:
        raise ValueError(f"the environment variable {name} is empty")
    return secret


def _of_file(named: str) -> str:
    path = Path(named.removeprefix("//")).expanduser()  # `file:///run/secrets/key` is a path, too
    try:
        secret = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"the file {path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ValueError(f"the file {path} is no text in UTF-8") from None
    secret = secret.removesuffix("\n").removesuffix("\r")
    if not secret:
        raise ValueError(f"the file {path} is empty")
    return secret
