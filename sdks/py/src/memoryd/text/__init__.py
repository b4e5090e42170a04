"""Texts: terms, tokens, stems."""
