"""Keeps the input of a task since its last completed checkpoint, so that a failure can be replayed (decision 0027).

Nothing of it runs unless `rekindle.replay.record-input` is on: the slot then builds `RecordedTask`s.
"""
