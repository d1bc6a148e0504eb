"""What a folder says about its tokenizer: tokenizer.json and the small files beside it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from engine.checkpoint.files import is_there, parse_object, read_object, read_text
from engine.checkpoint.tokenizer import TokenizerMetadata, check_tokenizer
from engine.errors import CheckpointError, Part, Said
from engine.errors import gettext_noop as _

FILE, SETTINGS, SPECIAL = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"
GENERATION, TEMPLATE = "generation_config.json", "chat_template.jinja"
MAX_FILE, MAX_SETTINGS = 200_000_000, 20_000_000
MAX_TOKENS = 4_000_000

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


class _Token(msgspec.Struct, frozen=True):
    text: str
    kind: int


def read_tokenizer(folder: Path, config: Mapping[str, Any], rows: int) -> TokenizerMetadata:
    """`config` is config.json's; ids beyond the embedding's `rows` are left out.

    Raises CheckpointError when a file is missing, damaged or names a token that does not exist.
    """
    text = _text(folder)
    root = parse_object(FILE, text)
    tokens = _tokens(root, rows)
    ids = {token.text: index for index, token in enumerate(tokens) if token.kind != UNUSED}
    settings = _optional(folder, SETTINGS)
    named = _Named(ids, [settings, _optional(folder, SPECIAL)])
    ends = _end_ids(_optional(folder, GENERATION), config)
    bos = _first(named.id("bos_token"), _one_id(config, "bos_token_id"))
    result = TokenizerMetadata(
        model="json",
        pre="json",
        tokens=[token.text for token in tokens],
        token_types=[token.kind for token in tokens],
        merges=[],
        bos_id=bos,
        eos_id=_first(named.id("eos_token"), ends[0] if ends else None),
        eot_id=None,
        unknown_id=named.id("unk_token"),
        padding_id=_first(named.id("pad_token"), _one_id(config, "pad_token_id")),
        add_bos=_adds_bos(root, settings, bos, ids),
        add_space_prefix=False,
        chat_template=_template(folder, settings),
        eos_ids=ends,
        tokenizer_json=text,
    )
    check_tokenizer(folder.name, result)
    return result


def _text(folder: Path) -> str:
    if not is_there(folder / FILE):
        raise CheckpointError(
            _(
                "%(folder)s holds no tokenizer.json; make one with transformers: "
                "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
            ),
            folder=str(folder),
        )
    return read_text(folder / FILE, MAX_FILE)


def _optional(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    return read_object(path, MAX_SETTINGS) if is_there(path) else {}


def _tokens(root: Mapping[str, Any], rows: int) -> list[_Token]:
    """By id. Ids that no token has are unused; those beyond the embedding can never be computed."""
    found: dict[int, _Token] = {}
    for text, index in _vocabulary(root):
        _claim(found, index, _Token(text, NORMAL), rows, added=False)
    byte_fallback = _model(root).get("byte_fallback") is True
    unknown = _model(root).get("unk_token")
    for index, token in found.items():
        if byte_fallback and len(token.text) == 6 and token.text.startswith("<0x"):
            found[index] = _Token(token.text, BYTE)
        elif token.text == unknown:
            found[index] = _Token(token.text, UNKNOWN)
    for entry in _list(root, "added_tokens"):
        text, index, special = _added(entry)
        _claim(found, index, _Token(text, CONTROL if special else USER_DEFINED), rows, added=True)
    if not found:
        raise _wrong(_("the vocabulary is empty"))
    unused = _Token("", UNUSED)
    return [found.get(index, unused) for index in range(max(found) + 1)]


def _claim(found: dict[int, _Token], index: object, token: _Token, rows: int, added: bool) -> None:
    if type(index) is not int or not 0 <= index < MAX_TOKENS:
        raise _wrong(
            _("token %(token)r has an impossible id %(id)s"),
            token=token.text[:60],
            id=repr(index)[:40],
        )
    if index >= rows:
        if added:
            return
        raise _wrong(
            _("token %(token)r has id %(id)s, but the embedding has only %(rows)s rows"),
            token=token.text[:60],
            id=index,
            rows=rows,
        )
    if index in found and found[index].text != token.text:
        raise _wrong(
            _("tokens %(one)r and %(other)r share the id %(id)s"),
            one=found[index].text[:60],
            other=token.text[:60],
            id=index,
        )
    found[index] = token


def _model(root: Mapping[str, Any]) -> Mapping[str, Any]:
    model = root.get("model")
    if not isinstance(model, dict):
        raise _wrong(_("its model is missing"))
    return model


def _vocabulary(root: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """A mapping for BPE, a list of (token, score) for Unigram."""
    vocabulary = _model(root).get("vocab")
    if isinstance(vocabulary, dict):
        yield from vocabulary.items()
        return
    if not isinstance(vocabulary, list):
        raise _wrong(_("its vocabulary is missing"))
    for index, item in enumerate(vocabulary):
        if not isinstance(item, list) or not item or not isinstance(item[0], str):
            raise _wrong(_("entry %(index)s of the vocabulary is damaged"), index=index)
        yield item[0], index


def _added(entry: object) -> tuple[str, object, bool]:
    if not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
        raise _wrong(_("an added token is damaged"))
    return entry["content"], entry.get("id"), entry.get("special") is True


class _Named:
    """Looks up `bos_token` and its like, which are a text or an object with one."""

    def __init__(self, ids: Mapping[str, int], sources: list[dict[str, Any]]) -> None:
        self._ids = ids
        self._sources = sources

    def id(self, key: str) -> int | None:
        for source in self._sources:
            value = source.get(key)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str) and text in self._ids:
                return self._ids[text]
        return None


def _first(*ids: int | None) -> int | None:
    return next((found for found in ids if found is not None), None)


def _one_id(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if type(value) is int else None


def _end_ids(generation: Mapping[str, Any], config: Mapping[str, Any]) -> list[int]:
    """Tokens that end an answer; generation_config.json knows better than config.json."""
    for source in (generation, config):
        value = source.get("eos_token_id")
        ids = value if isinstance(value, list) else [value]
        if value is not None and all(type(item) is int for item in ids):
            return list(ids)
    return []


def _adds_bos(
    root: Mapping[str, Any], settings: Mapping[str, Any], bos: int | None, ids: Mapping[str, int]
) -> bool:
    """Whether a plain prompt starts with it: what the post-processor does, else the setting."""
    for template in _templates(root.get("post_processor")):
        first = template[0] if template else None
        special = first.get("SpecialToken") if isinstance(first, dict) else None
        name = special.get("id") if isinstance(special, dict) else None
        return isinstance(name, str) and bos is not None and ids.get(name) == bos
    return settings.get("add_bos_token") is True and bos is not None


def _templates(processor: object) -> Iterator[list[Any]]:
    """What post-processors put around one text."""
    if not isinstance(processor, dict):
        return
    if processor.get("type") == "TemplateProcessing" and isinstance(processor.get("single"), list):
        yield processor["single"]
    for inner in _list(processor, "processors"):
        yield from _templates(inner)


def _list(holder: Mapping[str, Any], key: str) -> list[Any]:
    value = holder.get(key)
    return value if isinstance(value, list) else []


def _template(folder: Path, settings: Mapping[str, Any]) -> str | None:
    """The default one where there are several."""
    path = folder / TEMPLATE
    if is_there(path):
        return read_text(path, MAX_SETTINGS)
    given = settings.get("chat_template")
    if isinstance(given, str):
        return given
    for item in _list(settings, "chat_template"):
        if isinstance(item, dict) and item.get("name") == "default":
            template = item.get("template")
            return template if isinstance(template, str) else None
    return None


def _wrong(problem: str, /, **parts: Part) -> CheckpointError:
    return CheckpointError(_("%(file)s: %(problem)s."), file=FILE, problem=Said(problem, parts))
