"""Moving jobs from host to host, step by step: what is done is on record before it is done."""
