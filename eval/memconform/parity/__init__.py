"""Two or more runs of the same questions: do they agree?"""
