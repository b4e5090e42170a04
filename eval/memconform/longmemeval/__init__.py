"""What LongMemEval's authors did beside their benchmark: key expansion, temporal pruning, and
histories of any length."""
