"""Searches for the least lossy way to keep a promise, on the frequency set alone."""
