"""Compiled inner loops of private retrieval; `discreet.protocols.retrieval.plain` is their twin."""
