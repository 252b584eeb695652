"""Recordings: directories of Parquet files, to which recorders add."""
