"""Memory systems behind adapters of a few lines, in a process and an interpreter of their own."""
