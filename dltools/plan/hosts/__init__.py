"""What is remembered of a host (`host_history`), and its rounds: a policy is asked, and its shares
become settings (`rounds`); paces are followed (`pace_tracking`), GPUs shared (`gpu_shares`)."""
