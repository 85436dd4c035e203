"""Counts over a tree of places: measured once, made consistent, whole and non-negative."""
