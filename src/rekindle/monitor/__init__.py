"""A read model of a job, for people: recorded while it runs, bounded, and kept beside its checkpoints.

- `job_view`: one moment of a job as plain data; `view_codec`: the same as JSON
- `plan_views`: the parts of a view that never change, from the plan
- `job_recorder`: hears of the job's life and gives views; `task_states`, `task_figures`, `slot_book`, `failure_book`:
  its parts
- `job_history`: writes views beside the checkpoints, and reads them when the job is over or dead
- `monitored_job`: what those get who show a job, and how the launcher finds them
"""

from __future__ import annotations

from rekindle.monitor.job_history import read_histories
from rekindle.monitor.job_view import JobView

__all__ = ["JobView", "read_histories"]
