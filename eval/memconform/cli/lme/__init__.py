"""The verb `lme`."""
