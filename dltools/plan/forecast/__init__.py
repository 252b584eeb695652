"""When a host's jobs will end: by an arrangement, under Docker alone, and what that promises.

`completion` forecasts the ends, `contention_law` says what competing costs, and `docker_alone`
imagines the same jobs under Docker alone.
"""
