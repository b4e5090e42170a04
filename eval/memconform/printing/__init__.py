"""The one way to a terminal or a CI log: foreign text is redacted and made safe on the way."""
