"""Declarations: parameters with types, ranges and help, checked when the object is made."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from discreet.errors import InputError
from discreet.registry.annotations import describe_type, fits, fits_inside, options

__all__ = [
    "Declaration",
    "Member",
    "Parameter",
    "Record",
    "is_address",
    "parameter",
]


_MISSING = dataclasses.MISSING


def parameter(
    default: Any = _MISSING,
    *,
    help: str = "",
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[Any] | Callable[[], Iterable[Any]] | None = None,
    option: str | None = None,
    file: Literal["read", "write", "secret", "engine", "ledger", "head", "host"] | None = None,
    spread: bool | None = None,
    kw_only: bool = False,
) -> Any:
    """Declare a parameter of a member: default, meaning and allowed range beside the field.

    `low` and `high` are included in the range, `above` and `below` are not. `choices` may be
    a function that finds them, such as `names_of("mechanism")`. `option` is how the
    command line spells it where that is not its name: "--rule", "--method/-m", or "RELEASED" for an
    argument. A `file` is a path that starts from the policy's folder, or the address of a database, and
    says what is done with it: a policy may use no other file. With `spread` a text on the command line may
    list values with |, and stands for one member each. What a base class declares `kw_only` comes
    after what its subclasses declare. Any: what it returns stands where a value of
    the field's own type stands, as with `dataclasses.field`.
    """
    rules = {"low": low, "high": high, "above": above, "below": below, "choices": choices}
    rules |= {"option": option, "file": file, "spread": spread}
    metadata = {"help": help, **{key: rule for key, rule in rules.items() if rule is not None}}
    if isinstance(default, list | dict | set):
        return dataclasses.field(
            default_factory=lambda: default, metadata=metadata, kw_only=kw_only
        )
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a member, for forms, manual pages and the policy's JSON Schema."""

    name: str
    type: Any
    required: bool
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    #: The values to choose from, or what finds them when they are asked for.
    listed: tuple[Any, ...] | Callable[[], Iterable[Any]] | None = None
    #: How the command line spells it; made from the name where it is empty.
    option: str = ""
    #: What is done with the file it names, if it names one.
    file: Literal["", "read", "write", "secret", "engine", "ledger", "head", "host"] = ""
    #: Whether the command line may list alternatives with |.
    spread: bool = False

    @property
    def choices(self) -> tuple[Any, ...] | None:
        """The values to choose from; None where they are not listed. Any: of the parameter's type."""
        return tuple(self.listed()) if callable(self.listed) else self.listed

    @property
    def range(self) -> str:
        """The allowed values in words; empty where anything of the type goes."""
        if self.choices is not None:
            return "one of " + ", ".join(str(choice) for choice in self.choices)
        bounds = (
            ("at least", self.low),
            ("above", self.above),
            ("at most", self.high),
            ("below", self.below),
        )
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)

    def allows(self, value: Any) -> bool:
        """Whether a value lies in the declared range."""
        if value is None:
            return True
        if (choices := self.choices) is not None:
            several = isinstance(value, tuple) and get_origin(self.type) is tuple
            return all(one in choices for one in (value if several else [value]))
        if not isinstance(value, int | float):
            return True
        return (
            value == value
            and (self.low is None or value >= self.low)
            and (self.above is None or value > self.above)
            and (self.high is None or value <= self.high)
            and (self.below is None or value < self.below)
        )

    def example(self, offered: Mapping[str, Any]) -> Any:
        """Return a typical value: what is offered under the name, or the least of the range."""
        if self.name in offered:
            return offered[self.name]
        if self.choices:
            return self.choices[0]
        if int in options(self.type) or float in options(self.type):
            least = 1 if self.low is None and self.above is None else self.low
            return least if least is not None else (self.above or 0) + 1
        raise InputError(
            f"nothing is offered for the parameter {self.name!r}",
            code="no-example",
            hint="override `examples` of the member, which says what it is tried with",
            parameter=self.name,
        )

    def require(self, value: Any, *, owner: str, inside: bool = False) -> None:
        """Raise an InputError if a value is not of the declared type or range.

        `inside` also looks at the values of a mapping: what a policy says may be anything, while
        Python's callers also give what the declaration converts.
        """
        wanted, code = "", ""
        if not fits(value, self.type) or (inside and not fits_inside(value, self.type)):
            wanted, code = describe_type(self.type), "parameter-type"
        elif not self.allows(value):
            wanted, code = (
                self.range,
                "unknown-member" if callable(self.listed) else "parameter-range",
            )
        if code:
            message = f"{owner}: {self.name} must be {wanted}, found {value!r}"
            raise InputError(message, code=code, parameter=self.name)


