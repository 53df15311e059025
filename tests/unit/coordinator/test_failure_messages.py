"""The errors of failed jobs, as users read them."""

from __future__ import annotations

from rekindle.coordinator.failure_messages import close_failed, headline, output_closed, task_failed
from rekindle.protocol import TaskFailed


def test_a_closed_output_is_named():
    text = str(output_closed("count", "stdout", BrokenPipeError(32, "Broken pipe")))
    assert text == "Job 'count' cannot write to the program's stdout any more: [Errno 32] Broken pipe."


def test_a_failed_close_starts_with_the_users_traceback():
    text = str(close_failed("count", ["Traceback of the first", "Traceback of the second"]))
    assert text.startswith("Traceback of the first\n")
    assert "'count'" in text
    assert "1 more" in text


def test_a_failure_in_a_sentence_leads_with_the_error_and_its_record():
    failed = TaskFailed("sums (1/2)", "sums", 0, "Traceback …\nValueError: three", "ValueError: three", "7")
    assert headline(task_failed("count", failed)) == "ValueError: three (in operator 'sums', subtask 1, at record 7)."
    lost = output_closed("count", "stdout", BrokenPipeError(32, "Broken pipe"))
    assert headline(lost) == str(lost)
    assert headline(close_failed("count", ["Traceback …\nValueError: x"])).startswith("Job 'count' failed at its end")


def test_a_failed_task_says_how_to_replay_it_or_why_that_is_not_possible():
    failed = TaskFailed("sums (1/2)", "sums", 0, "Traceback", "ValueError", "7")
    assert "eplay" not in str(task_failed("count", failed))
    recorded = TaskFailed("sums (1/2)", "sums", 0, "Traceback", "ValueError", "7", recording="file:///c/7.recording")
    assert "in a debugger: rekindle replay /c/7.recording --" in str(task_failed("count", recorded))
    lost = TaskFailed("sums (1/2)", "sums", 0, "Traceback", "ValueError", "7", not_recorded="there was too much")
    assert str(task_failed("count", lost)).endswith("Its input was not kept for a replay: there was too much.")
