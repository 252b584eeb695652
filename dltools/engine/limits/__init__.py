"""CPU limits of containers: in force, on record, and in the kernel's files."""
