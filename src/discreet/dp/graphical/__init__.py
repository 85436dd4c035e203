"""Graphical models of noisy marginals (Private-PGM): estimated, asked and drawn from.

Nothing here sees a record: what is known are sizes of public domains and noisy counts.
"""
