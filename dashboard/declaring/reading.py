"""A document read strictly: every line is known, and nothing in it is guessed at."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from django.utils.translation import gettext_noop as _

from dashboard.declaring.problems import DocumentRefused, Problem
from dashboard.sentences import Sentence
from dashboard.texts import can_be_kept

FORM = 1
PARTS = ("panel", "nodes", "templates", "deployments", "teams")
MOST_BYTES = 1 << 20
MOST_DEEP = 12

Path = tuple[str, ...]
MAPPING = yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG
SEQUENCE = yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG

MOST_BITS = 64
ODD_SCALARS = (ValueError, KeyError, IndexError, AttributeError, OverflowError)

UNREADABLE = _("%(value)s cannot be read as a value.")
BEGINNING = _("The document must begin with “tandem: 1”.")


@dataclass(frozen=True)
class Document:
    text: str
    content: dict[str, Any]
    lines: Mapping[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int:
        """Of that place, or of what it should be in; 0 for one that is not from a file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return 1 if self.lines else 0

    def part(self, name: str) -> Mapping[str, Any] | None:
        """None where the document says nothing of it."""
        found: Mapping[str, Any] | None = self.content.get(name)
        return found


def load(text: str) -> Document:
    """Raises DocumentRefused with the line."""
    if len(text.encode()) > MOST_BYTES:
        raise _whole(_("The document is larger than 1 MB."))
    try:
        node = yaml.compose(text, yaml.SafeLoader)
        reader = _Reader()
        found = reader.value(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        why = Sentence(str(error.problem))
        raise DocumentRefused([Problem(mark.line + 1 if mark else 0, "", why)]) from error
    except (yaml.YAMLError, RecursionError, OverflowError) as error:
        raise _whole(_("This is not YAML: %(why)s"), why=str(error)) from error
    if not isinstance(found, dict) or found.get("tandem") != FORM or found["tandem"] is True:
        raise _whole(BEGINNING)
    document = Document(text, found, reader.lines)
    problems = list(_odd_parts(document))
    if problems:
        raise DocumentRefused(problems)
    return document


def _whole(words: str, **parts: str) -> DocumentRefused:
    return DocumentRefused([Problem(0, "", Sentence(words, **parts))])


def _odd_parts(document: Document) -> Iterator[Problem]:
    for name, value in document.content.items():
        if name == "tandem":
            continue
        if name not in PARTS:
            words = _("there is no such entry; known are %(known)s.")
            why = Sentence(words, known=", ".join(("tandem", *PARTS)))
            yield Problem(document.line((name,)), name, why)
        elif value is not None and not isinstance(value, dict):
            why = Sentence(_("names with values are expected here."))
            yield Problem(document.line((name,)), name, why)


class _Reader:
    """Plain values of YAML nodes. Refused are names that stand twice, aliases, and all tags but
    those of plain YAML."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self._scalars = yaml.SafeLoader("")
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._seen:
            raise _refused(node, _("a reference to another place (*) is not understood here."))
        self._seen.add(id(node))
        if len(path) > MOST_DEEP:
            raise _refused(node, _("nothing is nested so deep."))
        if isinstance(node, yaml.MappingNode) and node.tag == MAPPING:
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == SEQUENCE:
            return [self.value(one, (*path, str(n))) for n, one in enumerate(node.value)]
        return self._plain(node)

    def _plain(self, node: yaml.Node) -> Any:
        try:
            found = self._scalars.construct_object(node, deep=True)
        except ODD_SCALARS as error:  # Days such as 2024-13-45, and tags over other text.
            raise _refused(node, UNREADABLE, value=_start(node)) from error
        if (isinstance(found, str) and not can_be_kept(found)) or (
            isinstance(found, int) and found.bit_length() > MOST_BITS
        ):
            raise _refused(node, UNREADABLE, value=_start(node))
        return found

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self._plain(key_node)
            if not isinstance(key, str):
                words = _("a name must be a text, not %(name)s.")
                raise _refused(key_node, words, name=repr(key)[:60])
            if key in found:
                words = _("%(name)s stands here a second time.")
                raise _refused(key_node, words, name=key[:60])
            self.lines[*path, key] = key_node.start_mark.line + 1
            found[key] = self.value(value_node, (*path, key))
        return found


def _start(node: yaml.Node) -> str:
    return ascii(node.value)[:40]


def _refused(node: yaml.Node, words: str, **parts: str) -> DocumentRefused:
    return DocumentRefused([Problem(node.start_mark.line + 1, "", Sentence(words, **parts))])
