"""From observations to plans. Nothing here knows a clock, a file or an engine.

`planner` reads samples into the history of each host. `rounds` asks a policy (`policy/`, which goes
by `signals/`) and turns its shares into settings (`realisation/`). `decisions` compares these with
what is in force; `records` writes and reads the plans.
"""
