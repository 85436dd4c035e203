"""The policy file: what a curator decided, in one YAML document."""

from discreet.registry import lazy

__getattr__, __all__ = lazy(
    __name__,
    {
        "Policy": "discreet.app.policy.model",
        "load_policy": "discreet.app.policy.load",
        "policy_schema": "discreet.app.policy.json_schema",
        "run_policy": "discreet.app.policy.run",
    },
)
