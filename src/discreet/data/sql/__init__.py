"""SQL text in, typed statistical question out: only what is understood is rebuilt and goes on."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Catalog": "discreet.data.sql.query",
        "Field": "discreet.data.sql.query",
        "Join": "discreet.data.sql.query",
        "Key": "discreet.data.sql.query",
        "Measure": "discreet.data.sql.query",
        "Query": "discreet.data.sql.query",
        "Statement": "discreet.data.sql.outer",
        "composed": "discreet.data.sql.outer",
        "finish": "discreet.data.sql.finishing",
        "parse": "discreet.data.sql.statement",
        "read_statement": "discreet.data.sql.statement",
        "raw_query": "discreet.data.sql.query",
    },
)
