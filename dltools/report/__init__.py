"""Shows runs of jobs to people, as tables and plots. It uses no Docker and no clock."""
