"""Language models as judges of answers: prompt, votes, panel, calibration."""
