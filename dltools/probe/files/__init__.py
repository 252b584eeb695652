"""Progress from files inside containers, read in place as they grow."""