@dataclasses.dataclass(frozen=True)
class Declaration:
    """Parameters with types, ranges and help, checked when the object is made."""

    def __post_init__(self) -> None:
        for item in self.parameters():
            value = getattr(self, item.name)
            if isinstance(value, list) and fits(tuple(value), item.type):
                # Callers pass lists; a frozen object keeps a tuple, which nobody can change.
                value = tuple(value)
                object.__setattr__(self, item.name, value)
            item.require(value, owner=self.declared_name())

    @classmethod
    def declared_name(cls) -> str:
        """Return what messages call it."""
        return cls.__name__

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the parameters in the order of the fields."""
        return _parameters(cls)  # type: ignore[arg-type]  # classes hash, whatever mypy thinks

    @classmethod
    def summary(cls) -> str:
        """Return the first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def located(self, folder: str | Path) -> Self:
        """Return it with relative paths starting from a folder, also those of its parts."""
        return self.with_files(lambda file, _: _in_folder(file, Path(folder)))

    def with_files(self, change: Callable[[str, str], str]) -> Self:
        """Return it with the files that it and its parts name replaced: `change(file, use)`."""
        changes = {
            item.name: _changed(value, item, change)
            for item in self.parameters()
            if (value := getattr(self, item.name)) is not None
        }
        kept = {name: value for name, value in changes.items() if value != getattr(self, name)}
        return dataclasses.replace(self, **kept) if kept else self

    def further_files(self, name: str) -> Iterable[Path]:
        """Return what it writes or reads under names that it makes itself, listed under `name`.

        A policy may use none of these either that lies outside its folder.
        """
        return ()

    def files(self, use: str = "read") -> list[str]:
        """Return the files that it and its parts name for a use."""
        found: list[str] = []
        for item in self.parameters():
            for value in _parts(getattr(self, item.name)):
                if isinstance(value, Declaration):
                    found += value.files(use)
                elif item.file == use and isinstance(value, str):
                    found.append(value)
        return list(dict.fromkeys(found))


@dataclasses.dataclass(frozen=True)
class Record(Declaration):
    """Settings that are written by their names alone: no family, nothing to choose from.

    `spelled` is the parameter that a bare text stands for.

    Examples
    --------
    >>> from discreet.registry import build
    >>> @dataclasses.dataclass(frozen=True)
    ... class Shelf(Record):
    ...     spelled: ClassVar[str] = "place"
    ...     place: str = parameter(help="where it stands")
    ...     boards: int = parameter(3, help="how many", low=1)
    >>> build(Shelf, {"place": "cellar", "boards": 5}), build(Shelf, "attic").boards
    (Shelf(place='cellar', boards=5), 3)
    """

    spelled: ClassVar[str] = ""


