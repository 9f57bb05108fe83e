"""Definitions of tables."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

ColumnParts = Tuple[str, str, bool, Any]
IndexParts = Tuple[str, List[str], bool]


@dataclass(frozen=True)
class Column:
    """A column. Types: bool, i8 to i64, u8 to u64, f32, f64, timestamp, string(MAX), bytes(MAX),
    fixed string(LEN), fixed bytes(LEN) and decimal(PRECISION,SCALE)."""

    name: str
    type: str
    nullable: bool = False
    default: Any = None

    def _parts(self) -> ColumnParts:
        return self.name, self.type, self.nullable, self.default


@dataclass(frozen=True)
class Index:
    """A secondary index over columns, the most significant first."""

    name: str
    columns: List[str]
    unique: bool = False

    def _parts(self) -> IndexParts:
        return self.name, self.columns, self.unique


@dataclass(frozen=True)
class Table:
    """The definition of a table. `Database.open_or_create` returns a handle for it."""

    name: str
    columns: List[Column]
    primary_key: List[str]
    indexes: List[Index] = field(default_factory=list)

    def _parts(self) -> Tuple[str, List[ColumnParts], List[str], List[IndexParts]]:
        columns = [column._parts() for column in self.columns]
        return self.name, columns, self.primary_key, [index._parts() for index in self.indexes]


def _renamed(names: Dict[str, str]) -> List[Tuple[str, str]]:
    """The renamings one after the other, each to a name that is free by then. Where they go round in a circle, one of
    them goes by way of a name that nothing has."""
    left, steps = dict(names), []
    while left:
        free = [name for name, to in left.items() if to == name or to not in left]
        if free:
            steps += [(name, left.pop(name)) for name in free]
        else:
            name, to = left.popitem()
            between = f"\0{len(steps)}"
            steps.append((name, between))
            left[between] = to
    return steps


def changes(
    add: Optional[List[Column]],
    drop: Optional[List[str]],
    rename: Optional[Dict[str, str]],
    widen: Optional[Dict[str, str]],
    nullable: Optional[List[str]],
    default: Optional[Dict[str, Any]],
    rename_table: Optional[str],
    rename_index: Optional[Dict[str, str]],
) -> Tuple[List[ColumnParts], List[Tuple[str, str, Any]]]:
    """A change of a table: columns to add, and the other steps."""
    steps: List[Tuple[str, str, Any]] = [("drop", name, None) for name in drop or []]
    steps += [("rename", name, to) for name, to in _renamed(rename or {})]
    for what, changed in (("widen", widen), ("default", default)):
        steps += [(what, name, to) for name, to in (changed or {}).items()]
    steps += [("rename_index", name, to) for name, to in _renamed(rename_index or {})]
    steps += [("nullable", name, None) for name in nullable or []]
    if rename_table is not None:
        steps.append(("rename_table", "", rename_table))
    return [column._parts() for column in add or []], steps
