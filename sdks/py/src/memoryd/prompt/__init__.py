"""Prompts for language models, and parsing of their replies."""
