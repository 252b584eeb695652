"""Progress from files inside containers: one file a format, read in place as they grow."""
