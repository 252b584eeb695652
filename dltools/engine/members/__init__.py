"""Which member of the engine interface is behind an address."""
