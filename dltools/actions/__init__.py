"""What goes from dl-plan to dl-apply: plans with their actions (`plans`), the settings in them
(`settings`), and both as lines of a stream (`plan_lines`)."""
