"""A reader: a language model that answers a question from passages of earlier conversations."""
