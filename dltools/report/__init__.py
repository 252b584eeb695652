"""What happened, for people: runs of jobs as tables and plots. Knows no Docker and no clock."""
