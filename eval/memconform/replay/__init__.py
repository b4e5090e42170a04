"""The replay of LongMemEval: one shared brain, every SDK, one reader and one judge."""
