"""The contract, case by case: cases as data, matchers, what runs them, known-failing lists."""
