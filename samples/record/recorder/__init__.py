"""A recording of a terminal: what is typed, and how it is drawn."""