@dataclasses.dataclass(frozen=True)
class Member(Declaration):
    """Base of the base class of every family: a declaration that has a name.

    Examples
    --------
    >>> @dataclasses.dataclass(frozen=True)
    ... class MinimumSize(Member):
    ...     '''A group is safe when it is large enough.'''
    ...
    ...     name: ClassVar[str] = "minimum-size"
    ...     n: int = parameter(3, help="smallest safe size", low=1)
    >>> MinimumSize(5).n
    5
    >>> MinimumSize(0)
    Traceback (most recent call last):
    discreet.errors.InputError: minimum-size: n must be at least 1, found 0 [parameter-range]
    """

    name: ClassVar[str] = ""
    reference: ClassVar[str] = ""

    @classmethod
    def declared_name(cls) -> str:
        """Return the name."""
        return cls.name

    @classmethod
    def examples(cls, **offered: Any) -> tuple[Self, ...]:
        """Return members with typical parameters, on which the laws of the family are tried.

        Parameters take what is `offered` under their name (a column, a domain, a release), or else
        their default, or else a value of their range; every other choice and flag gets one more
        member, unless it is refused. Overridden where parameters depend on each other. Any: what is
        offered differs from family to family.

        Examples
        --------
        >>> @dataclasses.dataclass(frozen=True)
        ... class Cut(Member):
        ...     name: ClassVar[str] = "cut"
        ...     column: str = parameter(help="what is cut")
        ...     end: Literal["top", "bottom"] = "top"
        >>> [(cut.column, cut.end) for cut in Cut.examples(column="pay")]
        [('pay', 'top'), ('pay', 'bottom')]
        """
        needed = {
            item.name: item.example(offered)
            for item in cls.parameters()
            if item.required or item.name in offered
        }
        found = [cls(**needed)]
        for item in cls.parameters():
            others = item.choices or ((True, False) if item.type is bool else ())
            for value in others:
                if value == getattr(found[0], item.name):
                    continue
                with contextlib.suppress(InputError):  # parameters that do not go together
                    found.append(cls(**{**needed, item.name: value}))
        return tuple(found)

    def _repr_html_(self) -> str:
        from discreet.report import html_table

        listed = [(item.name, getattr(self, item.name)) for item in self.parameters()]
        return html_table(
            f"{self.declared_name()}: {self.summary()}", ("parameter", "value"), listed
        )

    def settings(self) -> dict[str, Any]:
        """Return name and parameters as plain data: what evidence and the ledger record."""
        from discreet.report import plain

        fields = {
            # Evidence is published, so it holds the name of a file and not its path.
            item.name: _file_name(value) if item.file and isinstance(value, str) else value
            for item in self.parameters()
            for value in [getattr(self, item.name)]
        }
        return {
            "name": self.name,
            **{
                key: value.settings() if isinstance(value, Member) else plain(_shortest(value))
                for key, value in fields.items()
            },
        }


def _shortest(value: Any) -> Any:
    """Return 5.0 as 5: a text, a policy and a call say the same number. Any: of any type."""
    if isinstance(value, tuple):
        return tuple(_shortest(one) for one in value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parts(value: Any) -> Iterator[Any]:
    """Give the single values of a parameter that may hold several. Any: of any type."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item)
    else:
        yield value


#: How addresses of databases begin; every other text is a path.
_ADDRESS = re.compile(r"(duckdb|postgres|postgresql|spark|sc)://", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Whether a text is the address of a database, and not a path.

    >>> is_address("postgresql://host/stats#people"), is_address("http://host/people.csv")
    (True, False)
    """
    return bool(_ADDRESS.match(text))


def _file_name(file: str) -> str:
    return file.partition("://")[0] + "://…" if is_address(file) else Path(file).name


def _in_folder(file: str, folder: Path) -> str:
    return file if is_address(file) or file == ":memory:" else str(folder / file)


def _changed(value: Any, item: Parameter, change: Callable[[str, str], str]) -> Any:
    # Any: a parameter's value of any type.
    if isinstance(value, Declaration):
        return value.with_files(change)
    if isinstance(value, Mapping):
        return {key: _changed(one, item, change) for key, one in value.items()}
    if isinstance(value, tuple):
        return tuple(_changed(one, item, change) for one in value)
    return change(value, item.file) if item.file and isinstance(value, str) else value


@functools.cache
def _parameters(cls: type[Declaration]) -> tuple[Parameter, ...]:
    hints = typing.get_type_hints(cls)
    found = []
    # Keyword-only parameters, which base classes declare, come after those of the member itself.
    for field in sorted(dataclasses.fields(cls), key=lambda field: bool(field.kw_only)):
        if not field.init:
            continue
        required = field.default is _MISSING and field.default_factory is _MISSING
        default = None
        if field.default is not _MISSING:
            default = field.default
        elif field.default_factory is not _MISSING:
            default = field.default_factory()
        rules = dict(field.metadata)
        if (listed := rules.pop("choices", None)) is not None:
            rules["listed"] = listed if callable(listed) else tuple(listed)
        elif get_origin(hints[field.name]) is Literal:
            rules["listed"] = get_args(hints[field.name])
        meaning = rules.pop("help", "")
        found.append(Parameter(field.name, hints[field.name], required, default, meaning, **rules))
    return tuple(found)
