"""Applies the actions of plans to containers, gives turns, and restores what was changed.

The tool's folder in `dltools/cli/` makes an `Actuator` and hands it plans:

- `actuator` has all engines, `engine_actuator` one; `refusals` say why an action is not done.
- `settings_update` changes settings; `turns` pauses and unpauses, in the order of `turn_schedule`;
  `migrate/` moves jobs; `delivering` copies models.
- `original_settings` keeps the journal; `changed_containers` reads it for people.
- `undo` mends what a run has left. Its docstring says what is on disk when, and who mends
  what. `locks` keep runs apart, `leases` end what a dead run has set.
"""
