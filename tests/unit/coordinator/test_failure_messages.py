"""The errors of failed jobs, as users read them."""

from __future__ import annotations

from rekindle.coordinator.failure_messages import close_failed, output_closed


def test_a_closed_output_is_named():
    text = str(output_closed("count", "stdout", BrokenPipeError(32, "Broken pipe")))
    assert text == "Job 'count' cannot write to the program's stdout any more: [Errno 32] Broken pipe."


def test_a_failed_close_starts_with_the_users_traceback():
    text = str(close_failed("count", ["Traceback of the first", "Traceback of the second"]))
    assert text.startswith("Traceback of the first\n")
    assert "'count'" in text
    assert "1 more" in text
