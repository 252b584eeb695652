"""What policies see of a job: a training or a server, of one container or of several.

Policies change nothing of it. Of `ContainerHistory` they may use:

- `id` and `name`: those of its container; by the id a policy names the job in its decision;
- `run_id`: differs for each run of a container, so that a policy remembers a job by it;
- `arrived`: when this run was first seen (microseconds since the epoch);
- `labels`: those of its container, and those that the user gave it;
- `managed`: whether a plan has ever given it a share or a setting, also in an earlier run;
- `user`: the user whose job it is, "" if unknown;
- `priority`: what it counts among the jobs of its user, 1 by default;
- `use`: what it has used. Public are `threads`, `uses_gpu`, `gpus`, `effort`, `effort_unit`,
  `effort_at` and `attained`;
- `progress`: what it has reported. Public are `metrics`, `targets`, `epoch`, `step`, `met_first`
  and `met_final`. `metrics` has a series for each metric, of which `times` (microseconds), `values`
  and `steps` are public;
- `in_force`: the limits in force, and what its engine cannot do with it;
- `owner`: the limits that its owner asked for;
- `standing`: what it is to dltools; `role` is public;
- `may_be_paused`: whether it can be paused, and is certainly a training;
- `runtime`: what starts threads in it;
- `membership`: which containers make it together.

It stands alone because plug-ins import it.
"""

from dltools.plan.signals.container_history import ContainerHistory

Job = ContainerHistory
