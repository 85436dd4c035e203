"""Embedded data: a population, a business register, and the small tables of the literature.

Everything is generated from a seed, nobody in it exists, and the same call gives the same rows on
every machine.
"""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "businesses": "discreet.demo.datasets",
        "businesses_arrow": "discreet.demo.register",
        "castro_frequencies": "discreet.demo.examples",
        "castro_magnitudes": "discreet.demo.examples",
        "feasibility_example": "discreet.demo.examples",
        "hierarchies": "discreet.demo.codes",
        "population": "discreet.demo.datasets",
        "population_arrow": "discreet.demo.people",
        "salaries": "discreet.demo.datasets",
        "salaries_arrow": "discreet.demo.examples",
    },
)
