"""Configuration files in Flink's form: nested, flat, with lists; every value stays the text that it is."""

from __future__ import annotations

import pytest

from rekindle.cli.settings_sources import configuration_of, read_file
from rekindle.errors import ConfigurationError


def written(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return str(path)


def test_nested_and_flat_keys_mean_the_same(tmp_path):
    nested = (
        "execution:\n  checkpointing:\n    interval: 10 s\n    dir: s3://bucket/a  # where\nparallelism.default: 4\n"
    )
    flat = (
        "execution.checkpointing.interval: 10 s\nexecution.checkpointing.dir: s3://bucket/a\nparallelism.default: 4\n"
    )
    settings = read_file(written(tmp_path, nested))
    assert settings == read_file(written(tmp_path, flat))
    assert settings == {
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": "s3://bucket/a",
        "parallelism.default": "4",
    }


def test_values_are_not_what_yaml_takes_them_for(tmp_path):
    text = "rekindle.progress: off\npipeline.name: 1:30\npipeline.object-reuse: TRUE\npython.files: [a.py, b.py]\n"
    configuration = configuration_of(written(tmp_path, text), None)
    assert configuration.to_dict() == {
        "rekindle.progress": "off",
        "pipeline.name": "1:30",
        "pipeline.object-reuse": "TRUE",
        "python.files": "a.py;b.py",
    }
    assert configuration.get_boolean("pipeline.object-reuse", False)


def test_an_empty_file_and_empty_values_set_nothing(tmp_path):
    assert read_file(written(tmp_path, "# nothing\n")) == {}
    assert read_file(written(tmp_path, "pipeline.name:\nparallelism.default: 2\n")) == {"parallelism.default": "2"}


@pytest.mark.parametrize("text", ["a: [", "- a\n- b\n", "just text"])
def test_what_is_no_configuration_is_refused_by_the_files_name(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError, match=path):
        read_file(path)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ConfigurationError, match=r"no/such.yaml' cannot be read: No such file"):
        read_file("no/such.yaml")
