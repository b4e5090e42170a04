"""Results as people and programs read them: tables, console, JUnit, Markdown, JSON."""
