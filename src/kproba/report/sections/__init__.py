"""The sections of a report, one per file: facts become HTML."""
