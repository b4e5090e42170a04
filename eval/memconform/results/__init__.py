"""Scored results of every verb in the form of a run's, so that each reader needs to know one."""
