"""Methods that are only needed to reproduce the papers."""
