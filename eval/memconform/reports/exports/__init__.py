"""Results in the formats of other programs: JUnit, CTRF, CSV, annotations, a badge."""
