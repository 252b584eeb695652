"""What is remembered of a host (`host_history`), and its rounds: a policy is asked, and its shares
become settings (`rounds`). Paces are followed (`pace_tracking`), and what hosts share besides their
CPUs is shared."""
