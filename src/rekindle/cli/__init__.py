"""The command line, `rekindle`: runs programs, finds and drives running jobs, looks after checkpoints and state.

A command imports what it needs when it runs, so that `rekindle list` answers at once.

- `command_line`: the commands, and the entry point; `exit_codes`, `closed_streams`: how commands end;
  `shared_options`: what many take
- `run_program`: runs a user's program as `__main__`; `program_traceback`: its failures; `detached_driver`: in a session
  of its own; `launchers`: what sees the program's jobs start; `settings_sources`: settings from options and files
- `driver_client`, `find_job`, `operation_outcome`: running jobs, over the REST API of their drivers
- `plan_drawing`, `watch_screen`, `cells_for_people`, `printed`: what is shown; `health_checks`: what `doctor` checks
- `..._command`: one per command; each has `register`
"""
