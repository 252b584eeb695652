"""Samples become histories: `recorded_host` reads them, `job_members` makes one job of several
containers, `state` keeps what the next plan needs."""
