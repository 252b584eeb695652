"""From observations to a plan: rounds, allocations, settings. Nothing here knows a clock."""
