"""From observations to plans. Nothing here knows a clock, a file or an engine.

`planner` reads samples (`samples/`) into the history of each host (`hosts/`). Its rounds ask a
policy (`policy/`, which goes by `signals/`), forecast the ends of jobs (`forecast/`), and turn
shares into settings (`realisation/`). `outcome/` says what a plan changes, and why; `records`
writes and reads plans. Imports go one way.
"""
