"""What the comparisons with Flink's own tools share: Flink from the package index, a job that runs, a count."""
