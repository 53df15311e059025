"""One script per peer. Each runs in an environment of its own and prints one JSON line (see ``workload.report``)."""
