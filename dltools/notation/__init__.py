"""How values are written as text: CPU lists, durations, times, bytes, numbers in JSON."""
