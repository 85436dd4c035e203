"""Permutation: values change hands inside groups, and queries are answered with sure bounds.

A release keeps every quasi-identifier as it is, and inside each group of records hands the
sensitive values out at random. A group has k distinct values that span at least e, so nobody can
be tied to fewer values or to a narrower range. What a group can contribute to an aggregate is
known from how many of its records a query selects: that gives bounds which always hold the truth.
"""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Permuted": "discreet.microdata.permutation.release",
        "permute": "discreet.microdata.permutation.permute",
    },
)
