"""A model's attribute whose value stands in its `settings`."""

from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class Kept(property, Generic[T]):
    """A property, so that models take it by name when they are made."""

    def __init__(self, name: str, default: Any) -> None:
        def read(row: Any) -> Any:
            return row.settings.get(name, default)

        def write(row: Any, value: Any) -> None:
            row.settings = {**row.settings, name: value}

        super().__init__(read, write)

    @overload  # type: ignore[override]  # a plain property may hold anything
    def __get__(self, row: None, owner: type) -> "Kept[T]": ...
    @overload
    def __get__(self, row: object, owner: type) -> T: ...
    def __get__(self, row: Any, owner: type | None = None) -> Any:
        return super().__get__(row, owner)

    def __set__(self, row: Any, value: T) -> None:
        super().__set__(row, value)
