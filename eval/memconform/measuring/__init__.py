"""Asks daemons, and holds their answers to what was asked."""
