"""The search for kernel, width, ridge and column weights."""
