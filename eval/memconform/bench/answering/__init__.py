"""Answers to a benchmark's questions by one reader, from what each system retrieved and without."""
