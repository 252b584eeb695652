"""The table of observations: its columns and metrics, its formats, recordings of it."""
